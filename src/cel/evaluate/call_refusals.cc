#include "cel/evaluate/call_refusals.h"

#include "base/strings.h"
#include "cel/operations.h"

namespace dibs::cel {

bool is_pattern_function(std::string_view name) {
  return name == "matches" || name == "find" || name == "findAll";
}

Value call_refusal(std::string_view name, bool planned, const Value* arguments, std::size_t count) {
  if (name == "contains" || name == "startsWith" || name == "endsWith")
    return Value::no_such_overload();
  if (is_pattern_function(name) && planned) return Value::no_such_overload();
  if (name == "sort" || name == "matches" || name == "size") {
    const Kind kind = arguments[0].kind();
    const bool knows = kind == Kind::string || kind == Kind::duration || kind == Kind::timestamp;
    return knows ? Value::no_such_overload() : Value::error(cat("no such overload: ", name));
  }
  if (name == "flatten" && count == 1)
    return Value::error(cat("no such overload: ", arguments[0].type_name(), ".flatten()"));
  return no_such_overload(name, arguments, count);
}

std::uint64_t cost_of_mismatch(const Program::Call& target, const Value* arguments,
                               std::size_t count) {
  if (target.overloads.empty() || (!target.cost_by_name && target.overloads.size() > 1)) return 1;
  const Overload& overload = *target.overloads.front();
  return overload.cost == nullptr ? 1 : overload.cost(arguments, count, Value::no_such_overload());
}

std::uint64_t cost_of_failure(const Program::Call& target, const Value* arguments,
                              std::size_t count, const Value& failed) {
  if (!target.cost_by_name && target.overloads.size() > 1) return 1;
  for (const Overload* overload : target.overloads) {
    if (overload->cost != nullptr && overload->accepts_or_fails(arguments, count))
      return overload->cost(arguments, count, failed);
  }
  return 1;
}

}  // namespace dibs::cel
