// A schema of a custom resource, an object and the object it replaces, each on a line of its own:
// what compiles can prune, default and judge every object, and doing so twice is doing so once.
#include "api/structural/defaults.h"
#include "api/structural/prune.h"
#include "api/structural/structural.h"
#include "api/structural/structural_rules.h"
#include "api/structural/validate.h"
#include "fuzz/targets.h"
#include "json/parse.h"

namespace dibs::fuzz {

int fuzz_structural(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto next_line = [&] {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    return line;
  };
  const auto schema = json::parse(next_line());
  if (!schema.ok()) return 0;
  if (api::check_schema_size(*schema).ok()) {
    api::FieldErrors errors;
    api::validate_structural(*schema, api::Path("schema"), errors);
  }
  const auto compiled = api::compile_schema(*schema);
  if (!compiled.ok()) {
    require(!compiled.error().message().empty(), "an error has a message");
    return 0;
  }
  const api::Schema& root = (*compiled)->root();

  const auto raw = json::parse(next_line());
  if (!raw.ok()) return 0;
  std::vector<std::string> unknown;
  const auto decoded = api::decode_custom(*raw, root, unknown);
  if (!decoded.ok()) return 0;
  json::Value object = *decoded;
  api::prune(object, root, &unknown);
  json::Value pruned = object;
  api::prune(pruned, root);
  require(pruned == object, "pruning twice is pruning once");
  api::apply_custom_defaults(object, root);
  json::Value defaulted = object;
  api::apply_custom_defaults(defaulted, root);
  require(defaulted == object, "defaults are set once");

  api::FieldErrors faults;
  api::validate_value(object, root, api::Path(), faults);
  // What an old object makes of the faults is no simple thing: undeclared members are never
  // compared, and a forgiven branch of oneOf may be one too many.
  api::FieldErrors unchanged;
  api::validate_changed_value(object, object, root, api::Path(), unchanged);
  if (const auto old = json::parse(next_line()); old.ok()) {
    api::FieldErrors changed;
    api::validate_changed_value(object, *old, root, api::Path(), changed);
  }
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_structural)
