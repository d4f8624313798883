// An expression, and behind a line break the JSON of the variable `a`: evaluation ends within its
// budget, and ends the same way twice.
#include <string>

#include "cel/json_value.h"
#include "cel/kubernetes.h"
#include "cel/libraries/extensions.h"
#include "fuzz/targets.h"
#include "json/parse.h"

namespace dibs::fuzz {

namespace {

const cel::Environment& environment() {
  static const auto* const made = [] {
    auto* fresh = new cel::Environment(cel::kubernetes_environment());
    cel::add_bindings(*fresh);
    fresh->variable("a", {});
    return fresh;
  }();
  return *made;
}

}  // namespace

int fuzz_cel_evaluate(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.rfind('\n');
  const std::string source(text.substr(0, end));
  const cel::Compilation made = environment().compile(source);
  if (made.program == nullptr) return 0;
  json::Value document;
  if (end != std::string_view::npos) {
    auto parsed = json::parse(text.substr(end + 1));
    if (parsed.ok()) document = std::move(*parsed);
  }
  const cel::Value variable = cel::json_value(document);
  cel::Limits limits;
  limits.cost = 100'000;
  const cel::Evaluation first = made.program->evaluate({&variable, 1}, limits);
  const cel::Evaluation second = made.program->evaluate({&variable, 1}, limits);
  require(first.value.kind() == second.value.kind() && first.cost == second.cost,
          "an expression has one value and one cost");
  require(first.interrupted == (first.cost > limits.cost), "the budget is kept");
  require(!first.value.is_error() || !first.value.text().empty(), "an error has a text");
  // A test that is not reached gives back what the step before it cost.
  limits.cost = first.cost + 1;
  require(first.interrupted || !made.program->evaluate({&variable, 1}, limits).interrupted,
          "what it cost is enough");
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_cel_evaluate)
