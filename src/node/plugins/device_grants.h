#pragma once
// Which devices of device plugins the containers of this node hold.
//
// A container's devices of one resource are a grant. They are first taken, so that no other pod
// gets them while their plugin is asked, and then held, with the plugin's answer; held ones are in
// the file and survive the agent. The devices of an init container that has ended serve the
// containers after it.
//
// Not thread-safe: its owner locks. docs/formats/device-plugins.md has the file.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace dibs::node {

struct DeviceGrant {
  std::vector<std::string> ids = {};
  /// ContainerAllocateResponse, as the plugin wrote it.
  std::string answer = {};
  bool held = false;
};

class DeviceGrants {
 public:
  using Resources = std::map<std::string, DeviceGrant, std::less<>>;  // by resource
  using Containers = std::map<std::string, Resources, std::less<>>;   // by name
  using Pods = std::map<std::string, Containers, std::less<>>;        // by uid

  /// Errors say what is wrong with the text.
  static Result<DeviceGrants> decode(std::string_view text);
  /// What is held, and the resources that there are or were plugins for.
  std::string encode() const;

  void take(const std::string& pod, const std::string& container, const std::string& resource,
            std::vector<std::string> ids);
  void hold(const std::string& pod, const std::string& container, const std::string& resource,
            std::string answer);
  /// Of whoever is not among `pods`. True when something was.
  bool keep_only(const std::set<std::string>& pods);
  bool release(std::string_view pod);

  /// True when it was not known.
  bool add_resource(const std::string& resource) { return resources_.insert(resource).second; }
  const std::set<std::string, std::less<>>& resources() const { return resources_; }
  const Pods& pods() const { return pods_; }
  /// Null when there are none.
  const Resources* of(std::string_view pod, std::string_view container) const;
  const DeviceGrant* find(std::string_view pod, std::string_view container,
                          std::string_view resource) const;
  /// Taken or held, of a resource.
  std::set<std::string> used(std::string_view resource) const;
  /// The pods that hold one of these devices.
  std::set<std::string> holders(std::string_view resource, const std::set<std::string>& ids) const;

 private:
  Pods pods_;
  std::set<std::string, std::less<>> resources_;
};

/// One resource that a container is to get devices of.
struct DeviceNeed {
  std::size_t count = 0;
  std::set<std::string> healthy = {};
  std::set<std::string> used = {};
  /// Of init containers of the same pod that have ended by then; used first.
  std::set<std::string> reusable = {};
};

/// What can be given, less what must be: what a plugin that has preferences is asked about. Errors
/// are the reason why the pod cannot run here.
struct DeviceChoice {
  std::vector<std::string> chosen = {};     // reused
  std::vector<std::string> available = {};  // free
  std::size_t missing = 0;
};
Result<DeviceChoice> begin_choice(std::string_view resource, const DeviceNeed& need);
/// The rest, preferred ones first; others than those available are ignored.
std::vector<std::string> end_choice(DeviceChoice choice, const std::vector<std::string>& preferred);

}  // namespace dibs::node
