#include "alloc/bounds.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace dibs::alloc {
namespace {

/// More than any claim can take.
constexpr std::int64_t kPlenty = 1'000'000;

}  // namespace

Bounds::Bounds(Attempt& attempt, const Model& model, const Tally& tally, std::uint64_t& steps)
    : attempt_(attempt), model_(model), tally_(tally), demand_(attempt.demand()), steps_(steps) {
  faults_ = model.first_fault(0) < demand_.positions.size();
  stock_.units.resize(model.classes().size());
  stock_.group.assign(model.classes().size(), kNoGroup);
  for (const DeviceClassInfo& info : model.classes()) {
    stock_.each.push_back(info.multiple ? static_cast<std::int64_t>(info.members.size()) : kPlenty);
  }
  usable_.resize(demand_.alternatives.size());
  allowed_.resize(demand_.constraints.size());
}

bool Bounds::applies(const Point& point) const {
  if (!faults_) return true;
  if (point.alternative != kNone && model_.can_fault(point.alternative)) return false;
  // When a later request of the claim would have too many results whatever it takes, other devices
  // for the ones before it are not tried, and faults among these not met.
  const std::uint32_t claim = demand_.positions[point.position].claim;
  const std::int64_t most = demand_.most_results;
  auto upper = static_cast<std::int64_t>(attempt_.picked_for(claim));
  std::uint32_t next = point.position;
  if (point.alternative != kNone) {
    upper += attempt_.count(point.alternative) - point.index;
    ++next;
  }
  for (; next < demand_.positions.size() && demand_.positions[next].claim == claim; ++next) {
    const Position& position = demand_.positions[next];
    std::int64_t fewest = kPlenty;
    std::int64_t largest = 0;
    for (std::uint32_t a = position.first; a < position.first + position.count; ++a) {
      const std::int64_t count = attempt_.count(a);
      fewest = std::min(fewest, count);
      if (count <= most) largest = std::max(largest, count);
    }
    if (upper + fewest > most) return false;
    upper += largest;
  }
  return true;
}

bool Bounds::class_allows(std::uint32_t alternative, std::uint32_t c) {
  const Alternative& wanted = demand_.alternatives[alternative];
  const AlternativeClasses& classes = model_.alternative(alternative);
  for (std::size_t i = 0; i < wanted.constraints.size(); ++i) {
    ++steps_;
    if (!attempt_.constraint_allows(wanted.constraints[i].constraint, classes.values[i][c])) {
      return false;
    }
  }
  const DeviceClassInfo& info = model_.classes()[c];
  if (info.bin == kNone) return true;
  const Slot member = info.members.front();
  // Further shares of a device cost no counters.
  if (info.multiple && (attempt_.use(member).shared() ||
                        std::any_of(info.members.begin(), info.members.end(), [this](Slot other) {
                          return attempt_.share(other) != nullptr;
                        }))) {
    return true;
  }
  steps_ += 2;
  return attempt_.counters_allow(member) && attempt_.groups_allow(member);
}

std::int64_t Bounds::usable(std::uint32_t alternative, Slot from, bool current, Bits& out) {
  const Alternative& wanted = demand_.alternatives[alternative];
  std::int64_t total = 0;
  for (const std::uint32_t c : model_.alternative(alternative).classes) {
    ++steps_;
    const DeviceClassInfo& info = model_.classes()[c];
    std::int64_t left = 0;
    if (info.multiple) {
      for (const Slot member : info.members) {
        ++steps_;
        if (member >= from && attempt_.capacity_allows(alternative, member)) ++left;
      }
    } else {
      left = static_cast<std::int64_t>(info.members.size()) -
             (wanted.admin() ? tally_.by_claim[wanted.claim][c] : tally_.taken[c]);
      // Members are taken from the lowest on: a free one that was passed by closes the class.
      if (current && left > 0 && from > 0 && !wanted.all()) {
        for (const Slot member : info.members) {
          if (member >= from) break;
          if (attempt_.taken(alternative, member)) continue;
          left = wanted.admin() ? static_cast<std::int64_t>(
                                      std::count_if(info.members.begin(), info.members.end(),
                                                    [from](Slot other) { return other >= from; }))
                                : 0;
          break;
        }
      }
    }
    if (left <= 0 || !class_allows(alternative, c)) continue;
    out.set(c);
    total += left;
  }
  return total;
}

bool Bounds::add(const std::vector<std::uint32_t>& alternatives, std::int64_t taken, Slot from,
                 bool current) {
  Need need;
  need.count = kPlenty;
  need.classes.resize(model_.classes().size());
  for (const std::uint32_t a : alternatives) {
    const std::int64_t count = attempt_.count(a) - taken;
    if (demand_.alternatives[a].all()) {
      const std::vector<Slot>& all = attempt_.all_of(a);
      if (all.empty()) continue;
      steps_ += all.size();
      if (taken == 0 && !attempt_.counters_allow(all, all.size())) continue;
    }
    Bits classes(model_.classes().size());
    if (count > 0 && current) {
      if (usable(a, from, current, classes) < count) continue;
    } else if (count > 0) {
      auto& [total, found] = usable_[model_.kind(a)];
      if (total < 0) {
        found = classes;
        total = usable(a, from, current, found);
      }
      ++steps_;
      if (total < count) continue;
      classes = found;
    }
    need.alternatives.push_back(a);
    need.count = std::min(need.count, count);
    need.admin = need.admin || demand_.alternatives[a].admin();
    need.claim = demand_.alternatives[a].claim;
    need.classes.add(classes);
  }
  if (need.alternatives.empty()) return false;
  if (need.count > 0) needs_.push_back(std::move(need));
  return true;
}

bool Bounds::collect(const Point& point) {
  needs_.clear();
  for (auto& [total, classes] : usable_) total = -1;
  std::uint32_t next = point.position;
  if (point.alternative != kNone) {
    if (!add({point.alternative}, point.index, point.slot, true)) return false;
    ++next;
  }
  const auto last = std::min(static_cast<std::uint32_t>(demand_.positions.size()), end_);
  std::vector<std::uint32_t> alternatives;
  for (std::uint32_t p = next; p < last; ++p) {
    const Position& position = demand_.positions[p];
    alternatives.clear();
    for (std::uint32_t i = 0; i < position.count; ++i) {
      // What comes after a fault does not count.
      if (model_.can_fault(position.first + i)) return true;
      alternatives.push_back(position.first + i);
    }
    if (!add(alternatives, 0, 0, false)) return false;
  }
  return true;
}

/// How many more shares the devices of a class have. A request takes a device once, so these are
/// the smallest that requests want of it, one each, as long as they fit.
std::int64_t Bounds::shares_left(std::uint32_t c) {
  const DeviceClassInfo& info = model_.classes()[c];
  const Device& device = *attempt_.info(info.members.front()).device;
  const std::size_t kinds = device.capacities.size();
  std::vector<std::vector<Amount>>& wanted = wanted_;
  if (wanted.size() < kinds) wanted.resize(kinds);
  for (std::size_t i = 0; i < kinds; ++i) wanted[i].clear();
  std::int64_t requests = 0;
  for (const Need& need : needs_) {
    if (!need.classes.test(c)) continue;
    ++requests;
    for (std::size_t i = 0; i < kinds; ++i) wanted[i].push_back(-1);
    for (const std::uint32_t a : need.alternatives) {
      if (!model_.alternative(a).set.test(c)) continue;
      const Intake& needed = attempt_.intake_of(a, info.members.front());
      for (std::size_t i = 0; i < needed.amounts.size(); ++i) {
        ++steps_;
        Amount& least = wanted[i].back();
        if (least < 0 || needed.amounts[i] < least) least = needed.amounts[i];
      }
    }
  }
  for (std::size_t i = 0; i < kinds; ++i) std::sort(wanted[i].begin(), wanted[i].end());
  std::int64_t total = 0;
  for (const Slot member : info.members) {
    std::int64_t most = requests;
    const Attempt::Share* share = attempt_.share(member);
    for (std::size_t i = 0; i < kinds; ++i) {
      const Capacity& capacity = device.capacities[i];
      Amount left = capacity.amount - (share != nullptr ? share->consumed[i] : 0);
      for (const auto& [name, amount] : attempt_.use(member).consumed) {
        if (name == capacity.name) left -= amount;
      }
      std::int64_t fit = 0;
      for (const Amount amount : wanted[i]) {
        if (fit >= most || (amount > 0 && amount > left)) break;
        if (amount > 0) left -= amount;
        ++fit;
      }
      steps_ += 1 + static_cast<std::uint64_t>(fit) / 4;
      most = std::min(most, fit);
    }
    total += most;
  }
  return total;
}

void Bounds::fill_stock() {
  const std::vector<DeviceClassInfo>& classes = model_.classes();
  for (std::size_t c = 0; c < classes.size(); ++c) {
    stock_.units[c] = classes[c].multiple
                          ? shares_left(static_cast<std::uint32_t>(c))
                          : static_cast<std::int64_t>(classes[c].members.size()) - tally_.taken[c];
  }
  // A bin holds no more devices than fit by the smallest of them, counter by counter.
  stock_.group_units.clear();
  for (const Bin& bin : model_.bins()) {
    const auto group = static_cast<std::uint32_t>(stock_.group_units.size());
    std::int64_t most = kPlenty;
    for (const std::uint32_t counter : bin.counters) {
      Amount least = -1;
      for (const std::uint32_t c : bin.classes) {
        ++steps_;
        Amount amount = 0;
        if (!classes[c].multiple) {
          for (const CounterUse& use :
               attempt_.info(classes[c].members.front()).counters->counters) {
            if (use.counter == counter) amount = use.amount;
          }
        }
        if (stock_.units[c] > 0 && (least < 0 || amount < least)) least = amount;
      }
      if (least > 0) {
        const Amount fit = std::max<Amount>(0, attempt_.available(bin.pool, counter)) / least;
        most = static_cast<std::int64_t>(std::min<Amount>(most, fit));
      }
    }
    for (const std::uint32_t c : bin.classes) stock_.group[c] = group;
    stock_.group_units.push_back(most);
  }
}

std::int64_t Bounds::units(const Need& need, std::uint32_t c) const {
  const bool whole = need.admin || model_.classes()[c].multiple;
  return whole ? static_cast<std::int64_t>(model_.classes()[c].members.size()) : stock_.units[c];
}

bool Bounds::serve(const Point& point, const std::vector<const Bits*>& classes) {
  const std::uint32_t claim = demand_.positions[point.position].claim;
  rows_.clear();
  for (std::size_t n = 0; n < needs_.size(); ++n) {
    const Need& need = needs_[n];
    std::int64_t count = need.count;
    if (need.admin) {
      // Access for administration shares devices with other claims: with those served already, as
      // far as it goes, and with those still to be served, who knows.
      if (need.claim != claim) continue;
      // Shares are taken by administrators as by everyone.
      each_in(*classes[n], [&](std::uint32_t c) {
        if (!model_.classes()[c].multiple) count -= tally_.taken[c] - tally_.by_claim[claim][c];
      });
    }
    if (count <= 0) continue;
    ++steps_;
    if (!rows_.empty() && rows_.back().classes == *classes[n]) {
      rows_.back().need += count;
      ++rows_.back().requests;
    } else {
      rows_.push_back({count, *classes[n], 1});
    }
  }
  return rows_.empty() || flow_.can_serve(rows_, stock_, steps_);
}

bool Bounds::possible(const Point& point) {
  if (!applies(point)) return true;
  if (!collect(point)) return false;
  fill_stock();
  if (!narrow()) return false;
  std::vector<const Bits*> classes;
  for (const Need& need : needs_) classes.push_back(&need.classes);
  return serve(point, classes);
}

bool Bounds::thoroughly_possible(const Point& point) {
  if (!applies(point)) return true;
  if (!collect(point)) return false;
  fill_stock();
  if (!narrow()) return false;
  std::vector<const Bits*> classes;
  for (const Need& need : needs_) classes.push_back(&need.classes);
  return counters_suffice() && distinct_suffice(classes) && match_suffice(point);
}

bool Bounds::counters_suffice() {
  if (model_.bins().empty()) return true;
  // Per pool and name of a counter, over all sets.
  std::map<std::pair<std::uint32_t, std::string>, Amount> left;
  for (const Bin& bin : model_.bins()) {
    const Generation& generation = *attempt_.view().pools[bin.pool].generation;
    for (const std::uint32_t counter : bin.counters) {
      left[{bin.pool, generation.counters[counter].second}] +=
          std::max<Amount>(0, attempt_.available(bin.pool, counter));
    }
  }
  for (const auto& entry : left) {
    const auto& key = entry.first;
    Amount needed = 0;
    for (const Need& need : needs_) {
      Amount least = -1;
      each_in(need.classes, [&](std::uint32_t c) {
        ++steps_;
        const DeviceClassInfo& info = model_.classes()[c];
        Amount amount = 0;
        if (info.bin != kNone && !info.multiple && model_.bins()[info.bin].pool == key.first) {
          const Generation& generation = *attempt_.view().pools[key.first].generation;
          for (const CounterUse& use : attempt_.info(info.members.front()).counters->counters) {
            if (generation.counters[use.counter].second == key.second) amount += use.amount;
          }
        }
        least = least < 0 ? amount : std::min(least, amount);
      });
      if (least > 0) needed += least * need.count;
    }
    if (needed > entry.second) return false;
  }
  return true;
}

bool Bounds::distinct_suffice(const std::vector<const Bits*>& classes) {
  for (std::uint32_t k = 0; k < demand_.constraints.size(); ++k) {
    if (demand_.constraints[k]->kind != Constraint::Kind::distinct) continue;
    std::vector<std::pair<std::int64_t, std::set<std::uint32_t>>> held_to;
    std::map<SetId, std::uint32_t> values;
    for (std::size_t n = 0; n < needs_.size(); ++n) {
      const Need& need = needs_[n];
      std::set<std::uint32_t> reachable;
      bool bound = true;
      for (const std::uint32_t a : need.alternatives) {
        const std::vector<BoundConstraint>& constraints = demand_.alternatives[a].constraints;
        const auto at =
            std::find_if(constraints.begin(), constraints.end(),
                         [k](const BoundConstraint& bound) { return bound.constraint == k; });
        if (at == constraints.end()) {
          bound = false;
          break;
        }
        const auto& held =
            model_.alternative(a).values[static_cast<std::size_t>(at - constraints.begin())];
        each_in(*classes[n], [&](std::uint32_t c) {
          steps_ += 4;
          if (held[c] == kUnread) return;
          reachable.insert(
              values.try_emplace(held[c], static_cast<std::uint32_t>(values.size())).first->second);
        });
      }
      if (bound) held_to.emplace_back(need.count, std::move(reachable));
    }
    if (held_to.empty()) continue;
    std::vector<FlowRow> rows;
    for (const auto& [need, reachable] : held_to) {
      FlowRow row{need, Bits(values.size()), 1};
      for (const std::uint32_t value : reachable) row.classes.set(value);
      rows.push_back(std::move(row));
    }
    FlowStock once;
    once.units.assign(values.size(), 1);
    once.group.assign(values.size(), kNoGroup);
    once.each.assign(values.size(), kPlenty);
    if (!flow_.can_serve(rows, once, steps_)) return false;
  }
  return true;
}

/// Whether the needs can be served when the alternatives under the constraints are held to the
/// classes that `allows(alternative, number of the bound constraint, class)` lets through.
template <typename Allows>
bool Bounds::filtered_serves(const Point& point, const std::vector<std::uint32_t>& constraints,
                             Allows allows) {
  std::vector<FlowRow> rows;
  steps_ += 8 * needs_.size();
  for (std::size_t n = 0; n < needs_.size(); ++n) {
    const Need& need = needs_[n];
    if (n > 0 && alike(need, needs_[n - 1])) {
      ++steps_;
      rows.push_back(rows.back());
      continue;
    }
    FlowRow row;
    row.need = kPlenty;
    row.classes.resize(model_.classes().size());
    for (const std::uint32_t a : need.alternatives) {
      const std::vector<BoundConstraint>& bound = demand_.alternatives[a].constraints;
      const Bits& own = model_.alternative(a).set;
      std::int64_t total = 0;
      Bits classes(model_.classes().size());
      each_in(need.classes, [&](std::uint32_t c) {
        ++steps_;
        if (!own.test(c)) return;
        for (std::size_t i = 0; i < bound.size(); ++i) {
          const bool concerned = std::find(constraints.begin(), constraints.end(),
                                           bound[i].constraint) != constraints.end();
          if (concerned && !allows(a, i, c)) return;
        }
        classes.set(c);
        total += model_.classes()[c].multiple
                     ? static_cast<std::int64_t>(model_.classes()[c].members.size())
                     : stock_.units[c];
      });
      if (demand_.alternatives[a].admin()) total = kPlenty;
      if (total < need.count) continue;
      row.need = need.count;
      row.classes.add(classes);
    }
    if (row.need == kPlenty) return false;
    rows.push_back(std::move(row));
  }
  std::vector<const Bits*> classes;
  for (const FlowRow& row : rows) classes.push_back(&row.classes);
  return serve(point, classes) && distinct_suffice(classes);
}

bool Bounds::match_suffice(const Point& point) {
  const bool lists = attempt_.inventory().features().list_attributes;
  // Constraints over the same alternatives are settled together.
  std::map<std::vector<std::uint32_t>, std::vector<std::uint32_t>> together;
  for (std::uint32_t k = 0; k < demand_.constraints.size(); ++k) {
    if (demand_.constraints[k]->kind != Constraint::Kind::match) continue;
    if (!lists && !attempt_.constraint_sets(k).empty()) continue;
    std::vector<std::uint32_t> under;
    for (const Need& need : needs_) {
      for (const std::uint32_t a : need.alternatives) {
        for (const BoundConstraint& bound : demand_.alternatives[a].constraints) {
          if (bound.constraint == k) under.push_back(a);
        }
      }
    }
    if (under.empty()) continue;
    if (lists) under.push_back(kNone - k);  // sets do not combine
    together[under].push_back(k);
  }
  for (const auto& entry : together) {
    const std::vector<std::uint32_t>& under = entry.first;
    const std::vector<std::uint32_t>& constraints = entry.second;
    const std::uint32_t first = constraints.front();
    // A need all of whose alternatives are held by the constraints shows every value there can be.
    const Need* pivot = nullptr;
    for (const Need& need : needs_) {
      const bool bound = std::all_of(
          need.alternatives.begin(), need.alternatives.end(), [&under](std::uint32_t a) {
            return std::find(under.begin(), under.end(), a) != under.end();
          });
      if (bound && (pivot == nullptr || need.classes.count() < pivot->classes.count())) {
        pivot = &need;
      }
    }
    if (pivot == nullptr) continue;
    std::set<std::vector<SetId>> tried;
    bool some = false;
    for (const std::uint32_t a : pivot->alternatives) {
      if (some) break;
      const std::vector<BoundConstraint>& bound = demand_.alternatives[a].constraints;
      each_in(pivot->classes, [&](std::uint32_t c) {
        if (some || !model_.alternative(a).set.test(c)) return;
        std::vector<SetId> values;
        for (const std::uint32_t k : constraints) {
          for (std::size_t i = 0; i < bound.size(); ++i) {
            if (bound[i].constraint == k) values.push_back(model_.alternative(a).values[i][c]);
          }
        }
        if (!lists) {
          if (!tried.insert(values).second) return;
          some = filtered_serves(
              point, constraints, [&](std::uint32_t other, std::size_t i, std::uint32_t d) {
                const std::uint32_t k = demand_.alternatives[other].constraints[i].constraint;
                const auto at = std::find(constraints.begin(), constraints.end(), k);
                return model_.alternative(other).values[i][d] ==
                       values[static_cast<std::size_t>(at - constraints.begin())];
              });
          return;
        }
        // Of the values only those that narrow() left, each once for all that are told apart.
        for (const std::uint32_t value : model_.alternative(a).singles[number_of(a, first)][c]) {
          if (some || !allowed_[first].test(value) || !tried.insert({value}).second) continue;
          some = filtered_serves(point, constraints,
                                 [&](std::uint32_t other, std::size_t i, std::uint32_t d) {
                                   const auto& set = model_.alternative(other).singles[i][d];
                                   return std::binary_search(set.begin(), set.end(), value);
                                 });
        }
      });
    }
    if (!some) return false;
  }
  return true;
}

}  // namespace dibs::alloc
