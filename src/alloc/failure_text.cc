#include <algorithm>

#include "alloc/failure.h"
#include "base/strings.h"

namespace dibs::alloc {
namespace {

constexpr std::uint32_t kNoItem = 0xffffffff;

std::string devices(std::int64_t count) { return cat(count, count == 1 ? " device" : " devices"); }

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

std::string_view name_of(Relaxation::Kind kind) {
  switch (kind) {
    case Relaxation::Kind::tolerate:
      return "tolerate";
    case Relaxation::Kind::fewer:
      return "fewer";
    case Relaxation::Kind::less:
      return "less";
    case Relaxation::Kind::drop_constraint:
      return "dropConstraint";
    case Relaxation::Kind::drop_selector:
      return "dropSelector";
    case Relaxation::Kind::release:
      return "release";
  }
  return "";
}

/// As much of an expression as fits into a line beside other things.
std::string shown(std::string_view expression) {
  constexpr std::size_t kMost = 60;
  std::string made;
  for (const char c : trim(expression)) {
    const bool space = c == '\n' || c == '\t' || c == ' ';
    if (space && made.ends_with(' ')) continue;
    made.push_back(space ? ' ' : c);
  }
  if (made.size() <= kMost) return made;
  std::size_t end = kMost - 3;
  while (end > 0 && (made[end] & 0xc0) == 0x80) --end;  // not within a character
  return cat(made.substr(0, end), "...");
}

std::string selector_of(const std::vector<std::string>& selectors, std::uint32_t number) {
  return number < selectors.size() ? cat(" (", shown(selectors[number]), ")") : std::string();
}

std::string text_of(const Loss& loss, const Alternative& wanted) {
  const std::uint32_t n = loss.devices;
  const bool one = n == 1;
  switch (loss.cause) {
    case Cause::class_selector:
      return cat(n, one ? " does" : " do", " not match class ", wanted.device_class->name,
                 selector_of(wanted.device_class->selectors, loss.number));
    case Cause::request_selector:
      return cat(n, one ? " does" : " do", " not match the request",
                 selector_of(wanted.spec->selectors, loss.number));
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

/// As request_of(), with the alternative where there are several.
std::string name_of(const Demand& demand, const Alternative& wanted) {
  return cat("request ", wanted.spec->result_name, " of claim ",
             demand.claims[wanted.claim].claim->id);
}

const Alternative& alternative_of(const Demand& demand, std::uint32_t claim, std::uint32_t request,
                                  std::uint32_t alternative) {
  const ClaimDemand& part = demand.claims[claim];
  return demand.alternatives[demand.positions[part.first_position + request].first + alternative];
}

std::string_view attribute_of(const Demand& demand, std::uint32_t claim, std::uint32_t constraint) {
  return demand.claims[claim].claim->constraints[constraint].attribute;
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

bool falls_short(const RequestFindings& found) {
  return found.left < found.wanted || found.wanted <= 0;
}

std::string describe(const RequestFindings& found, const Demand& demand) {
  const Alternative& wanted = alternative_of(demand, found.claim, found.request, found.alternative);
  const std::string name = name_of(demand, wanted);
  if (found.seen == 0) {
    return cat(name, " wants ", wanted.all() ? "all matching devices" : devices(found.wanted),
               ", and the node has none");
  }
  if (wanted.all() && found.wanted == 0) {
    return cat(name, " wants all matching devices, and none matches");
  }
  return cat(name, " wants ", wanted.all() ? "all " : "", found.wanted, " of ", devices(found.seen),
             found.left == 0   ? std::string(", and none is left")
             : found.left == 1 ? std::string(", and 1 is left")
                               : cat(", and ", found.left, " are left"));
}

std::string describe(const Loss& loss, const RequestFindings& found, const Demand& demand) {
  return text_of(loss, alternative_of(demand, found.claim, found.request, found.alternative));
}

std::string describe(const ConflictItem& item, const Demand& demand) {
  if (item.constraint == kNoItem) return request_of(demand, item.claim, item.request);
  const Constraint& constraint = demand.claims[item.claim].claim->constraints[item.constraint];
  return cat(constraint.kind == Constraint::Kind::match ? "matching " : "distinct ",
             constraint.attribute, " in claim ", demand.claims[item.claim].claim->id);
}

std::string describe(const ConstraintFindings& found, const Demand& demand) {
  constexpr std::size_t kMost = 5;
  const Constraint& constraint = demand.claims[found.claim].claim->constraints[found.constraint];
  const bool match = constraint.kind == Constraint::Kind::match;
  std::string made =
      cat(found.wanted, match ? " devices with the same " : " devices, each with another ",
          constraint.attribute, match ? " are wanted: " : ", are wanted: ");
  if (found.values.empty()) return cat(made, "none has it");
  std::vector<std::string> shown;
  for (const auto& [value, count] : found.values) {
    if (shown.size() == kMost) break;
    shown.push_back(cat(count, count == 1 ? " has " : " have ", value));
  }
  append(made, join(shown, ", "));
  if (found.values.size() > kMost) {
    append(made, " and ", found.values.size() - kMost, " more values");
  }
  return made;
}

std::string describe(const Relaxation& fix, const Demand& demand) {
  using Kind = Relaxation::Kind;
  const std::string claim = fix.kind == Kind::release ? "" : demand.claims[fix.claim].claim->id;
  if (fix.kind == Kind::drop_constraint) {
    return cat("drop the constraint on ", attribute_of(demand, fix.claim, fix.number), " in claim ",
               claim);
  }
  if (fix.kind == Kind::release && fix.number == 0) {
    return "wait until others give back what they have of the devices";
  }
  if (fix.kind == Kind::release) {
    return cat("wait until ", devices(fix.number), " in use ", fix.number == 1 ? "is" : "are",
               " given back");
  }
  const Alternative& wanted = alternative_of(demand, fix.claim, fix.request, fix.alternative);
  const std::string request = name_of(demand, wanted);
  if (fix.kind == Kind::tolerate) return cat("tolerate the taint ", fix.subject, " in ", request);
  if (fix.kind == Kind::less) {
    const std::size_t blank = fix.subject.rfind(' ');
    return cat("ask for no more than ", fix.subject.substr(blank + 1), " of ",
               fix.subject.substr(0, blank), " in ", request);
  }
  if (fix.kind == Kind::fewer) return cat("ask for ", devices(fix.number), " in ", request);
  return cat("drop the selector", selector_of(wanted.spec->selectors, fix.number), " of ", request);
}

std::vector<std::string> describe(const NodeFailure& failure, const Demand& demand) {
  std::vector<std::string> lines;
  if (!failure.error.empty()) lines.push_back(failure.error);
  for (const RequestFindings& found : failure.requests) {
    if (!falls_short(found)) continue;
    std::vector<std::string> losses;
    for (const Loss& loss : found.losses) losses.push_back(describe(loss, found, demand));
    std::string line = describe(found, demand);
    if (!losses.empty()) append(line, ": ", joined(losses));
    lines.push_back(std::move(line));
  }
  if (failure.conflict.size() > 1) {
    std::vector<std::string> items;
    for (const ConflictItem& item : failure.conflict) items.push_back(describe(item, demand));
    lines.push_back(cat("cannot be served together: ", joined(items)));
  }
  for (const ConstraintFindings& found : failure.constraints) {
    lines.push_back(describe(found, demand));
  }
  for (const Relaxation& fix : failure.relaxations) {
    lines.push_back(cat("would help: ", describe(fix, demand)));
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
      entry.set("text", describe(loss, found, demand));
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
  Value constraints = Value::array();
  for (const ConstraintFindings& found : failure.constraints) {
    Value values = Value::array();
    for (const auto& [value, count] : found.values) {
      values.push(Value::object({{"value", value}, {"devices", count}}));
    }
    constraints.push(
        Value::object({{"claim", demand.claims[found.claim].claim->id},
                       {"constraint", found.constraint},
                       {"attribute", attribute_of(demand, found.claim, found.constraint)},
                       {"wanted", found.wanted},
                       {"values", std::move(values)}}));
  }
  made.set("constraints", std::move(constraints));
  made.set("conflictIsMinimal", failure.conflict_is_minimal);
  Value fixes = Value::array();
  for (const Relaxation& fix : failure.relaxations) {
    Value entry = Value::object({{"kind", name_of(fix.kind)}, {"change", describe(fix, demand)}});
    if (!fix.devices.empty()) {
      Value held = Value::array();
      for (const std::string& device : fix.devices) held.push(device);
      entry.set("devices", std::move(held));
    }
    fixes.push(std::move(entry));
  }
  made.set("wouldHelp", std::move(fixes));
  if (failure.incomplete_pools > 0) made.set("incompletePools", failure.incomplete_pools);
  if (failure.invalid_pools > 0) made.set("invalidPools", failure.invalid_pools);
  return made;
}

}  // namespace dibs::alloc
