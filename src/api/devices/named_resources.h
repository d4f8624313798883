#pragma once
// Selectors of resource.k8s.io/v1alpha2, Kubernetes 1.30: instances instead of devices.
//
// Attributes lie in one map per type, each a variable: attributes.int["x"],
// attributes.string["model"]. Everything is typed, there are no domains and no defaults, and only
// what is exactly a boolean is a selector. Neither length nor estimated cost is limited.

#include "api/devices/device.h"
#include "api/devices/selector.h"

namespace dibs::api {

/// `stored`: accepted before, so read with all that 1.30 knows.
Selector compile_named_resources(std::string_view expression, bool stored);

void validate_named_resources(std::string_view expression, bool stored, const Path& path,
                              FieldErrors& errors);

/// The attributes of an instance or a resource. Values refer to the JSON, which is kept.
class NamedResourcesInput {
 public:
  /// A list of {name, and one of quantity, bool, int, intSlice, string, stringSlice, version}.
  static NamedResourcesInput read(const json::Value& attributes);

  /// Not empty: selectors are not evaluated, each ends with this error.
  const std::string& error() const { return error_; }
  /// One for each variable.
  std::span<const cel::Value> values() const { return values_; }

 private:
  json::Value source_;
  std::string error_;
  std::vector<cel::Value> values_;
};

DeviceMatch match(const Selector& selector, const NamedResourcesInput& input);

}  // namespace dibs::api
