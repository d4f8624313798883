#include "alloc/attempt.h"

#include <algorithm>
#include <limits>

#include "base/strings.h"

namespace dibs::alloc {

const DeviceUse Attempt::kUnused;
const SetMembers Attempt::kNoMembers;

Attempt::Attempt(Inventory& inventory, const Node& node, const NodeView& view, const Demand& demand,
                 bool idle)
    : inventory_(inventory),
      node_(node),
      view_(view),
      demand_(demand),
      idle_(idle),
      parts_(demand.alternatives.size()),
      taken_(view.rows.size()),
      claim_taken_(demand.claims.size(), Bits(view.rows.size())),
      claim_results_(demand.claims.size()),
      constraints_(demand.constraints.size()) {
  const std::size_t words = (view.rows.size() + 63) / 64;
  for (Part& part : parts_) {
    part.known.resize(words);
    part.candidates.resize(view.rows.size());
    part.fatal.resize(view.rows.size());
  }
  std::uint32_t counters = 0;
  std::uint32_t sets = 0;
  for (const PoolView& pool : view.pools) {
    first_counter_.push_back(counters);
    first_set_.push_back(sets);
    if (pool.count == 0 || !inventory.features().partitionable_devices) continue;
    inventory.resolve(*pool.generation);
    counters += static_cast<std::uint32_t>(pool.generation->available.size());
    sets += static_cast<std::uint32_t>(pool.generation->sets.size());
  }
  consumed_.resize(counters);
  set_members_.resize(sets);
}

std::string Attempt::id(Slot slot) const {
  const RowInfo& row = info(slot);
  return device_id(row.record->slice, *row.device);
}

bool Attempt::fail(std::string text) {
  error_ = std::move(text);
  return false;
}

bool Attempt::multiple(const Device& device) const {
  return device.multiple && inventory_.features().consumable_capacity;
}

bool Attempt::prepare() {
  for (const ClaimDemand& part : demand_.claims) {
    std::int64_t least = 0;
    for (std::uint32_t i = 0; i < part.position_count; ++i) {
      const Position& position = demand_.positions[part.first_position + i];
      if (!position.error.empty()) return fail(position.error);
      std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
      for (std::uint32_t a = position.first; a < position.first + position.count; ++a) {
        if (!prepare_alternative(a)) return false;
        fewest = std::min(fewest, parts_[a].count);
      }
      // A count may be anything up to 2^63-1.
      if (__builtin_add_overflow(least, fewest, &least)) {
        least = std::numeric_limits<std::int64_t>::max();
      }
    }
    if (least > demand_.most_results) {
      return fail(cat("claim ", part.claim->id, ": number of requested devices ", least,
                      " exceeds the claim limit of ", demand_.most_results));
    }
    if (!part.constraint_error.empty()) return fail(part.constraint_error);
  }
  return true;
}

bool Attempt::prepare_alternative(std::uint32_t alternative) {
  const Alternative& wanted = demand_.alternatives[alternative];
  if (!wanted.error.empty()) return fail(wanted.error);
  if (wanted.all()) return prepare_all(alternative);
  parts_[alternative].count = wanted.spec->count;
  return true;
}

bool Attempt::prepare_all(std::uint32_t alternative) {
  const Alternative& wanted = demand_.alternatives[alternative];
  Part& part = parts_[alternative];
  const std::string where =
      cat("claim ", demand_.claims[wanted.claim].claim->id, ", request ", wanted.spec->name);
  for (const PoolView& pool : view_.pools) {
    if (pool.state != PoolView::State::complete) {
      return fail(cat(where, ": asks for all devices, but resource pool ", pool.pool->driver, "/",
                      pool.pool->name, " is currently ",
                      pool.state == PoolView::State::incomplete ? "being updated" : "invalid"));
    }
    for (Slot slot = pool.first; slot < pool.first + pool.count; ++slot) {
      const Verdict verdict = selectable(alternative, slot);
      if (verdict == Verdict::no) continue;
      if (verdict == Verdict::error) {
        explain_selectors(alternative, slot);
        return false;
      }
      if (inventory_.features().consumable_capacity) {
        const Intake& needed = intake_of(alternative, slot);
        if (needed.kind == Intake::Kind::refused) continue;
        if (needed.kind == Intake::Kind::error) {
          return fail(cat(where, ": checking capacity for device ", info(slot).device->name, ": ",
                          needed.error));
        }
      }
      part.all.push_back(slot);
    }
  }
  part.count = static_cast<std::int64_t>(part.all.size());
  return true;
}

Verdict Attempt::selectable(std::uint32_t alternative, Slot slot) {
  const Alternative& wanted = demand_.alternatives[alternative];
  const RowInfo& row = info(slot);
  if (!row.plain && row.device->binding_conditions && !inventory_.features().binding_conditions) {
    return Verdict::no;
  }
  if (!is_for(wanted, slot)) return Verdict::no;
  SelectorTable& selectors = inventory_.selectors();
  for (const auto* list : {&wanted.class_selectors, &wanted.selectors}) {
    for (const SelectorId id : *list) {
      const Verdict verdict = selectors.verdict(id, view_.rows[slot]);
      if (verdict != Verdict::yes) return verdict;
    }
  }
  return view_.is_away(slot) ? Verdict::no : Verdict::yes;
}

void Attempt::explain_selectors(std::uint32_t alternative, Slot slot) {
  const Alternative& wanted = demand_.alternatives[alternative];
  SelectorTable& selectors = inventory_.selectors();
  for (const auto* list : {&wanted.class_selectors, &wanted.selectors}) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      const SelectorId id = (*list)[i];
      if (selectors.verdict(id, view_.rows[slot]) != Verdict::error) continue;
      const bool of_class = list == &wanted.class_selectors;
      const std::string where =
          cat(of_class ? "class " : "claim ",
              of_class ? wanted.device_class->name : demand_.claims[wanted.claim].claim->id,
              ": selector #", i);
      const api::Selector& selector = selectors.selector(id);
      if (inventory_.resources() == Resources::named) {
        error_ = cat("checking node ", quoted(node_.name), " and resources of driver ",
                     quoted(wanted.spec->driver), ": evaluate ", of_class ? "filter" : "request",
                     " CEL expression: ", selectors.error(id, view_.rows[slot]));
      } else if (selector.program == nullptr) {
        error_ = cat(where, ": CEL compile error: ", selector.message);
      } else {
        error_ = cat(where, " on device ", this->id(slot),
                     ": CEL runtime error: ", selectors.error(id, view_.rows[slot]));
      }
      return;
    }
  }
}

bool Attempt::suits(std::uint32_t alternative, Slot slot) const {
  const Features& features = inventory_.features();
  const RowInfo& row = info(slot);
  const Device& device = *row.device;
  if (!row.record->slice.skip_operations.is_null() && !features.ignore_skip_operations &&
      !(features.optional_node_operations && node_.optional_node_operations)) {
    return false;
  }
  if (!device.consumptions.empty() && !features.partitionable_devices) return false;
  return untolerated(alternative, device) == nullptr;
}

const Taint* Attempt::untolerated(std::uint32_t alternative, const Device& device) const {
  if (!inventory_.features().device_taints) return nullptr;
  const std::vector<Toleration>& tolerations = demand_.alternatives[alternative].spec->tolerations;
  for (const Taint& taint : device.taints) {
    if (std::none_of(tolerations.begin(), tolerations.end(),
                     [&](const Toleration& toleration) { return toleration.tolerates(taint); })) {
      return &taint;
    }
  }
  return nullptr;
}

void Attempt::settle(std::uint32_t alternative, std::size_t word) {
  const Alternative& wanted = demand_.alternatives[alternative];
  Part& part = parts_[alternative];
  part.known.set(word);
  const auto first = static_cast<Slot>(word * 64);
  const Slot last = std::min<Slot>(first + 64, slots());
  const bool names_capacities = !wanted.spec->capacity.empty();
  for (Slot slot = first; slot < last; ++slot) {
    const DeviceUse& held = use(slot);
    if (!wanted.admin() && held.exclusive > 0) continue;
    if (info(slot).plain && !names_capacities && held.consumed.empty()) {
      const Verdict verdict = wanted.all() ? Verdict::yes : selectable(alternative, slot);
      if (verdict == Verdict::yes) part.candidates.set(slot);
      if (verdict == Verdict::error) part.fatal.set(slot);
      continue;
    }
    if (!wanted.all()) {
      const Verdict verdict = selectable(alternative, slot);
      if (verdict == Verdict::no) continue;
      if (verdict == Verdict::error) {
        part.fatal.set(slot);
        continue;
      }
      if (inventory_.features().consumable_capacity) {
        const Intake& needed = intake_of(alternative, slot);
        if (needed.kind == Intake::Kind::error) part.fatal.set(slot);
        if (needed.kind != Intake::Kind::fits || !capacity_allows(alternative, slot, false)) {
          continue;
        }
      }
    }
    if (suits(alternative, slot)) part.candidates.set(slot);
  }
}

void Attempt::explain_fatal(std::uint32_t alternative, Slot slot) {
  if (selectable(alternative, slot) == Verdict::error) return explain_selectors(alternative, slot);
  const Alternative& wanted = demand_.alternatives[alternative];
  error_ =
      cat("claim ", demand_.claims[wanted.claim].claim->id, ", request ", wanted.spec->name,
          ": checking capacity for device ", id(slot), ": ", intake_of(alternative, slot).error);
}

const Intake& Attempt::intake_of(std::uint32_t alternative, Slot slot) {
  static const Intake kNothing;
  const Device& device = *info(slot).device;
  const DeviceRequest& spec = *demand_.alternatives[alternative].spec;
  if (device.capacities.empty() && spec.capacity.empty()) return kNothing;
  Part& part = parts_[alternative];
  if (part.intakes.empty()) {
    part.intakes.resize(slots());
    part.read.resize(slots());
  }
  Intake& known = part.intakes[slot];
  if (!part.read.test(slot)) {
    part.read.set(slot);
    known = intake(device, spec, inventory_.features().fractional_capacity);
  }
  return known;
}

bool Attempt::capacity_allows(std::uint32_t alternative, Slot slot, bool with_taken) {
  const Intake& needed = intake_of(alternative, slot);
  const Device& device = *info(slot).device;
  const DeviceUse& held = use(slot);
  const Share* here = with_taken ? share(slot) : nullptr;
  if (held.consumed.empty() && here == nullptr) return true;
  for (std::size_t i = 0; i < needed.amounts.size(); ++i) {
    const Capacity& capacity = device.capacities[i];
    Amount total = needed.amounts[i];
    for (const auto& [name, amount] : held.consumed) {
      if (name == capacity.name) total += amount;
    }
    if (here != nullptr) total += here->consumed[i];
    if (total > capacity.amount) return false;
  }
  return true;
}

bool Attempt::groups_allow(Slot slot) const {
  const RowInfo& row = info(slot);
  if (row.counters == nullptr || !inventory_.features().compatibility_groups) return true;
  const std::uint32_t pool = view_.pool_of[slot];
  for (const SetUse& mine : row.counters->sets) {
    const SetMembers& before = members_before(pool, mine.set);
    const std::vector<Slot>& here = set_members_[first_set_[pool] + mine.set];
    std::size_t members = before.members + here.size();
    if (members == 0) continue;
    std::size_t without = before.without_groups;
    // Of the groups of this device, the first that all members share decides.
    const auto groups_of = [&](Slot member) -> const std::vector<std::uint32_t>& {
      const RowCounters& counters = *info(member).counters;
      return std::find_if(counters.sets.begin(), counters.sets.end(),
                          [&](const SetUse& use) { return use.set == mine.set; })
          ->groups;
    };
    for (const Slot member : here) without += groups_of(member).empty() ? 1 : 0;
    if (mine.groups.empty()) {
      if (without != members) return false;
      continue;
    }
    const bool common =
        std::any_of(mine.groups.begin(), mine.groups.end(), [&](std::uint32_t group) {
          std::size_t in_group = 0;
          for (const auto& [id, devices] : before.groups) in_group += id == group ? devices : 0;
          for (const Slot member : here) {
            const std::vector<std::uint32_t>& groups = groups_of(member);
            in_group += std::count(groups.begin(), groups.end(), group) > 0 ? 1 : 0;
          }
          return in_group == members;
        });
    if (!common) return false;
  }
  return true;
}

bool Attempt::counters_allow(Slot slot) const {
  const RowInfo& row = info(slot);
  if (row.counters == nullptr) return true;
  const std::uint32_t pool = view_.pool_of[slot];
  return std::all_of(row.counters->counters.begin(), row.counters->counters.end(),
                     [&](const CounterUse& use) {
                       return use.amount <= std::max<Amount>(0, available(pool, use.counter));
                     });
}

bool Attempt::counters_allow(const std::vector<Slot>& slots, std::size_t count) const {
  std::vector<Amount> total;
  for (std::size_t i = 0; i < count; ++i) {
    const RowInfo& row = info(slots[i]);
    // Shares may be paid for already.
    if (row.counters == nullptr || multiple(*row.device)) continue;
    total.resize(consumed_.size());
    const std::uint32_t pool = view_.pool_of[slots[i]];
    for (const CounterUse& use : row.counters->counters) {
      Amount& sum = total[first_counter_[pool] + use.counter];
      sum += use.amount;
      if (sum > std::max<Amount>(0, available(pool, use.counter)) && use.amount > 0) return false;
    }
  }
  return true;
}

void Attempt::count(Slot slot, int sign) {
  const RowInfo& row = info(slot);
  const std::uint32_t pool = view_.pool_of[slot];
  for (const CounterUse& use : row.counters->counters) {
    consumed_[first_counter_[pool] + use.counter] += sign * use.amount;
  }
  for (const SetUse& use : row.counters->sets) {
    std::vector<Slot>& members = set_members_[first_set_[pool] + use.set];
    sign > 0 ? members.push_back(slot) : members.pop_back();
  }
}

SetId Attempt::set_of(const BoundConstraint& bound, Slot slot) const {
  const RowInfo& row = info(slot);
  return inventory_.attributes().value(bound.column, view_.rows[slot], row.record->slice,
                                       *row.device);
}

bool Attempt::constraint_allows(std::uint32_t constraint, SetId set) const {
  const bool lists = inventory_.features().list_attributes;
  if (set == kMissing || (set == kIncomparable && lists)) return false;
  const std::vector<SetId>& held = constraints_[constraint];
  if (held.empty()) return true;
  if (set == kIncomparable) return false;
  const AttributeTable& attributes = inventory_.attributes();
  if (demand_.constraints[constraint]->kind == Constraint::Kind::match) {
    return lists ? attributes.intersect(held.back(), set) : held.back() == set;
  }
  return std::none_of(held.begin(), held.end(), [&](SetId other) {
    return lists ? attributes.intersect(other, set) : other == set;
  });
}

Refusal Attempt::add_constraints(std::uint32_t alternative, Slot slot) {
  const Alternative& wanted = demand_.alternatives[alternative];
  const bool lists = inventory_.features().list_attributes;
  std::size_t added = 0;
  for (const BoundConstraint& bound : wanted.constraints) {
    const Constraint& constraint = *demand_.constraints[bound.constraint];
    const SetId set = set_of(bound, slot);
    if (set == kFailed) {
      pop_constraints(alternative, added);
      const RowInfo& row = info(slot);
      AttributeTable& attributes = inventory_.attributes();
      if (!attributes.compile_error(bound.column).empty()) {
        error_ = cat("compile derived attribute ", constraint.attribute,
                     " failed: ", attributes.compile_error(bound.column));
      } else {
        error_ = cat("evaluate derived attribute ", constraint.attribute, " on device ", id(slot),
                     " failed: ", attributes.error(bound.column, row.record->slice, *row.device));
      }
      return Refusal::error;
    }
    if (!constraint_allows(bound.constraint, set)) {
      pop_constraints(alternative, added);
      if (!wanted.all()) return Refusal::constraint;
      error_ = cat("claim ", demand_.claims[wanted.claim].claim->id, ", request ",
                   wanted.spec->name, ": cannot add device ", id(slot),
                   " because a claim constraint would not be satisfied");
      return Refusal::error;
    }
    std::vector<SetId>& held = constraints_[bound.constraint];
    const bool narrows = lists && constraint.kind == Constraint::Kind::match && !held.empty();
    held.push_back(narrows ? inventory_.attributes().intersection(held.back(), set) : set);
    ++added;
  }
  return Refusal::none;
}

void Attempt::pop_constraints(std::uint32_t alternative, std::size_t count) {
  const std::vector<BoundConstraint>& bound = demand_.alternatives[alternative].constraints;
  for (std::size_t i = 0; i < count; ++i) constraints_[bound[i].constraint].pop_back();
}

Refusal Attempt::take(std::uint32_t alternative, Slot slot) {
  const Alternative& wanted = demand_.alternatives[alternative];
  const RowInfo& row = info(slot);
  const bool multi = multiple(*row.device);
  const bool capacity = inventory_.features().consumable_capacity;
  if (taken(alternative, slot)) return Refusal::in_use;
  if (capacity && !wanted.all() && !capacity_allows(alternative, slot)) return Refusal::capacity;
  // Whoever has the first share of a device has taken from the counters for all.
  const bool in_use = multi && (use(slot).shared() || share(slot) != nullptr);
  const bool counts = row.counters != nullptr && !in_use;
  if (counts && !groups_allow(slot)) return Refusal::groups;
  if (counts && !counters_allow(slot)) return Refusal::counters;
  const Refusal refusal = add_constraints(alternative, slot);
  if (refusal != Refusal::none) return refusal;
  if (capacity && wanted.all() && !capacity_allows(alternative, slot)) {
    pop_constraints(alternative, wanted.constraints.size());
    return Refusal::capacity;
  }
  if (counts) count(slot, 1);
  Trace trace;
  trace.counted = counts;
  trace.shared = multi;
  if (multi) {
    const Intake& needed = intake_of(alternative, slot);
    if (shares_.empty()) shares_.resize(slots());
    Share& share = shares_[slot];
    if (share.shares++ == 0) {
      share.consumed.assign(row.device->capacities.size(), 0);
      shared_.push_back(slot);
    }
    for (std::size_t i = 0; i < needed.amounts.size(); ++i) {
      share.consumed[i] += needed.amounts[i];
    }
  } else {
    trace.marked = !taken_.test(slot);
    taken_.set(slot);
    claim_taken_[wanted.claim].set(slot);
  }
  picked_.push_back({alternative, slot});
  traces_.push_back(trace);
  ++claim_results_[wanted.claim];
  return Refusal::none;
}

void Attempt::undo() {
  const Picked last = picked_.back();
  const Trace trace = traces_.back();
  const Alternative& wanted = demand_.alternatives[last.alternative];
  picked_.pop_back();
  traces_.pop_back();
  --claim_results_[wanted.claim];
  if (trace.shared) {
    Share& share = shares_[last.slot];
    const Intake& needed = intake_of(last.alternative, last.slot);
    for (std::size_t i = 0; i < needed.amounts.size(); ++i) {
      share.consumed[i] -= needed.amounts[i];
    }
    // What was shared last is given back first.
    if (--share.shares == 0) shared_.pop_back();
  } else {
    if (trace.marked) taken_.reset(last.slot);
    claim_taken_[wanted.claim].reset(last.slot);
  }
  if (trace.counted) count(last.slot, -1);
  pop_constraints(last.alternative, wanted.constraints.size());
}

}  // namespace dibs::alloc
