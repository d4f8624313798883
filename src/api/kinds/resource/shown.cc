// Parts of objects as the API's internal structures write themselves, for messages that show them
// whole.
#include <algorithm>

#include "api/kinds/resource/checks.h"
#include "api/schema/builtin.h"
#include "api/schema/go_print.h"
#include "base/release.h"

namespace dibs::api {
namespace {

/// The releases with v1, which looks like the internal types; 0 is the newest.
constexpr int kFirst = 34;

int release_of(const Features& features) {
  return features.minor() >= kNewestRelease ? 0 : std::max(features.minor(), kFirst);
}

}  // namespace

Value shown_part(const Value& part, std::string_view kind,
                 std::initializer_list<std::string_view> steps, const Features& features) {
  const int release = release_of(features);
  const Schema* schema = builtin_schema("resource.k8s.io", "v1", kind, release);
  if (schema == nullptr) schema = builtin_schema("resource.k8s.io", "v1alpha3", kind);
  for (std::string_view step : steps) schema = schema->field(step)->schema;
  return go_form(part, *schema);
}

Value shown_attribute(const Value& attribute) {
  return go_form(attribute, *builtin_type("resource/v1.DeviceAttribute"));
}

Value shown_terms(const Value& terms) {
  return go_form(terms, *builtin_type("core/v1.NodeSelector")->field("nodeSelectorTerms")->schema);
}

}  // namespace dibs::api
