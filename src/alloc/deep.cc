#include "alloc/deep.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>

#include "alloc/bounds.h"
#include "alloc/model.h"

namespace dibs::alloc {
namespace {

/// Work in vain after which a choice is examined thoroughly before the next try.
constexpr std::uint64_t kPatience = 2'000;

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

class DeepSearch : public RequestOrder<DeepSearch> {
 public:
  DeepSearch(Attempt& attempt, std::uint64_t most_steps, SearchStats& stats)
      : RequestOrder(attempt, stats),
        model_(attempt),
        bounds_(attempt, model_, tally_, stats.steps),
        most_steps_(most_steps) {
    tally_.taken.resize(model_.classes().size());
    tally_.by_claim.assign(demand_.claims.size(),
                           std::vector<std::int64_t>(model_.classes().size()));
    stats_.steps += model_.classes().size() * demand_.alternatives.size() + attempt.slots();
    last_use_.resize(demand_.constraints.size());
    admin_until_.resize(demand_.claims.size());
    for (const Alternative& alternative : demand_.alternatives) {
      if (alternative.admin()) admin_until_[alternative.claim] = alternative.position + 1;
      for (const BoundConstraint& bound : alternative.constraints) {
        last_use_[bound.constraint] =
            std::max(last_use_[bound.constraint], alternative.position + 1);
      }
    }
  }

  End run() {
    if (demand_.positions.empty()) return End::found;
    if (!bounds_.possible({}) || !bounds_.thoroughly_possible({})) return End::nothing;
    const auto positions = static_cast<std::uint32_t>(demand_.positions.size());
    // A claim that cannot be served on its own is a short proof, where the claims before it have
    // many ways to be served.
    for (std::uint32_t c = 1; c < demand_.claims.size(); ++c) {
      const ClaimDemand& claim = demand_.claims[c];
      const std::uint32_t end = claim.first_position + claim.position_count;
      if (claim.position_count == 0 || model_.first_fault(0) < end) continue;
      if (only(claim.first_position, end, most_steps_ / 8) == End::nothing) return End::nothing;
    }
    return only(0, positions, most_steps_);
  }

  End choose(std::uint32_t alternative, std::int64_t index, Slot slot) {
    const Alternative& wanted = demand_.alternatives[alternative];
    if (stats_.steps >= step_limit_) return End::gave_up;
    const Point point{wanted.position, alternative, index, slot};
    // Devices for "all" come one after the other without a choice: one look at the first is enough.
    const bool look = !wanted.all() || index == 0;
    std::string key;
    if (look) {
      // What is known costs less than what has to be found out.
      const std::string& here = state(point);
      if (const auto known = dead_ends_.find(here); known != dead_ends_.end()) return known->second;
      key = here;
      if (!bounds_.possible(point)) {
        dead_ends_.emplace(std::move(key), End::nothing);
        return End::nothing;
      }
    }
    Usage usage;
    const bool comparable = index == 0 && compares_usage();
    if (comparable) measure(point, usage);
    if (comparable && is_worse(usage)) return End::nothing;
    const End end = wanted.all() ? all(alternative, index) : try_devices(point);
    if (look && (end == End::nothing || end == End::too_many)) {
      dead_ends_.emplace(std::move(key), end);
      if (comparable) remember(std::move(usage));
    }
    return end;
  }

  End try_device(std::uint32_t alternative, std::int64_t index, Slot slot) {
    return ++stats_.steps >= step_limit_ ? End::gave_up : take(alternative, index, slot);
  }
  void took(std::uint32_t alternative, Slot slot) {
    stats_.steps += 20;
    count(alternative, slot, 1);
  }
  void gives_back(std::uint32_t alternative, Slot slot) { count(alternative, slot, -1); }

 private:
  /// The positions from `first` to before `end`, as if there were no others. Found devices are kept
  /// where these are all there are.
  End only(std::uint32_t first, std::uint32_t end, std::uint64_t steps) {
    first_ = first;
    end_ = end;
    bounds_.look_until(end);
    dead_ends_.clear();
    hopeless_.clear();
    step_limit_ = std::min(most_steps_, stats_.steps + steps);
    const End result = position(first);
    if (result == End::too_many) return End::nothing;
    const bool whole = first == 0 && end == demand_.positions.size();
    if (result == End::found && !whole) {
      while (!attempt_.picked().empty()) {
        const Picked last = attempt_.picked().back();
        count(last.alternative, last.slot, -1);
        attempt_.undo();
      }
    }
    return result;
  }

  End try_devices(const Point& point) {
    const std::uint64_t before = stats_.steps;
    bool examined = false;
    return each_candidate(point.alternative, point.slot, [&](Slot at) -> std::optional<End> {
      ++stats_.steps;
      if (has_twin(point, at)) return std::nullopt;
      if (!examined && stats_.steps - before > kPatience) {
        examined = true;
        if (!bounds_.thoroughly_possible(point)) return End::nothing;
      }
      return unless_nothing(try_device(point.alternative, point.index, at));
    });
  }

  /// Whether an earlier device stands for this one: it was tried, or passed by, to no avail.
  bool has_twin(const Point& point, Slot slot) const {
    const std::uint32_t c = model_.class_of(slot);
    const DeviceClassInfo& info = model_.classes()[c];
    const bool admin = demand_.alternatives[point.alternative].admin();
    for (const Slot member : info.members) {
      ++stats_.steps;
      if (member >= slot) break;
      if (attempt_.taken(point.alternative, member)) continue;
      // To an administrator it matters whether someone else has the device.
      if (admin && attempt_.taken_anywhere(member) != attempt_.taken_anywhere(slot)) continue;
      if (info.multiple && !same_share(point, member, slot)) continue;
      return true;
    }
    if (info.bin == kNone) return false;
    const Bin& bin = model_.bins()[info.bin];
    if (bin.shares || admin) return false;
    const std::uint32_t claim = demand_.alternatives[point.alternative].claim;
    for (std::uint32_t b = 0; b < model_.bins().size(); ++b) {
      const Bin& other = model_.bins()[b];
      if (b == info.bin || other.type != bin.type) continue;
      const DeviceClassInfo& twin = model_.classes()[other.classes[info.local]];
      // Of bins in the same state the lowest free members correspond.
      const auto place = std::find(info.members.begin(), info.members.end(), slot);
      if (twin.members[static_cast<std::size_t>(place - info.members.begin())] > slot) continue;
      bool same = true;
      for (std::size_t i = 0; i < bin.classes.size() && same; ++i) {
        ++stats_.steps;
        same = tally_.taken[bin.classes[i]] == tally_.taken[other.classes[i]] &&
               tally_.by_claim[claim][bin.classes[i]] == tally_.by_claim[claim][other.classes[i]];
      }
      if (same) return true;
    }
    return false;
  }

  /// Of two shared devices: nobody can tell which is which, and neither was picked for this
  /// request.
  bool same_share(const Point& point, Slot a, Slot b) const {
    const std::vector<Picked>& picked = attempt_.picked();
    for (std::int64_t i = 1; i <= point.index; ++i) {
      if (picked[picked.size() - static_cast<std::size_t>(i)].slot == a) return false;
    }
    const Attempt::Share* x = attempt_.share(a);
    const Attempt::Share* y = attempt_.share(b);
    if (x == nullptr || y == nullptr) return x == y;
    return x->consumed == y->consumed;
  }

  void count(std::uint32_t alternative, Slot slot, int sign) {
    const std::uint32_t c = model_.class_of(slot);
    if (model_.classes()[c].multiple) return;
    if (!attempt_.last_was_taken()) tally_.taken[c] += sign;
    tally_.by_claim[demand_.alternatives[alternative].claim][c] += sign;
  }

  /// Everything that the outcome below the point can depend on. Valid until the next call.
  const std::string& state(const Point& point) {
    std::string& key = state_;
    key.clear();
    const Position& position = demand_.positions[point.position];
    put(key, point.alternative);
    put(key, point.index);
    put(key, point.index == 0 ? Slot{0} : point.slot);
    const std::vector<DeviceClassInfo>& classes = model_.classes();
    // Who took a device matters to administrators of the same claim alone.
    const bool by_claim = admin_until_[position.claim] > point.position;
    const std::vector<std::int64_t>& claimed = tally_.by_claim[position.claim];
    sums_.assign(model_.suffix_count(point.position) * (by_claim ? 2 : 1), 0);
    for (std::uint32_t c = 0; c < classes.size(); ++c) {
      const std::uint32_t suffix = model_.suffix_class(point.position, c);
      if (suffix == kNone || classes[c].bin != kNone) continue;
      if (point.index == 0) {
        sums_[suffix] += tally_.taken[c];
        if (by_claim) sums_[suffix + model_.suffix_count(point.position)] += claimed[c];
      } else {
        put(key, static_cast<std::int16_t>(tally_.taken[c]));
        if (by_claim) put(key, static_cast<std::int16_t>(claimed[c]));
      }
    }
    for (const std::int64_t sum : sums_) put(key, static_cast<std::int16_t>(sum));
    stats_.steps += classes.size() / 4;
    if (point.index > 0 && demand_.alternatives[point.alternative].admin()) {
      // Who else has which of the devices ahead matters, too.
      for (std::size_t w = 0; w < (attempt_.slots() + 63) / 64; ++w) {
        put(key, attempt_.taken_word(w));
        put(key, attempt_.taken_for(point.alternative).word(w));
      }
    }
    put_bins(point, key);
    put_shares(point, key);
    put_constraints(point, key);
    if (model_.may_exceed()) put(key, attempt_.picked_for(position.claim));
    stats_.steps += 20 + key.size() / 8;
    return key;
  }

  /// What is taken when a request begins. With the same constraints held, a state in which at least
  /// as much is taken as in one without a solution has none either.
  struct Usage {
    std::string group;                  // what must be the same
    std::vector<std::int16_t> amounts;  // what may only be more
  };

  bool compares_usage() const {
    return !model_.has_admin() && attempt_.shared().empty() && !model_.may_exceed();
  }

  void measure(const Point& point, Usage& made) {
    put(made.group, point.alternative);
    put_constraints(point, made.group);
    const std::vector<DeviceClassInfo>& classes = model_.classes();
    made.amounts.assign(model_.suffix_count(point.position), 0);
    for (std::uint32_t c = 0; c < classes.size(); ++c) {
      const std::uint32_t suffix = model_.suffix_class(point.position, c);
      const auto taken = static_cast<std::int16_t>(tally_.taken[c]);
      if (classes[c].bin != kNone) {
        made.amounts.push_back(taken);
      } else if (suffix != kNone) {
        made.amounts[suffix] = static_cast<std::int16_t>(made.amounts[suffix] + taken);
      }
    }
    stats_.steps += classes.size() / 4;
  }

  bool is_worse(const Usage& usage) {
    const auto found = hopeless_.find(usage.group);
    if (found == hopeless_.end()) return false;
    for (const std::vector<std::int16_t>& known : found->second) {
      stats_.steps += known.size() / 8 + 1;
      if (std::equal(known.begin(), known.end(), usage.amounts.begin(),
                     [](std::int16_t a, std::int16_t b) { return a <= b; })) {
        return true;
      }
    }
    return false;
  }

  void remember(Usage usage) {
    constexpr std::size_t kMost = 64;
    std::vector<std::vector<std::int16_t>>& known = hopeless_[std::move(usage.group)];
    if (known.size() < kMost) known.push_back(std::move(usage.amounts));
  }

  void put_bins(const Point& point, std::string& key) {
    if (model_.bins().empty()) return;
    const std::uint32_t claim = demand_.positions[point.position].claim;
    const bool by_claim = admin_until_[claim] > point.position;
    begin_parts();
    for (const Bin& bin : model_.bins()) {
      const std::size_t before = parts_.size();
      put(parts_, bin.type);
      bool matters = false;
      for (const std::uint32_t c : bin.classes) {
        if (model_.suffix_class(point.position, c) == kNone) continue;
        matters = true;
        put(parts_, static_cast<std::int16_t>(tally_.taken[c]));
        if (by_claim) put(parts_, static_cast<std::int16_t>(tally_.by_claim[claim][c]));
        // Within a request, what was passed by is over.
        if (point.index > 0) put(parts_, model_.classes()[c].members.front());
      }
      if (!matters) {
        parts_.resize(before);
        continue;
      }
      for (const std::uint32_t counter : bin.counters) {
        put(parts_, attempt_.available(bin.pool, counter));
      }
      if (model_.has_groups()) put_groups(bin, parts_);
      end_part(before);
    }
    put_parts(key);
    stats_.steps += model_.classes().size() + 8 * model_.bins().size();
  }

  // Parts of a key whose order does not matter: put one after the other, then sorted.
  void begin_parts() {
    parts_.clear();
    part_ends_.clear();
  }
  void end_part(std::size_t begin) { part_ends_.emplace_back(begin, parts_.size()); }
  void put_parts(std::string& key) {
    const std::string_view all = parts_;
    const auto text = [all](const std::pair<std::size_t, std::size_t>& part) {
      return all.substr(part.first, part.second - part.first);
    };
    std::sort(part_ends_.begin(), part_ends_.end(),
              [&](const auto& a, const auto& b) { return text(a) < text(b); });
    for (const auto& part : part_ends_) {
      key.append(text(part));
      key.push_back(';');
    }
  }

  void put_groups(const Bin& bin, std::string& key) {
    for (const std::uint32_t set : bin.sets) {
      std::vector<std::uint32_t> members;
      for (const Slot slot : attempt_.set_members(bin.pool, set)) {
        members.push_back(model_.classes()[model_.class_of(slot)].local);
      }
      std::sort(members.begin(), members.end());
      for (const std::uint32_t member : members) put(key, member);
      key.push_back(',');
    }
  }

  void put_shares(const Point& point, std::string& key) {
    if (attempt_.shared().empty()) return;
    begin_parts();
    for (const Slot slot : attempt_.shared()) {
      const std::uint32_t c = model_.class_of(slot);
      if (model_.suffix_class(point.position, c) == kNone && model_.classes()[c].bin == kNone) {
        continue;
      }
      const std::size_t before = parts_.size();
      put(parts_, c);
      // What this request has already, or has passed by, it cannot have again.
      if (point.index > 0) put(parts_, slot);
      for (const Amount amount : attempt_.share(slot)->consumed) put(parts_, amount);
      end_part(before);
    }
    put_parts(key);
    stats_.steps += 4 * attempt_.shared().size();
  }

  void put_constraints(const Point& point, std::string& key) {
    const std::uint32_t claim = demand_.positions[point.position].claim;
    const ClaimDemand& part = demand_.claims[claim];
    const auto last = part.first_constraint + part.claim->constraints.size();
    for (std::uint32_t k = part.first_constraint; k < last; ++k) {
      if (last_use_[k] <= point.position) continue;
      const std::vector<SetId>& held = attempt_.constraint_sets(k);
      if (demand_.constraints[k]->kind == Constraint::Kind::match) {
        put(key, held.empty() ? kUnread : held.back());
        continue;
      }
      std::vector<SetId> sorted = held;
      std::sort(sorted.begin(), sorted.end());
      for (const SetId set : sorted) put(key, set);
      put(key, kUnread);
    }
  }

  Tally tally_;
  Model model_;
  Bounds bounds_;
  std::uint64_t most_steps_;
  std::uint64_t step_limit_ = 0;
  std::unordered_map<std::string, End> dead_ends_;
  std::string state_;
  std::string parts_;
  std::vector<std::pair<std::size_t, std::size_t>> part_ends_;
  std::unordered_map<std::string, std::vector<std::vector<std::int16_t>>> hopeless_;
  std::vector<std::uint32_t> last_use_;     // by constraint: the position after the last it holds
  std::vector<std::uint32_t> admin_until_;  // by claim: the position after its last of this kind
  std::vector<std::int64_t> sums_;
};

}  // namespace

End deep_search(Attempt& attempt, std::uint64_t most_steps, SearchStats& stats) {
  stats.deep = true;
  return DeepSearch(attempt, most_steps, stats).run();
}

}  // namespace dibs::alloc
