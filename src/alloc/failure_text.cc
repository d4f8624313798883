#include <algorithm>

#include "alloc/failure.h"
#include "base/strings.h"

namespace dibs::alloc {
namespace {

constexpr std::uint32_t kNoItem = 0xffffffff;

std::string devices(std::uint32_t count) { return cat(count, count == 1 ? " device" : " devices"); }

std::string_view name_of(Cause cause) {
  switch (cause) {
    case Cause::class_selector:
      return "classSelector";
    case Cause::request_selector:
      return "requestSelector";
    case Cause::selector_error:
      return "selectorError";
    case Cause::other_node:
      return "otherNode";
    case Cause::binding_conditions:
      return "bindingConditions";
    case Cause::node_operations:
      return "nodeOperations";
    case Cause::in_use:
      return "inUse";
    case Cause::capacity:
      return "capacity";
    case Cause::capacity_in_use:
      return "capacityInUse";
    case Cause::taint:
      return "taint";
    case Cause::counters:
      return "counters";
    case Cause::groups:
      return "compatibilityGroups";
    case Cause::constraint:
      return "constraint";
  }
  return "";
}

std::string text_of(const Loss& loss, const Alternative& wanted) {
  const std::uint32_t n = loss.devices;
  const bool one = n == 1;
  switch (loss.cause) {
    case Cause::class_selector:
      return cat(n, one ? " does" : " do", " not match selector #", loss.number, " of class ",
                 wanted.device_class->name);
    case Cause::request_selector:
      return cat(n, one ? " does" : " do", " not match selector #", loss.number, " of the request");
    case Cause::selector_error:
      return cat("a selector fails on ", n);
    case Cause::other_node:
      return cat(n, one ? " is" : " are", " for other nodes");
    case Cause::binding_conditions:
      return cat(n, one ? " has" : " have", " binding conditions, which are off");
    case Cause::node_operations:
      return cat(n, one ? " needs" : " need", " a node that can skip the driver's preparation");
    case Cause::in_use:
      return cat(n, one ? " is" : " are", " in use");
    case Cause::capacity:
      return cat(n, one ? " does" : " do", " not have the capacity asked for");
    case Cause::capacity_in_use:
      return cat(n, one ? " has" : " have", " too little capacity left");
    case Cause::taint:
      return cat(n, one ? " has" : " have", " the taint ", loss.subject,
                 ", which is not tolerated");
    case Cause::counters:
      return cat(n, one ? " needs" : " need", " more of the shared counters than is left");
    case Cause::groups:
      return cat(n, one ? " is" : " are", " not compatible with partitions in use");
    case Cause::constraint:
      return cat(n, one ? " lacks" : " lack", " the attribute ", loss.subject);
  }
  return {};
}

std::string request_of(const Demand& demand, std::uint32_t claim, std::uint32_t request) {
  const Claim& source = *demand.claims[claim].claim;
  return cat("request ", source.requests[request].name, " of claim ", source.id);
}

const Alternative& alternative_of(const Demand& demand, std::uint32_t claim, std::uint32_t request,
                                  std::uint32_t alternative) {
  const ClaimDemand& part = demand.claims[claim];
  return demand.alternatives[demand.positions[part.first_position + request].first + alternative];
}

std::string_view attribute_of(const Demand& demand, std::uint32_t claim, std::uint32_t constraint) {
  return demand.claims[claim].claim->constraints[constraint].attribute;
}

std::string text_of(const ConflictItem& item, const Demand& demand) {
  if (item.constraint == kNoItem) return request_of(demand, item.claim, item.request);
  const Constraint& constraint = demand.claims[item.claim].claim->constraints[item.constraint];
  return cat(constraint.kind == Constraint::Kind::match ? "matching " : "distinct ",
             constraint.attribute, " in claim ", demand.claims[item.claim].claim->id);
}

std::string text_of(const Relaxation& fix, const Demand& demand) {
  const std::string request =
      fix.kind == Relaxation::Kind::drop_constraint || fix.kind == Relaxation::Kind::release
          ? std::string()
          : request_of(demand, fix.claim, fix.request);
  switch (fix.kind) {
    case Relaxation::Kind::tolerate:
      return cat("tolerate the taint ", fix.subject, " in ", request);
    case Relaxation::Kind::fewer:
      return cat("ask for ", devices(fix.number), " in ", request);
    case Relaxation::Kind::drop_constraint:
      return cat("drop the constraint on ", attribute_of(demand, fix.claim, fix.number),
                 " in claim ", demand.claims[fix.claim].claim->id);
    case Relaxation::Kind::drop_selector:
      return cat("drop selector #", fix.number, " of ", request);
    case Relaxation::Kind::release:
      return cat("wait until ", devices(fix.number), " in use ", fix.number == 1 ? "is" : "are",
                 " given back");
  }
  return {};
}

std::string joined(const std::vector<std::string>& pieces) {
  std::string made;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0) made += i + 1 == pieces.size() ? " and " : ", ";
    made += pieces[i];
  }
  return made;
}

}  // namespace

std::vector<std::string> describe(const NodeFailure& failure, const Demand& demand) {
  std::vector<std::string> lines;
  if (!failure.error.empty()) lines.push_back(failure.error);
  for (const RequestFindings& found : failure.requests) {
    if (found.left >= found.wanted && found.wanted > 0) continue;
    const Alternative& wanted =
        alternative_of(demand, found.claim, found.request, found.alternative);
    std::vector<std::string> losses;
    for (const Loss& loss : found.losses) losses.push_back(text_of(loss, wanted));
    std::string line = cat("request ", wanted.spec->result_name, " of claim ",
                           demand.claims[found.claim].claim->id, " wants ");
    if (wanted.all() && found.wanted == 0) {
      line += "all matching devices, and none matches";
    } else {
      line += cat(found.wanted, " of ", devices(found.seen), ", and ", found.left,
                  found.left == 1 ? " is" : " are", " left");
    }
    if (!losses.empty()) line += cat(": ", joined(losses));
    lines.push_back(std::move(line));
  }
  if (failure.conflict.size() > 1) {
    std::vector<std::string> items;
    for (const ConflictItem& item : failure.conflict) items.push_back(text_of(item, demand));
    lines.push_back(cat("cannot be served together: ", joined(items)));
  }
  for (const Relaxation& fix : failure.relaxations) {
    lines.push_back(cat("would help: ", text_of(fix, demand)));
  }
  if (failure.incomplete_pools > 0) {
    lines.push_back(cat("resource pools being updated, and left out: ", failure.incomplete_pools));
  }
  if (failure.invalid_pools > 0) {
    lines.push_back(cat("resource pools in disorder, and left out: ", failure.invalid_pools));
  }
  if (failure.answer == Answer::undecided) {
    lines.push_back("the search was given up: too many combinations");
  }
  return lines;
}

json::Value to_json(const NodeFailure& failure, const Demand& demand) {
  using json::Value;
  static constexpr const char* kAnswers[] = {"Allocated", "Unavailable", "PoolInvalid", "Failed",
                                             "Undecided"};
  Value made = Value::object({{"answer", kAnswers[static_cast<std::size_t>(failure.answer)]},
                              {"possibleWhenIdle", failure.possible_when_idle}});
  if (!failure.error.empty()) made.set("error", failure.error);
  Value requests = Value::array();
  for (const RequestFindings& found : failure.requests) {
    const Alternative& wanted =
        alternative_of(demand, found.claim, found.request, found.alternative);
    Value losses = Value::array();
    for (const Loss& loss : found.losses) {
      Value entry = Value::object({{"cause", name_of(loss.cause)}, {"devices", loss.devices}});
      if (loss.cause == Cause::class_selector || loss.cause == Cause::request_selector ||
          loss.cause == Cause::constraint) {
        entry.set("index", loss.number);
      }
      if (!loss.subject.empty()) entry.set("subject", loss.subject);
      losses.push(std::move(entry));
    }
    requests.push(Value::object({{"claim", demand.claims[found.claim].claim->id},
                                 {"request", wanted.spec->result_name},
                                 {"wanted", found.wanted},
                                 {"seen", found.seen},
                                 {"left", found.left},
                                 {"losses", std::move(losses)}}));
  }
  made.set("requests", std::move(requests));
  Value conflict = Value::array();
  for (const ConflictItem& item : failure.conflict) {
    Value entry = Value::object({{"claim", demand.claims[item.claim].claim->id}});
    if (item.constraint == kNoItem) {
      entry.set("request", demand.claims[item.claim].claim->requests[item.request].name);
    } else {
      entry.set("constraint", item.constraint);
      entry.set("attribute", attribute_of(demand, item.claim, item.constraint));
    }
    conflict.push(std::move(entry));
  }
  made.set("conflict", std::move(conflict));
  made.set("conflictIsMinimal", failure.conflict_is_minimal);
  Value fixes = Value::array();
  for (const Relaxation& fix : failure.relaxations) fixes.push(text_of(fix, demand));
  made.set("wouldHelp", std::move(fixes));
  if (failure.incomplete_pools > 0) made.set("incompletePools", failure.incomplete_pools);
  if (failure.invalid_pools > 0) made.set("invalidPools", failure.invalid_pools);
  return made;
}

}  // namespace dibs::alloc
