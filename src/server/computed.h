#pragma once
// Resources whose objects are not stored but made when they are asked for: what nodes and pods use,
// and how the components of the cluster are.
//
// Such a resource has no prefix in its schema, and can be read only.

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/context.h"
#include "server/node_usage.h"
#include "server/objects.h"
#include "server/options.h"

namespace dibs::server {

class Computed {
 public:
  /// `usage`: null where nothing is measured. All must outlive it.
  Computed(Objects& objects, ResourceTable& resources, NodeUsage* usage,
           std::vector<Component> components);

  static bool is_computed(const Resource& resource);
  Result<Response> handle(Context& context);

 private:
  /// The objects of a namespace (""; of all), or the one of that name.
  using Make = std::vector<Value> (Computed::*)(const Context& context, std::string_view name);
  struct Kind {
    Make make = nullptr;
    std::string plural = {};  // in messages, where not its own
  };

  std::vector<Value> node_usage(const Context& context, std::string_view name);
  std::vector<Value> pod_usage(const Context& context, std::string_view name);
  std::vector<Value> components(const Context& context, std::string_view name);
  Result<> lease_held(const Context& context, const std::string& lease) const;
  std::vector<Value> stored(const char* plural, std::string_view name_space,
                            std::string_view name) const;

  Objects& objects_;
  ResourceTable& resources_;
  NodeUsage* const usage_;
  const std::vector<Component> components_;
  const std::map<std::string, Kind, std::less<>> kinds_;
};

}  // namespace dibs::server
