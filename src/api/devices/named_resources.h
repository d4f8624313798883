#pragma once
// Selectors of resource.k8s.io/v1alpha2, Kubernetes 1.30: instances instead of devices.
//
// Attributes lie in one map per type, each a variable: attributes.int["x"],
// attributes.string["model"]. Everything is typed, there are no domains and no defaults, and only
// what is exactly a boolean is a selector. Neither length nor estimated cost is limited.

#include <memory>
#include <span>
#include <string>

#include "api/devices/device.h"
#include "api/devices/selector.h"

namespace dibs::api {

/// Variables of the language, one per type of attribute.
inline constexpr std::size_t kNamedVariables = 7;

/// `stored`: accepted before, so read with all that 1.30 knows.
Selector compile_named_resources(std::string_view expression, bool stored);

void validate_named_resources(std::string_view expression, bool stored, const Path& path,
                              FieldErrors& errors);

/// An instance as selectors see it. Immutable and shared by copies; texts of the values are
/// borrowed from it.
class InstanceInput {
 public:
  /// From an entry of namedResources.instances.
  static InstanceInput read(const json::Value& instance);

  /// Not empty: selectors are not evaluated, each ends with this error.
  const std::string& error() const;
  /// For the variables of the language, in their order.
  std::span<const cel::Value> variables() const;

 private:
  struct Content;
  explicit InstanceInput(std::shared_ptr<const Content> content) : content_(std::move(content)) {}
  std::shared_ptr<const Content> content_;
};

DeviceMatch match(const Selector& selector, const InstanceInput& instance);

}  // namespace dibs::api
