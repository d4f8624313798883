#include "alloc/failure.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/strings.h"

namespace dibs::alloc {
namespace {

class Explainer {
 public:
  Explainer(Inventory& inventory, const Node& node, const Demand& demand,
            const ExplainOptions& options)
      : inventory_(inventory),
        node_(node),
        demand_(demand),
        view_(inventory.view(node)),
        options_(options) {}

  NodeFailure run() {
    for (const PoolView& pool : view_.pools) {
      made_.incomplete_pools += pool.state == PoolView::State::incomplete ? 1 : 0;
      made_.invalid_pools += pool.state == PoolView::State::invalid ? 1 : 0;
    }
    if (!view_.error.empty()) {
      made_.answer = Answer::failed;
      made_.error = view_.error;
      return std::move(made_);
    }
    Attempt attempt(inventory_, node_, view_, demand_);
    if (!attempt.prepare()) {
      made_.answer = Answer::failed;
      made_.error = attempt.error();
      return std::move(made_);
    }
    find_losses(attempt);
    SearchStats stats;
    made_.answer = search(attempt, options_.limits, stats);
    if (made_.answer == Answer::failed) made_.error = attempt.error();
    if (made_.answer == Answer::allocated || made_.answer == Answer::failed) {
      return std::move(made_);
    }
    made_.possible_when_idle = answer_of(demand_, true) == Answer::allocated;
    if (options_.conflict) {
      find_conflict();
      find_values(attempt);
    }
    if (options_.relaxations) find_relaxations();
    return std::move(made_);
  }

 private:
  Answer answer_of(const Demand& demand, bool idle = false) {
    Attempt attempt(inventory_, node_, view_, demand, idle);
    if (!attempt.prepare()) return Answer::failed;
    SearchStats stats;
    return search(attempt, options_.limits, stats);
  }

  /// What takes the device away from the alternative; false: nothing does.
  bool loss_of(Attempt& attempt, std::uint32_t a, Slot slot, Loss& out) {
    const Alternative& wanted = demand_.alternatives[a];
    const Device& device = *attempt.info(slot).device;
    const Features& features = inventory_.features();
    const auto lost = [&out](Cause cause, std::uint32_t number = 0, std::string subject = {}) {
      out = {cause, number, std::move(subject), 1};
      return true;
    };
    if (device.binding_conditions && !features.binding_conditions) {
      return lost(Cause::binding_conditions);
    }
    for (const auto* list : {&wanted.class_selectors, &wanted.selectors}) {
      for (std::uint32_t i = 0; i < list->size(); ++i) {
        const Verdict verdict = inventory_.selectors().verdict((*list)[i], view_.rows[slot]);
        if (verdict == Verdict::yes) continue;
        if (verdict == Verdict::error) return lost(Cause::selector_error, i);
        const bool of_class = list == &wanted.class_selectors;
        return lost(of_class ? Cause::class_selector : Cause::request_selector, i);
      }
    }
    if (view_.is_away(slot)) return lost(Cause::other_node);
    if (!wanted.admin() && attempt.use(slot).exclusive > 0) return lost(Cause::in_use);
    if (features.consumable_capacity) {
      if (attempt.intake_of(a, slot).kind != Intake::Kind::fits) return lost(Cause::capacity);
      if (!attempt.capacity_allows(a, slot)) return lost(Cause::capacity_in_use);
    }
    if (const Taint* taint = attempt.untolerated(a, device)) {
      return lost(Cause::taint, 0, taint->key);
    }
    if (!attempt.suits(a, slot)) {
      return lost(device.consumptions.empty() ? Cause::node_operations : Cause::counters);
    }
    const bool shared =
        device.multiple && features.consumable_capacity && attempt.use(slot).shared();
    if (!shared && !attempt.groups_allow(slot)) return lost(Cause::groups);
    if (!shared && !attempt.counters_allow(slot)) return lost(Cause::counters);
    for (const BoundConstraint& bound : wanted.constraints) {
      const SetId set = attempt.set_of(bound, slot);
      if (set == kFailed || !attempt.constraint_allows(bound.constraint, set)) {
        const std::uint32_t first = demand_.claims[wanted.claim].first_constraint;
        return lost(Cause::constraint, bound.constraint - first,
                    demand_.constraints[bound.constraint]->attribute);
      }
    }
    return false;
  }

  void find_losses(Attempt& attempt) {
    for (std::uint32_t a = 0; a < demand_.alternatives.size(); ++a) {
      const Alternative& wanted = demand_.alternatives[a];
      const Position& position = demand_.positions[wanted.position];
      RequestFindings found;
      found.claim = wanted.claim;
      found.request = wanted.position - demand_.claims[wanted.claim].first_position;
      found.alternative = a - position.first;
      found.wanted = attempt.count(a);
      for (Slot slot = 0; slot < attempt.slots(); ++slot) {
        if (!attempt.is_for(wanted, slot)) continue;
        ++found.seen;
        Loss loss;
        if (!loss_of(attempt, a, slot, loss)) {
          ++found.left;
          continue;
        }
        const auto same = std::find_if(found.losses.begin(), found.losses.end(), [&](Loss& known) {
          return known.cause == loss.cause && known.number == loss.number &&
                 known.subject == loss.subject;
        });
        if (same == found.losses.end()) {
          found.losses.push_back(std::move(loss));
        } else {
          ++same->devices;
        }
      }
      std::sort(found.losses.begin(), found.losses.end(), [](const Loss& x, const Loss& y) {
        if (x.cause != y.cause) return x.cause < y.cause;
        return x.number != y.number ? x.number < y.number : x.subject < y.subject;
      });
      made_.requests.push_back(std::move(found));
    }
  }

  /// Leaves out one thing after the other, and keeps it out while the rest still cannot be served.
  void find_conflict() {
    Bits positions(demand_.positions.size());
    Bits constraints(demand_.constraints.size());
    for (std::size_t p = 0; p < demand_.positions.size(); ++p) positions.set(p);
    for (std::size_t k = 0; k < demand_.constraints.size(); ++k) constraints.set(k);
    const auto leave_out = [&](Bits& from, std::size_t i) {
      from.reset(i);
      const Answer answer = answer_of(demand_.part(positions, constraints));
      if (answer == Answer::unavailable || answer == Answer::node_invalid) return;
      if (answer == Answer::undecided) made_.conflict_is_minimal = false;
      from.set(i);
    };
    // Requests first, later ones before earlier ones: what remains is the part that a reader
    // comes to first.
    for (std::size_t p = demand_.positions.size(); p-- > 0;) leave_out(positions, p);
    for (std::size_t k = demand_.constraints.size(); k-- > 0;) leave_out(constraints, k);
    for (std::uint32_t c = 0; c < demand_.claims.size(); ++c) {
      const ClaimDemand& claim = demand_.claims[c];
      for (std::uint32_t i = 0; i < claim.position_count; ++i) {
        if (positions.test(claim.first_position + i)) made_.conflict.push_back({c, i, kNoItem});
      }
      for (std::uint32_t i = 0; i < claim.claim->constraints.size(); ++i) {
        const std::uint32_t k = claim.first_constraint + i;
        if (constraints.test(k) && holds_some(k, positions)) {
          made_.conflict.push_back({c, kNoItem, i});
        }
      }
    }
  }

  void find_values(Attempt& attempt) {
    for (const ConflictItem& item : made_.conflict) {
      if (item.constraint == kNoItem) continue;
      const std::uint32_t k = demand_.claims[item.claim].first_constraint + item.constraint;
      ConstraintFindings found;
      found.claim = item.claim;
      found.constraint = item.constraint;
      std::map<ValueId, std::set<Slot>> holders;
      std::map<std::uint32_t, std::int64_t> wanted;  // by request; of alternatives the fewest
      for (std::uint32_t a = 0; a < demand_.alternatives.size(); ++a) {
        const Alternative& alternative = demand_.alternatives[a];
        const std::uint32_t request =
            alternative.position - demand_.claims[alternative.claim].first_position;
        if (!in_conflict(alternative.claim, request)) continue;
        for (const BoundConstraint& bound : alternative.constraints) {
          if (bound.constraint != k) continue;
          const std::int64_t count = attempt.count(a);
          const auto [at, added] = wanted.try_emplace(alternative.position, count);
          at->second = std::min(at->second, count);
          for (Slot slot = 0; slot < attempt.slots(); ++slot) {
            Loss loss;
            if (loss_of(attempt, a, slot, loss)) continue;
            for (const ValueId value : inventory_.attributes().values(attempt.set_of(bound, slot)))
              holders[value].insert(slot);
          }
        }
      }
      for (const auto& [position, count] : wanted) found.wanted += count;
      for (const auto& [value, slots] : holders) {
        // What people know is the value; its type stands in front.
        const std::string& text = inventory_.attributes().text(value);
        found.values.emplace_back(text.substr(text.find(' ') + 1),
                                  static_cast<std::uint32_t>(slots.size()));
      }
      std::sort(found.values.begin(), found.values.end(), [](const auto& x, const auto& y) {
        return x.second != y.second ? x.second > y.second : x.first < y.first;
      });
      made_.constraints.push_back(std::move(found));
    }
  }

  bool holds_some(std::uint32_t constraint, const Bits& positions) const {
    return std::any_of(
        demand_.alternatives.begin(), demand_.alternatives.end(),
        [&](const Alternative& alternative) {
          return positions.test(alternative.position) &&
                 std::any_of(
                     alternative.constraints.begin(), alternative.constraints.end(),
                     [&](const BoundConstraint& bound) { return bound.constraint == constraint; });
        });
  }

  bool helps(const Demand& changed) { return answer_of(changed) == Answer::allocated; }

  /// The demand with one alternative asking for something else.
  Demand with(std::uint32_t a, DeviceRequest spec) {
    Demand changed = demand_;
    specs_.push_back(std::make_unique<DeviceRequest>(std::move(spec)));
    changed.alternatives[a].spec = specs_.back().get();
    return changed;
  }

  void find_relaxations() {
    // Only what is part of the conflict can help.
    Bits everything(demand_.positions.size());
    for (std::size_t p = 0; p < demand_.positions.size(); ++p) everything.set(p);
    for (const RequestFindings& found : made_.requests) {
      if (!in_conflict(found.claim, found.request)) continue;
      const std::uint32_t a =
          demand_.positions[demand_.claims[found.claim].first_position + found.request].first +
          found.alternative;
      Relaxation base;
      base.claim = found.claim;
      base.request = found.request;
      base.alternative = found.alternative;
      try_tolerations(a, found, base);
      try_fewer(a, found, base);
      try_less(a, base);
      try_selectors(a, base);
    }
    for (const ConflictItem& item : made_.conflict) {
      if (item.constraint == kNoItem) continue;
      Bits constraints(demand_.constraints.size());
      for (std::size_t k = 0; k < demand_.constraints.size(); ++k) constraints.set(k);
      constraints.reset(demand_.claims[item.claim].first_constraint + item.constraint);
      if (!helps(demand_.part(everything, constraints))) continue;
      Relaxation relaxation;
      relaxation.kind = Relaxation::Kind::drop_constraint;
      relaxation.claim = item.claim;
      relaxation.number = item.constraint;
      made_.relaxations.push_back(relaxation);
    }
    if (made_.possible_when_idle) {
      Relaxation relaxation;
      relaxation.kind = Relaxation::Kind::release;
      relaxation.devices = to_release();
      relaxation.number = static_cast<std::uint32_t>(relaxation.devices.size());
      made_.relaxations.push_back(relaxation);
    }
    std::stable_sort(made_.relaxations.begin(), made_.relaxations.end(),
                     [](const Relaxation& x, const Relaxation& y) { return x.kind < y.kind; });
  }

  bool in_conflict(std::uint32_t claim, std::uint32_t request) const {
    if (!options_.conflict) return true;
    return std::any_of(made_.conflict.begin(), made_.conflict.end(), [&](const ConflictItem& item) {
      return item.claim == claim && item.request == request;
    });
  }

  void try_tolerations(std::uint32_t a, const RequestFindings& found, Relaxation relaxation) {
    for (const Loss& loss : found.losses) {
      if (loss.cause != Cause::taint) continue;
      DeviceRequest spec = *demand_.alternatives[a].spec;
      spec.tolerations.push_back({loss.subject, "Exists", {}, {}});
      if (!helps(with(a, std::move(spec)))) continue;
      relaxation.kind = Relaxation::Kind::tolerate;
      relaxation.subject = loss.subject;
      made_.relaxations.push_back(relaxation);
    }
  }

  void try_fewer(std::uint32_t a, const RequestFindings& found, Relaxation relaxation) {
    if (demand_.alternatives[a].all()) return;
    for (std::int64_t count = found.wanted - 1; count > 0; --count) {
      DeviceRequest spec = *demand_.alternatives[a].spec;
      spec.count = count;
      if (!helps(with(a, std::move(spec)))) continue;
      relaxation.kind = Relaxation::Kind::fewer;
      relaxation.number = static_cast<std::uint32_t>(count);
      made_.relaxations.push_back(relaxation);
      return;
    }
  }

  /// The most that some device has left of a capacity, where more was asked for.
  void try_less(std::uint32_t a, Relaxation relaxation) {
    constexpr std::size_t kMost = 8;
    const DeviceRequest& spec = *demand_.alternatives[a].spec;
    for (std::size_t i = 0; i < spec.capacity.size(); ++i) {
      const CapacityRequest& asked = spec.capacity[i];
      std::set<Amount, std::greater<>> amounts;
      for (const Row row : view_.rows) {
        for (const Capacity& capacity : inventory_.row(row).device->capacities) {
          if (capacity.name != asked.name) continue;
          Amount left = capacity.amount;
          for (const auto& [name, consumed] : inventory_.use(row).consumed) {
            if (name == asked.name) left -= consumed;
          }
          if (left > 0 && left < asked.amount) amounts.insert(left / kAmountUnit * kAmountUnit);
        }
      }
      std::size_t tried = 0;
      for (const Amount amount : amounts) {
        if (amount == 0 || tried++ == kMost) break;
        const Quantity quantity(static_cast<std::int64_t>(amount / kAmountUnit), 0,
                                asked.quantity.format());
        DeviceRequest changed = spec;
        changed.capacity[i] = {asked.name, quantity, amount};
        if (!helps(with(a, std::move(changed)))) continue;
        relaxation.kind = Relaxation::Kind::less;
        relaxation.subject = cat(asked.name, " ", quantity.canonical());
        made_.relaxations.push_back(relaxation);
        break;
      }
    }
  }

  void try_selectors(std::uint32_t a, Relaxation relaxation) {
    const std::size_t count = demand_.alternatives[a].selectors.size();
    for (std::size_t i = 0; i < count; ++i) {
      Demand changed = demand_;
      auto& selectors = changed.alternatives[a].selectors;
      selectors.erase(selectors.begin() + static_cast<std::ptrdiff_t>(i));
      if (!helps(changed)) continue;
      relaxation.kind = Relaxation::Kind::drop_selector;
      relaxation.number = static_cast<std::uint32_t>(i);
      made_.relaxations.push_back(relaxation);
    }
  }

  /// Devices of others that would do, were they free, and one fewer would not. Which set is the
  /// smallest of all is as hard a question as the allocation itself: a few are tried. Empty where
  /// devices are shared: what several have is not so easily thought away.
  std::vector<std::string> to_release() {
    Attempt attempt(inventory_, node_, view_, demand_, true);
    SearchStats stats;
    if (!attempt.prepare() || search(attempt, options_.limits, stats) != Answer::allocated) {
      return {};
    }
    std::set<Slot> picked;
    for (const Picked& pick : attempt.picked()) {
      if (is_exclusive(pick.slot)) picked.insert(pick.slot);
    }
    // Those that would be picked may not be in the way themselves: partitions of one that is.
    std::vector<Slot> all;
    for (Slot slot = 0; slot < attempt.slots(); ++slot) {
      if (is_exclusive(slot)) all.push_back(slot);
    }
    constexpr std::size_t kMost = 64;
    std::vector<Slot> best;
    const auto consider = [&](const std::vector<Slot>& held) {
      if (held.size() > kMost || best.size() == 1) return;
      std::vector<Slot> found = needed_of(held);
      if (!found.empty() && (best.empty() || found.size() < best.size())) best = std::move(found);
    };
    consider({picked.begin(), picked.end()});
    consider(all);
    consider({all.rbegin(), all.rend()});
    std::vector<std::string> made;
    for (const Slot slot : best) made.push_back(attempt.id(slot));
    std::sort(made.begin(), made.end());
    return made;
  }

  bool is_exclusive(Slot slot) const {
    const DeviceUse& use = inventory_.use(view_.rows[slot]);
    return use.exclusive == 1 && !use.shared();
  }

  /// Gives these devices back, takes one after the other again where that does no harm, and returns
  /// those that have to stay free; none when all of them are not enough. Leaves the inventory as it
  /// was.
  std::vector<Slot> needed_of(const std::vector<Slot>& held) {
    const auto change = [&](Slot slot, bool take) {
      const RowInfo& row = inventory_.row(view_.rows[slot]);
      const Slice& slice = row.record->slice;
      if (take) {
        inventory_.take_device(slice.driver, slice.pool, row.device->name);
      } else {
        inventory_.release_device(slice.driver, slice.pool, row.device->name);
      }
    };
    for (const Slot slot : held) change(slot, false);
    const bool enough = answer_of(demand_) == Answer::allocated;
    std::vector<Slot> needed;
    for (const Slot slot : held) {
      change(slot, true);
      if (!enough) continue;
      if (answer_of(demand_) == Answer::allocated) continue;
      change(slot, false);
      needed.push_back(slot);
    }
    for (const Slot slot : needed) change(slot, true);
    return needed;
  }

  static constexpr std::uint32_t kNoItem = 0xffffffff;

  Inventory& inventory_;
  const Node& node_;
  const Demand& demand_;
  const NodeView& view_;
  const ExplainOptions& options_;
  std::vector<std::unique_ptr<DeviceRequest>> specs_;
  NodeFailure made_;
};

}  // namespace

NodeFailure explain(Inventory& inventory, const Node& node, const Demand& demand,
                    const ExplainOptions& options) {
  return Explainer(inventory, node, demand, options).run();
}

}  // namespace dibs::alloc
