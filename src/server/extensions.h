#pragma once
// The servers behind APIServices, as far as they are known, and what they add to the documents of
// this one: discovery and OpenAPI. Pure data and functions.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "server/extension_transport.h"
#include "server/resource.h"

namespace dibs::server {

/// Of APIServices themselves: it has none, and nobody else serves it.
inline constexpr std::string_view kAggregationGroup = "apiregistration.k8s.io";

/// One group in one version, served by somebody else. Immutable.
struct Extension {
  std::string name;  // of its APIService
  std::string group;
  std::string version;
  std::int64_t group_priority = 0;
  std::int64_t version_priority = 0;
  bool available = false;
  std::vector<ExtensionPlace> places;  // any of them will do
  /// Its APIResourceList, as it was last heard; null: never.
  Value resources;
  /// What /openapi/v3 of that server says of the group and version, and its /openapi/v2; null:
  /// none.
  Value openapi_v3;
  Value openapi_v2;

  bool can_be_asked() const { return available && !places.empty(); }
  bool operator==(const Extension&) const = default;
};
using ExtensionPtr = std::shared_ptr<const Extension>;

/// All of them at one moment, the preferred version of a group first.
struct Extensions {
  std::vector<ExtensionPtr> all;
  std::uint64_t generation = 0;
  /// The same of what they add to OpenAPI alone: who comes and goes does not change that.
  std::uint64_t documents = 0;

  ExtensionPtr find(std::string_view group, std::string_view version) const;
  /// Whose the path is; null: nobody's but this server's.
  ExtensionPtr find_path(std::string_view path) const;
  bool has_group(std::string_view group) const;
};
using ExtensionsPtr = std::shared_ptr<const Extensions>;

/// Whether a version is to be named before another: v2 before v1, both before v1beta1.
bool is_newer_version(std::string_view a, std::string_view b);

/// The priorities of what this server serves itself, as upstream gives them.
struct Priority {
  std::int64_t group = 1000;
  std::int64_t version = 100;
};
Priority local_priority(std::string_view group, std::string_view version);
/// The APIService of a group and version that this server serves itself. `continuous`: it comes and
/// goes with its definition.
Value local_api_service(std::string_view group, std::string_view version, bool continuous);

/// Puts them into an APIGroupList, an APIGroupDiscoveryList.
void add_to_group_list(Value& list, const Extensions& extensions);
void add_to_discovery(Value& list, const Extensions& extensions);
/// An APIGroup of which this server knows `local`, or null.
Value group_with(Value local, std::string_view group, const Extensions& extensions);
/// The same of the documents of OpenAPI.
void add_to_openapi_v3(Value& index, const Extensions& extensions);
void add_to_openapi_v2(Value& document, const Extensions& extensions);

}  // namespace dibs::server
