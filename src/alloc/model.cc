#include "alloc/model.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <unordered_map>

namespace dibs::alloc {
namespace {

/// Appends a number to a signature.
template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Numbers strings in the order in which they come.
class Numbering {
 public:
  std::uint32_t of(std::string text) {
    return ids_.try_emplace(std::move(text), static_cast<std::uint32_t>(ids_.size())).first->second;
  }
  std::uint32_t count() const { return static_cast<std::uint32_t>(ids_.size()); }

 private:
  std::unordered_map<std::string, std::uint32_t> ids_;
};

/// Replaces the values of sets by numbers, the same one for values that occur in the same sets, and
/// returns how many. A list of a device's own values becomes one number.
std::uint32_t number_by_sets(std::vector<std::vector<ValueId>>& sets) {
  std::vector<ValueId> all;
  for (const std::vector<ValueId>& set : sets) all.insert(all.end(), set.begin(), set.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  for (std::vector<ValueId>& set : sets) {
    auto from = all.begin();
    for (ValueId& value : set) {
      from = std::lower_bound(from, all.end(), value);
      value = static_cast<ValueId>(from - all.begin());
    }
  }
  // Each set splits what was one label so far into those that are in it and those that are not.
  std::vector<std::uint32_t> label(all.size());
  std::vector<std::uint32_t> inside(1, kNone);
  for (const std::vector<ValueId>& set : sets) {
    const auto old = static_cast<std::uint32_t>(inside.size());
    for (const ValueId value : set) {
      if (inside[label[value]] == kNone || inside[label[value]] < old) {
        inside[label[value]] = static_cast<std::uint32_t>(inside.size());
        inside.push_back(kNone);
      }
      label[value] = inside[label[value]];
    }
  }
  std::vector<std::uint32_t> dense(inside.size(), kNone);
  std::uint32_t count = 0;
  for (const std::uint32_t one : label) {
    if (dense[one] == kNone) dense[one] = count++;
  }
  for (std::vector<ValueId>& set : sets) {
    for (ValueId& value : set) value = dense[label[value]];
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
  }
  return count;
}

/// Whether each alternative of the position has one of its kind behind the position.
bool speaks_for_none(const Position& position, const std::vector<std::uint32_t>& last,
                     const std::vector<std::uint32_t>& kinds) {
  const std::uint32_t end = position.first + position.count;
  for (std::uint32_t a = position.first; a < end; ++a) {
    if (last[kinds[a]] < end) return false;
  }
  return true;
}

}  // namespace

Model::Model(Attempt& attempt) : attempt_(attempt), demand_(attempt.demand()) {
  read_alternatives();
  find_bins();
  make_classes();
  find_kinds();
  number_values();
  type_bins();
  merge_suffixes();
  find_limits();
}

void Model::read_alternatives() {
  alternatives_.resize(demand_.alternatives.size());
  relevant_.resize(attempt_.slots());
  order_counts_.resize(demand_.constraints.size());
  const std::size_t words = relevant_.word_count();
  for (std::uint32_t a = 0; a < alternatives_.size(); ++a) {
    const Alternative& wanted = demand_.alternatives[a];
    AlternativeClasses& made = alternatives_[a];
    has_admin_ = has_admin_ || wanted.admin();
    for (std::size_t w = 0; w < words; ++w) {
      const std::uint64_t fatal = attempt_.fatal(a, w);
      if (!wanted.all()) relevant_.word(w) |= attempt_.candidates(a, w) | fatal;
      if (wanted.all()) continue;
      made.may_fault = made.may_fault || fatal != 0;
      for (std::uint64_t left = fatal; left != 0; left &= left - 1) {
        made.faulty.push_back(static_cast<Slot>(w * 64) +
                              static_cast<Slot>(std::countr_zero(left)));
      }
    }
    for (const Slot slot : attempt_.all_of(a)) relevant_.set(slot);
    made.ordered.resize(attempt_.slots());
    if (wanted.all() && !wanted.constraints.empty()) {
      made.may_fault = true;
      find_ordered(a);
    }
    for (const BoundConstraint& bound : wanted.constraints) {
      for (Slot slot = 0; slot < attempt_.slots(); ++slot) {
        if (!attempt_.candidate(a, slot)) continue;
        const SetId set = attempt_.set_of(bound, slot);
        if (set == kFailed) {
          made.may_fault = true;
          made.faulty.push_back(slot);
        }
        // A value that compares with nothing is good for the first device only.
        if (set == kIncomparable) order_counts_.set(bound.constraint);
      }
    }
  }
}

void Model::find_ordered(std::uint32_t alternative) {
  const Alternative& wanted = demand_.alternatives[alternative];
  const bool lists = attempt_.inventory().features().list_attributes;
  const AttributeTable& attributes = attempt_.inventory().attributes();
  AlternativeClasses& made = alternatives_[alternative];
  for (std::uint32_t a = 0; a < demand_.alternatives.size(); ++a) {
    if (demand_.alternatives[a].position >= wanted.position) break;
    for (const BoundConstraint& other : demand_.alternatives[a].constraints) {
      for (const BoundConstraint& bound : wanted.constraints) {
        made.preceded = made.preceded || other.constraint == bound.constraint;
      }
    }
  }
  std::vector<std::vector<SetId>> held(wanted.constraints.size());
  for (const Slot slot : attempt_.all_of(alternative)) {
    made.ordered.set(slot);
    for (std::size_t i = 0; i < held.size(); ++i) {
      const SetId set = attempt_.set_of(wanted.constraints[i], slot);
      const bool match =
          demand_.constraints[wanted.constraints[i].constraint]->kind == Constraint::Kind::match;
      const auto clashes = [&](SetId other) {
        return (lists ? attributes.intersect(other, set) : other == set) != match;
      };
      if (set == kMissing || set == kFailed ||
          (set == kIncomparable && (lists || !held[i].empty())) ||
          std::any_of(held[i].begin(), held[i].end(), clashes)) {
        return;
      }
      held[i].push_back(set);
    }
    ++made.clash;
  }
}

bool Model::can_fault(std::uint32_t alternative) const {
  const AlternativeClasses& made = alternatives_[alternative];
  if (!made.may_fault || attempt_.count(alternative) > demand_.most_results) {
    return false;
  }
  const auto free = [&](Slot slot) { return !attempt_.taken(alternative, slot); };
  if (std::any_of(made.faulty.begin(), made.faulty.end(), free)) return true;
  if (!demand_.alternatives[alternative].all()) return false;
  // One that is not to be had ends it before the clash is met.
  const std::vector<Slot>& all = attempt_.all_of(alternative);
  const std::size_t first = made.preceded ? 0 : made.clash;
  if (first >= all.size() || !attempt_.counters_allow(all, first + 1)) return false;
  return std::all_of(
      all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first) + 1,
      [&](Slot slot) { return free(slot) && attempt_.candidate(alternative, slot); });
}

/// Counter sets that one device consumes from end up in one bin.
void Model::find_bins() {
  bin_of_.assign(attempt_.slots(), kNone);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers;  // pool, set
  std::vector<std::uint32_t> parent;
  const auto root = [&](std::uint32_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  for (Slot slot = 0; slot < attempt_.slots(); ++slot) {
    const RowCounters* counters = attempt_.info(slot).counters.get();
    if (!relevant_.test(slot) || counters == nullptr || counters->sets.empty()) continue;
    std::uint32_t first = kNone;
    for (const SetUse& use : counters->sets) {
      // Devices that are allocated may be in groups, too.
      has_groups_ = has_groups_ || !use.groups.empty() ||
                    !attempt_.members_before(attempt_.view().pool_of[slot], use.set).groups.empty();
      const auto [at, added] = numbers.try_emplace({attempt_.view().pool_of[slot], use.set},
                                                   static_cast<std::uint32_t>(parent.size()));
      if (added) parent.push_back(at->second);
      if (first == kNone) {
        first = root(at->second);
      } else {
        parent[root(at->second)] = first;
      }
    }
  }
  std::map<std::uint32_t, std::uint32_t> bins;  // by root
  for (Slot slot = 0; slot < attempt_.slots(); ++slot) {
    const RowCounters* counters = attempt_.info(slot).counters.get();
    if (!relevant_.test(slot) || counters == nullptr || counters->sets.empty()) continue;
    const std::uint32_t pool = attempt_.view().pool_of[slot];
    const std::uint32_t at = root(numbers.at({pool, counters->sets.front().set}));
    const auto [bin, added] = bins.try_emplace(at, static_cast<std::uint32_t>(bins_.size()));
    if (added) {
      bins_.emplace_back();
      bins_.back().pool = pool;
    }
    bin_of_[slot] = bin->second;
    Bin& made = bins_[bin->second];
    const auto add = [](std::vector<std::uint32_t>& to, std::uint32_t value) {
      if (std::find(to.begin(), to.end(), value) == to.end()) to.push_back(value);
    };
    for (const CounterUse& use : counters->counters) add(made.counters, use.counter);
    for (const SetUse& use : counters->sets) add(made.sets, use.set);
  }
}

/// Everything about a device that the attempt can depend on, but for its bin.
std::string Model::signature(Slot slot, bool with_counters) const {
  std::string made;
  const Features& features = attempt_.inventory().features();
  const RowInfo& row = attempt_.info(slot);
  const Device& device = *row.device;
  const bool multiple = device.multiple && features.consumable_capacity;
  made.push_back(multiple ? 's' : 'x');
  for (std::uint32_t a = 0; a < alternatives_.size(); ++a) {
    const Alternative& wanted = demand_.alternatives[a];
    const std::vector<Slot>& all = attempt_.all_of(a);
    const bool member = wanted.all() && std::binary_search(all.begin(), all.end(), slot);
    const bool candidate = attempt_.candidate(a, slot) && (!wanted.all() || member);
    const bool fatal = (attempt_.fatal(a, slot / 64) >> (slot % 64) & 1) != 0 && !wanted.all();
    made.push_back(static_cast<char>((candidate ? 1 : 0) + (member ? 2 : 0)));
    if (fatal || alternatives_[a].ordered.test(slot)) put(made, slot);
    if (!candidate && !member) continue;
    for (const BoundConstraint& bound : wanted.constraints) {
      const SetId set = attempt_.set_of(bound, slot);
      put(made, set);
      if (set == kFailed || order_counts_.test(bound.constraint)) put(made, slot);
    }
    if (multiple) {
      for (const Amount amount : attempt_.intake_of(a, slot).amounts) put(made, amount);
    }
    // An alternative that wants all looks at what others consumed only when it takes the device.
    if (member && !multiple) made.push_back(attempt_.capacity_allows(a, slot, false) ? '+' : '-');
  }
  if (multiple) {
    const DeviceUse& use = attempt_.use(slot);
    made.push_back(use.shared() ? '1' : '0');
    for (const Capacity& capacity : device.capacities) {
      Amount left = capacity.amount;
      for (const auto& [name, amount] : use.consumed) {
        if (name == capacity.name) left -= amount;
      }
      put(made, left);
    }
  }
  if (with_counters && row.counters != nullptr) {
    // Numbers of counters and sets relative to the bin, so that bins can be compared.
    const Bin& bin = bins_[bin_of_[slot]];
    const auto number = [](const std::vector<std::uint32_t>& in, std::uint32_t value) {
      return static_cast<std::uint32_t>(std::find(in.begin(), in.end(), value) - in.begin());
    };
    for (const CounterUse& use : row.counters->counters) {
      put(made, number(bin.counters, use.counter));
      put(made, use.amount);
    }
    for (const SetUse& use : row.counters->sets) {
      put(made, number(bin.sets, use.set));
      for (const std::uint32_t group : use.groups) put(made, group);
      made.push_back('.');
    }
  }
  return made;
}

void Model::make_classes() {
  class_of_.assign(attempt_.slots(), kNone);
  std::unordered_map<std::string, std::uint32_t> ids;
  for (Slot slot = 0; slot < attempt_.slots(); ++slot) {
    if (!relevant_.test(slot)) continue;
    std::string key = signature(slot, bin_of_[slot] != kNone);
    put(key, bin_of_[slot]);
    const auto [at, added] =
        ids.try_emplace(std::move(key), static_cast<std::uint32_t>(classes_.size()));
    if (added) {
      DeviceClassInfo made;
      made.bin = bin_of_[slot];
      made.multiple = attempt_.info(slot).device->multiple &&
                      attempt_.inventory().features().consumable_capacity;
      if (made.bin != kNone) {
        Bin& bin = bins_[made.bin];
        made.local = static_cast<std::uint32_t>(bin.classes.size());
        bin.classes.push_back(at->second);
        bin.shares = bin.shares || made.multiple;
      }
      classes_.push_back(std::move(made));
    }
    class_of_[slot] = at->second;
    classes_[at->second].members.push_back(slot);
  }
  for (std::uint32_t a = 0; a < alternatives_.size(); ++a) {
    AlternativeClasses& made = alternatives_[a];
    const Alternative& wanted = demand_.alternatives[a];
    const std::vector<Slot>& all = attempt_.all_of(a);
    made.set.resize(classes_.size());
    for (std::uint32_t c = 0; c < classes_.size(); ++c) {
      const Slot first = classes_[c].members.front();
      if (!attempt_.candidate(a, first)) continue;
      if (wanted.all() && !std::binary_search(all.begin(), all.end(), first)) continue;
      made.classes.push_back(c);
      made.set.set(c);
    }
    for (const BoundConstraint& bound : wanted.constraints) {
      std::vector<SetId> values(classes_.size(), kUnread);
      for (const std::uint32_t c : made.classes) {
        values[c] = attempt_.set_of(bound, classes_[c].members.front());
      }
      made.values.push_back(std::move(values));
    }
  }
}

void Model::number_values() {
  const AttributeTable& attributes = attempt_.inventory().attributes();
  // What compares with nothing is a value of its own, of no other device.
  constexpr std::uint64_t kAlone = std::uint64_t{1} << 32;
  std::vector<std::vector<std::uint64_t>> keys(demand_.constraints.size());
  const auto key_of = [&](SetId set, std::uint32_t c) {
    return set == kIncomparable ? kAlone | classes_[c].members.front() : std::uint64_t{set};
  };
  for (std::uint32_t a = 0; a < alternatives_.size(); ++a) {
    if (kinds_[a] != a) continue;
    const std::vector<BoundConstraint>& bound = demand_.alternatives[a].constraints;
    for (std::size_t i = 0; i < bound.size(); ++i) {
      std::vector<std::uint64_t>& seen = keys[bound[i].constraint];
      const std::size_t before = seen.size();
      for (const std::uint32_t c : alternatives_[a].classes) {
        seen.push_back(key_of(alternatives_[a].values[i][c], c));
      }
      const auto middle = seen.begin() + static_cast<std::ptrdiff_t>(before);
      std::sort(middle, seen.end());
      std::inplace_merge(seen.begin(), middle, seen.end());
      seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    }
  }
  std::vector<std::vector<std::span<const std::uint32_t>>> singles(keys.size());
  for (std::size_t k = 0; k < keys.size(); ++k) {
    std::vector<std::vector<ValueId>> sets;
    for (const std::uint64_t key : keys[k]) {
      const std::span<const ValueId> values =
          key >= kAlone ? std::span<const ValueId>() : attributes.values(static_cast<SetId>(key));
      sets.emplace_back(values.begin(), values.end());
    }
    std::uint32_t count = number_by_sets(sets);
    for (std::size_t s = 0; s < sets.size(); ++s) {
      if (keys[k][s] >= kAlone) sets[s].push_back(count++);
      singles[k].emplace_back(single_lists_.emplace_back(std::move(sets[s])));
    }
    single_counts_.push_back(count);
  }
  for (std::uint32_t a = 0; a < alternatives_.size(); ++a) {
    const std::vector<BoundConstraint>& bound = demand_.alternatives[a].constraints;
    AlternativeClasses& made = alternatives_[a];
    if (kinds_[a] != a) {
      made.singles = alternatives_[kinds_[a]].singles;
      continue;
    }
    made.singles.resize(bound.size());
    for (std::size_t i = 0; i < bound.size(); ++i) {
      const std::vector<std::uint64_t>& seen = keys[bound[i].constraint];
      made.singles[i].resize(classes_.size());
      for (const std::uint32_t c : made.classes) {
        const auto at = std::lower_bound(seen.begin(), seen.end(), key_of(made.values[i][c], c));
        made.singles[i][c] =
            singles[bound[i].constraint][static_cast<std::size_t>(at - seen.begin())];
      }
    }
  }
}

void Model::find_kinds() {
  const bool shares = std::any_of(classes_.begin(), classes_.end(),
                                  [](const DeviceClassInfo& info) { return info.multiple; });
  const auto same = [&](std::uint32_t a, std::uint32_t b) {
    const Alternative& x = demand_.alternatives[a];
    const Alternative& y = demand_.alternatives[b];
    return x.claim == y.claim && x.admin() == y.admin() &&
           std::equal(x.constraints.begin(), x.constraints.end(), y.constraints.begin(),
                      y.constraints.end(),
                      [](const BoundConstraint& one, const BoundConstraint& other) {
                        return one.constraint == other.constraint && one.column == other.column;
                      }) &&
           alternatives_[a].set == alternatives_[b].set &&
           alternatives_[a].values == alternatives_[b].values;
  };
  for (std::uint32_t a = 0; a < alternatives_.size(); ++a) {
    kinds_.push_back(a);
    // Where devices are shared, what a request takes of them counts as well.
    if (shares || demand_.alternatives[a].all() || alternatives_[a].may_fault) continue;
    for (std::uint32_t b = 0; b < a; ++b) {
      const bool first = kinds_[b] == b && !demand_.alternatives[b].all();
      if (!first || alternatives_[b].may_fault || !same(a, b)) continue;
      kinds_[a] = b;
      break;
    }
  }
}

void Model::type_bins() {
  Numbering types;
  for (std::uint32_t b = 0; b < bins_.size(); ++b) {
    Bin& bin = bins_[b];
    std::string key;
    if (bin.shares) put(key, b);  // shares tell bins apart; rare enough to leave it at that
    for (const std::uint32_t counter : bin.counters) {
      put(key, attempt_.available(bin.pool, counter));
    }
    if (has_groups_) {
      for (const std::uint32_t set : bin.sets) {
        const SetMembers& members = attempt_.members_before(bin.pool, set);
        put(key, members.members);
        put(key, members.without_groups);
        for (const auto& [group, devices] : members.groups) {
          put(key, group);
          put(key, devices);
        }
      }
    }
    // Members in the order of their slots, each by class: bins of one type correspond in order.
    std::vector<std::pair<Slot, std::uint32_t>> members;
    for (const std::uint32_t c : bin.classes) {
      key.append(signature(classes_[c].members.front(), true));
      key.push_back('|');
      for (const Slot slot : classes_[c].members) members.emplace_back(slot, classes_[c].local);
    }
    std::sort(members.begin(), members.end());
    for (const auto& [slot, local] : members) put(key, local);
    bin.type = types.of(std::move(key));
  }
}

void Model::merge_suffixes() {
  const auto positions = static_cast<std::uint32_t>(demand_.positions.size());
  suffix_.resize(positions + 1);
  suffix_counts_.resize(positions + 1);
  // Alternatives of one kind say the same about a class, so the last of them speaks for all.
  std::vector<std::uint32_t> last(alternatives_.size());
  for (std::uint32_t a = 0; a < alternatives_.size(); ++a) last[kinds_[a]] = a;
  for (std::uint32_t p = positions + 1; p-- > 0;) {
    if (p < positions && speaks_for_none(demand_.positions[p], last, kinds_)) {
      suffix_[p] = suffix_[p + 1];
      suffix_counts_[p] = suffix_counts_[p + 1];
      continue;
    }
    Numbering numbers;
    suffix_[p].assign(classes_.size(), kNone);
    const std::uint32_t first = p < positions ? demand_.positions[p].first
                                              : static_cast<std::uint32_t>(alternatives_.size());
    for (std::uint32_t c = 0; c < classes_.size(); ++c) {
      const Slot slot = classes_[c].members.front();
      std::string key;
      bool matters = false;
      for (std::uint32_t a = first; a < alternatives_.size(); ++a) {
        if (last[kinds_[a]] != a) continue;
        const Alternative& wanted = demand_.alternatives[a];
        const bool in = alternatives_[a].set.test(c);
        const bool fatal = (attempt_.fatal(a, slot / 64) >> (slot % 64) & 1) != 0;
        const std::vector<Slot>& all = attempt_.all_of(a);
        const bool member = wanted.all() && std::binary_search(all.begin(), all.end(), slot);
        key.push_back(static_cast<char>((in ? 1 : 0) + (member ? 2 : 0)));
        if (fatal || alternatives_[a].ordered.test(slot)) put(key, slot);
        matters = matters || in || fatal || member;
        if (!in) continue;
        for (std::size_t i = 0; i < wanted.constraints.size(); ++i) {
          put(key, alternatives_[a].values[i][c]);
          if (order_counts_.test(wanted.constraints[i].constraint)) put(key, slot);
        }
      }
      if (!matters) continue;
      if (classes_[c].bin != kNone || classes_[c].multiple) put(key, c);
      suffix_[p][c] = numbers.of(std::move(key));
    }
    suffix_counts_[p] = numbers.count();
  }
  first_fault_.assign(positions + 1, positions);
  for (std::uint32_t p = positions; p-- > 0;) {
    const Position& position = demand_.positions[p];
    bool fault = false;
    for (std::uint32_t a = position.first; a < position.first + position.count; ++a) {
      fault = fault || can_fault(a);
    }
    first_fault_[p] = fault ? p : first_fault_[p + 1];
  }
}

void Model::find_limits() {
  for (const ClaimDemand& claim : demand_.claims) {
    std::int64_t most = 0;
    for (std::uint32_t i = 0; i < claim.position_count; ++i) {
      const Position& position = demand_.positions[claim.first_position + i];
      std::int64_t largest = 0;
      for (std::uint32_t a = position.first; a < position.first + position.count; ++a) {
        largest = std::max(largest, std::min(attempt_.count(a), demand_.most_results + 1));
      }
      most += largest;
    }
    may_exceed_ = may_exceed_ || most > demand_.most_results;
  }
}

}  // namespace dibs::alloc
