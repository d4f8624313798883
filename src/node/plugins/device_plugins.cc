#include "node/plugins/device_plugins.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "base/names.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "node/plugins/device_grants.h"
#include "node/plugins/device_plugin_links.h"
#include "proto/device_plugin.pb.h"
#include "rpc/server.h"

namespace dibs::node {
namespace {

using json::Value;

constexpr std::string_view kVersion = "v1beta1";
constexpr std::string_view kSocket = "kubelet.sock";
constexpr Duration kCallLimit = std::chrono::seconds(60);
constexpr Duration kStartLimit = std::chrono::seconds(30);

template <typename Message>
Result<Message> call(DevicePluginLink& plugin, std::string_view name,
                     const google::protobuf::MessageLite& request, Duration limit) {
  const rpc::Reply reply =
      plugin.channel->call(device_plugin_method(name), request.SerializeAsString(), limit);
  if (!reply.status.ok()) return Error::unavailable(reply.status.text());
  Message message;
  if (!message.ParseFromString(reply.bytes)) {
    return Error::internal(
        cat("the plugin of ", plugin.resource, " answered ", name, " with something else"));
  }
  return message;
}

Result<> check_name(std::string_view resource) {
  if (is_extended_resource_name(resource)) return success();
  return Error::invalid(cat("the ResourceName ", quoted(resource), " is invalid"));
}

/// One that claims stand for is not a plugin's.
bool is_claimed(const Value& pod, std::string_view container, std::string_view resource) {
  for (const Value& mapping :
       pod["status"]["extendedResourceClaimStatus"]["requestMappings"].items()) {
    if (mapping["containerName"].as_string() == container &&
        mapping["resourceName"].as_string() == resource) {
      return true;
    }
  }
  return false;
}

}  // namespace

struct DevicePlugins::State {
  State(DevicePluginsOptions how, Connect connect, runtime::Runtime& runtime, runtime::Files& disk,
        DeviceGrants noted)
      : options(std::move(how)),
        files(disk),
        grants(std::move(noted)),
        links(runtime, std::move(connect), grants.resources(),
              [this](const std::string& resource, const std::set<std::string>& devices) {
                changed(resource, devices);
              }) {}

  const DevicePluginsOptions options;
  runtime::Files& files;
  std::unique_ptr<rpc::Server> server;
  std::function<void()> amounts_changed;
  std::function<void(const std::string&)> health_changed;

  mutable Mutex mutex;
  DeviceGrants grants DIBS_GUARDED_BY(mutex);
  /// One write at a time, with what is true when it begins.
  Mutex write_mutex;
  DevicePluginLinks links;

  Result<> persist() {
    const MutexLock one_at_a_time(write_mutex);
    std::string text;
    {
      const MutexLock lock(mutex);
      text = grants.encode();
    }
    auto written = files.write(options.state, text);
    if (!written) return written.error().within("cannot note devices of device plugins");
    return success();
  }

  void persist_or_warn() {
    if (const auto written = persist(); !written) {
      log::warn("devices of device plugins", {{"error", written.error()}});
    }
  }

  void changed(const std::string& resource, const std::set<std::string>& devices) {
    bool fresh = false;
    std::set<std::string> pods;
    {
      const MutexLock lock(mutex);
      fresh = grants.add_resource(resource);
      pods = grants.holders(resource, devices);
    }
    if (fresh) persist_or_warn();
    if (amounts_changed) amounts_changed();
    if (!options.health || !health_changed) return;
    for (const auto& pod : pods) health_changed(pod);
  }

  using Reusable = std::map<std::string, std::set<std::string>>;

  /// The devices of one container of one resource, taken for it.
  Result<std::vector<std::string>> take(const std::string& pod, const std::string& container,
                                        const std::string& resource, std::size_t count,
                                        const std::set<std::string>& reusable) {
    const auto begin = [&]() DIBS_REQUIRES(mutex) {
      DeviceNeed need;
      need.count = count;
      for (const auto& [id, device] : links.devices(resource)) {
        if (device.healthy) need.healthy.insert(id);
      }
      need.used = grants.used(resource);
      need.reusable = reusable;
      return begin_choice(resource, need);
    };
    const DevicePluginLinkPtr plugin = links.speaker(resource);
    std::vector<std::string> preferred;
    if (plugin != nullptr && plugin->has_preferences) {
      Result<DeviceChoice> choice = DeviceChoice();
      {
        const MutexLock lock(mutex);
        choice = begin();
      }
      if (!choice) return choice.error();
      DIBS_TRY(preferred, ask_preferred(*plugin, *choice));
    }
    // While the plugin was asked, others may have taken what it prefers.
    const MutexLock lock(mutex);
    DIBS_TRY(auto choice, begin());
    auto ids = end_choice(std::move(choice), preferred);
    grants.take(pod, container, resource, ids);
    return ids;
  }

  static Result<std::vector<std::string>> ask_preferred(DevicePluginLink& plugin,
                                                        const DeviceChoice& choice) {
    if (choice.missing == 0) return std::vector<std::string>();
    v1beta1::PreferredAllocationRequest request;
    auto* one = request.add_container_requests();
    for (const auto& id : choice.chosen) {
      one->add_available_deviceids(id);
      one->add_must_include_deviceids(id);
    }
    for (const auto& id : choice.available) one->add_available_deviceids(id);
    one->set_allocation_size(static_cast<int>(choice.chosen.size() + choice.missing));
    auto answer = call<v1beta1::PreferredAllocationResponse>(plugin, "GetPreferredAllocation",
                                                             request, kCallLimit);
    if (!answer) {
      return answer.error().within("device plugin GetPreferredAllocation rpc failed with err");
    }
    std::vector<std::string> out;
    if (answer->container_responses_size() > 0) {
      for (const auto& id : answer->container_responses(0).deviceids()) out.push_back(id);
    }
    return out;
  }

  Result<> allocate(const std::string& pod, const std::string& container,
                    const std::string& resource, const std::vector<std::string>& ids) {
    const DevicePluginLinkPtr plugin = links.speaker(resource);
    if (plugin == nullptr) return Error::unavailable(cat("unknown Device Plugin ", resource));
    v1beta1::AllocateRequest request;
    auto* one = request.add_container_requests();
    for (const auto& id : ids) one->add_devices_ids(id);
    DIBS_TRY(const auto answer,
             (call<v1beta1::AllocateResponse>(*plugin, "Allocate", request, kCallLimit)));
    if (answer.container_responses_size() == 0) {
      return Error::internal(cat("no containers return in allocation response of ", resource));
    }
    const MutexLock lock(mutex);
    grants.hold(pod, container, resource, answer.container_responses(0).SerializeAsString());
    return success();
  }

  /// True when something new was granted.
  Result<bool> grant_container(const Value& pod, const Value& container, bool init,
                               Reusable& reusable) {
    const std::string uid = pod["metadata"]["uid"].str();
    const std::string name = container["name"].str();
    bool fresh = false;
    for (const auto& [key, amount] : container["resources"]["limits"].members()) {
      const std::string resource(key);
      const auto quantity = Quantity::parse(amount.as_string());
      if (!quantity || quantity->value() <= 0 || !links.known(resource) ||
          is_claimed(pod, name, resource)) {
        continue;
      }
      std::vector<std::string> ids;
      {
        const MutexLock lock(mutex);
        if (const auto* had = grants.find(uid, name, resource)) ids = had->ids;
      }
      if (ids.empty()) {
        const auto count = static_cast<std::size_t>(quantity->value());
        DIBS_TRY(ids, take(uid, name, resource, count, reusable[resource]));
        DIBS_CHECK(allocate(uid, name, resource, ids));
        fresh = true;
      }
      auto& rest = reusable[resource];
      for (const auto& id : ids) {
        if (init && container["restartPolicy"].as_string() != "Always") {
          rest.insert(id);
        } else {
          rest.erase(id);
        }
      }
    }
    return fresh;
  }

  Result<> grant(const Value& pod) {
    Reusable reusable;
    bool fresh = false;
    for (const char* list : {"initContainers", "containers"}) {
      for (const Value& container : pod["spec"][list].items()) {
        DIBS_TRY(const bool more, grant_container(pod, container, list[0] == 'i', reusable));
        fresh = fresh || more;
      }
    }
    return fresh ? persist() : success();
  }
};

DevicePlugins::DevicePlugins(std::unique_ptr<State> state) : state_(std::move(state)) {}
DevicePlugins::~DevicePlugins() { stop(); }

Result<std::unique_ptr<DevicePlugins>> DevicePlugins::open(DevicePluginsOptions options,
                                                           Connect connect,
                                                           runtime::Runtime& runtime,
                                                           runtime::Files& files) {
  DeviceGrants grants;
  if (const auto text = files.read(options.state)) {
    auto decoded = DeviceGrants::decode(*text);
    if (!decoded) {
      return decoded.error().within(
          cat(options.state, " is damaged; drain the node, remove the file and start again"));
    }
    grants = std::move(decoded).value();
  }
  return std::unique_ptr<DevicePlugins>(new DevicePlugins(std::make_unique<State>(
      std::move(options), std::move(connect), runtime, files, std::move(grants))));
}

Result<> DevicePlugins::start() {
  const std::string& folder = state_->options.folder;
  DIBS_CHECK(state_->files.make_dirs(folder, 0750));
  DIBS_TRY(const auto names, state_->files.list(folder));
  for (const auto& name : names) {
    // Plugins know by it that they have to register anew.
    if (name.ends_with(".sock")) DIBS_CHECK(state_->files.remove(cat(folder, '/', name)));
  }
  rpc::Methods methods;
  methods.unary["/v1beta1.Registration/Register"] = [this](std::string_view bytes) -> rpc::Reply {
    v1beta1::RegisterRequest request;
    if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return {{rpc::Code::internal, "grpc: error unmarshalling request"}, {}};
    }
    const auto done =
        register_plugin(request.version(), request.endpoint(), request.resource_name());
    if (!done) return {{rpc::Code::unknown, done.error().message()}, {}};
    return {};
  };
  DIBS_TRY(state_->server, rpc::serve_unix(cat(folder, '/', kSocket), std::move(methods)));
  return success();
}

void DevicePlugins::stop() {
  if (state_->server) state_->server->stop();
  state_->links.stop();
}

Result<> DevicePlugins::register_plugin(const std::string& version, const std::string& endpoint,
                                        const std::string& resource) {
  if (version != kVersion) {
    return Error::invalid(cat("requested API version ", quoted(version),
                              " is not supported by kubelet. Supported version is [",
                              quoted(kVersion), "]"));
  }
  if (endpoint.empty() || endpoint.find('/') != std::string::npos || endpoint == kSocket) {
    return Error::invalid(cat("the endpoint ", quoted(endpoint),
                              " is invalid: it must be the name of a socket in the folder of ",
                              kSocket));
  }
  DIBS_CHECK(check_name(resource));
  state_->links.begin(resource, cat(state_->options.folder, '/', endpoint));
  return success();
}

Result<> DevicePlugins::validate(const PluginInfo& info) {
  const auto& versions = info.versions;
  if (std::find(versions.begin(), versions.end(), kVersion) == versions.end()) {
    return Error::invalid(cat("manager version, ", kVersion,
                              ", is not among plugin supported versions [", join(versions, " "),
                              "]"));
  }
  if (const auto named = check_name(info.name); !named) {
    return named.error().within("invalid name of device plugin socket");
  }
  return success();
}

Result<> DevicePlugins::add(const PluginInfo& info) {
  state_->links.begin(info.name, info.endpoint);
  return success();
}

void DevicePlugins::remove(const PluginInfo& info) { state_->links.end(info.name, info.endpoint); }

DeviceAmounts DevicePlugins::amounts() const {
  DeviceAmounts out;
  for (const auto& [name, devices] : state_->links.all()) {
    DeviceAmount& amount = out[name];
    for (const auto& [id, device] : devices) {
      ++amount.capacity;
      if (device.healthy) ++amount.allocatable;
    }
  }
  return out;
}

void DevicePlugins::on_amounts_change(std::function<void()> changed) {
  state_->amounts_changed = std::move(changed);
}

void DevicePlugins::on_health_change(std::function<void(const std::string& pod_uid)> changed) {
  state_->health_changed = std::move(changed);
}

Result<> DevicePlugins::grant(const Value& pod) {
  auto granted = state_->grant(pod);
  // Nothing of it stays with a pod that cannot run.
  if (!granted) release(pod["metadata"]["uid"].as_string());
  return granted;
}

std::set<std::string> DevicePlugins::granted(std::string_view pod_uid) const {
  std::set<std::string> out;
  const MutexLock lock(state_->mutex);
  const auto found = state_->grants.pods().find(pod_uid);
  if (found == state_->grants.pods().end()) return out;
  for (const auto& [container, resources] : found->second) {
    for (const auto& [resource, grant] : resources) out.insert(resource);
  }
  return out;
}

void DevicePlugins::release(std::string_view pod_uid) {
  {
    const MutexLock lock(state_->mutex);
    if (!state_->grants.release(pod_uid)) return;
  }
  state_->persist_or_warn();
}

void DevicePlugins::release_gone(const std::set<std::string>& active) {
  {
    const MutexLock lock(state_->mutex);
    if (!state_->grants.keep_only(active)) return;
  }
  state_->persist_or_warn();
}

Result<ContainerDevices> DevicePlugins::start_container(std::string_view pod_uid,
                                                        std::string_view container) {
  DeviceGrants::Resources granted;
  {
    const MutexLock lock(state_->mutex);
    const auto* found = state_->grants.of(pod_uid, container);
    if (found == nullptr) return ContainerDevices();
    granted = *found;
  }
  ContainerDevices out;
  for (const auto& [resource, grant] : granted) {
    const DevicePluginLinkPtr plugin = state_->links.speaker(resource);
    if (plugin != nullptr && plugin->wants_start) {
      v1beta1::PreStartContainerRequest request;
      for (const auto& id : grant.ids) request.add_devices_ids(id);
      const auto told = call<v1beta1::Empty>(*plugin, "PreStartContainer", request, kStartLimit);
      if (!told) {
        return told.error().within("device plugin PreStartContainer rpc failed with err");
      }
    }
    v1beta1::ContainerAllocateResponse answer;
    if (!answer.ParseFromString(grant.answer)) {
      return Error::internal(cat("what the plugin of ", resource, " answered cannot be read"));
    }
    // In the order of their names: the message has none.
    std::map<std::string, std::string> env(answer.envs().begin(), answer.envs().end());
    for (auto& [name, value] : env) out.env.emplace_back(name, value);
    for (const auto& mount : answer.mounts()) {
      out.mounts.push_back({mount.container_path(), mount.host_path(), mount.read_only()});
    }
    for (const auto& node : answer.devices()) {
      out.nodes.push_back({node.container_path(), node.host_path(), node.permissions()});
    }
    for (const auto& [name, value] : answer.annotations()) out.annotations[name] = value;
    for (const auto& device : answer.cdi_devices()) out.cdi_ids.push_back(device.name());
  }
  return out;
}

Value DevicePlugins::health_of(std::string_view pod_uid, std::string_view container) const {
  if (!state_->options.health) return {};
  Value out;
  const MutexLock lock(state_->mutex);
  const auto* found = state_->grants.of(pod_uid, container);
  if (found == nullptr) return out;
  for (const auto& [name, grant] : *found) {
    const PluginDevices known = state_->links.devices(name);
    Value devices = Value::array();
    for (const auto& id : grant.ids) {
      const auto device = known.find(id);
      const char* health = device == known.end()    ? "Unknown"
                           : device->second.healthy ? "Healthy"
                                                    : "Unhealthy";
      devices.push(Value::object({{"resourceID", id}, {"health", health}}));
    }
    out.push(Value::object({{"name", name}, {"resources", std::move(devices)}}));
  }
  return out;
}

std::vector<DeviceShare> DevicePlugins::devices_of(std::string_view pod_uid,
                                                   std::string_view container) const {
  std::vector<DeviceShare> out;
  const MutexLock lock(state_->mutex);
  const auto* found = state_->grants.of(pod_uid, container);
  if (found == nullptr) return out;
  for (const auto& [name, grant] : *found) {
    DeviceShare& share = out.emplace_back();
    share.resource = name;
    share.ids = grant.ids;
    const PluginDevices known = state_->links.devices(name);
    std::set<std::int64_t> nodes;
    for (const auto& id : grant.ids) {
      if (const auto device = known.find(id); device != known.end()) {
        nodes.insert(device->second.numa_nodes.begin(), device->second.numa_nodes.end());
      }
    }
    share.numa_nodes.assign(nodes.begin(), nodes.end());
  }
  return out;
}

std::vector<DeviceShare> DevicePlugins::allocatable() const {
  std::vector<DeviceShare> out;
  for (const auto& [name, devices] : state_->links.all()) {
    for (const auto& [id, device] : devices) {
      if (device.healthy) out.push_back({name, {id}, device.numa_nodes});
    }
  }
  return out;
}

}  // namespace dibs::node
