#pragma once
// Selectors: the expressions by which classes and requests choose devices.
//
// A selector is compiled once, then asked about many devices (device.h for one, columns for many).
// The environment depends on the release and its gates: a new expression may use only what they
// allow, one that is stored already may use everything.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/field_error.h"
#include "cel/evaluate/program.h"
#include "cel/parse/ast.h"
#include "cel/type.h"

namespace dibs::api {

struct SelectorEnvironment {
  int release = 37;                 // minor version of the release whose language is spoken
  bool stored = false;              // the expression was accepted before
  bool consumable_capacity = true;  // DRAConsumableCapacity
  bool list_attributes = false;     // DRAListTypeAttributes
  friend bool operator==(const SelectorEnvironment&, const SelectorEnvironment&) = default;
};

/// Work that one selector may do, estimated when it is written and counted when it runs.
inline constexpr std::uint64_t kSelectorCostLimit = 1'000'000;
inline constexpr std::size_t kSelectorLengthLimit = 10'240;

enum class SelectorFault : char { none, too_long, invalid, internal, too_costly };

struct Selector {
  std::shared_ptr<const cel::Program> program;  // null unless it compiled
  SelectorFault fault = SelectorFault::none;    // too_costly: compiled all the same
  std::string message;                          // "compilation failed: ERROR: <input>:1:1: …"
  std::vector<cel::Issue> issues;
  cel::Type type;
  std::uint64_t estimated_cost = 0;
};

Selector compile_selector(std::string_view expression, const SelectorEnvironment& environment);

/// Judges the expression of a selector as the API does.
void validate_selector(std::string_view expression, const SelectorEnvironment& environment,
                       const Path& path, FieldErrors& errors);

}  // namespace dibs::api
