#include "node/plugins/device_plugin_links.h"

#include <algorithm>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "client/gate.h"
#include "client/serial.h"
#include "proto/device_plugin.pb.h"

namespace dibs::node {
namespace {

constexpr Duration kAskLimit = std::chrono::seconds(10);
/// A plugin may register before it listens.
constexpr int kConnectTries = 50;
constexpr Duration kConnectEvery = std::chrono::milliseconds(200);
/// How long a resource whose plugin is gone is still told of.
constexpr Duration kGrace = std::chrono::minutes(5);

}  // namespace

std::string device_plugin_method(std::string_view name) {
  return cat("/v1beta1.DevicePlugin/", name);
}

struct DevicePluginLinks::State : std::enable_shared_from_this<State> {
  State(runtime::Runtime& world, Connect reach, Changed tell)
      : runtime(world),
        connect(std::move(reach)),
        changed(std::move(tell)),
        serial(std::make_shared<client::Serial>(world.executor)) {}

  struct Resource {
    PluginDevices devices = {};
    std::vector<DevicePluginLinkPtr> links = {};  // the last speaks for it
    std::uint64_t absences = 0;                   // how often the last of them went
  };

  runtime::Runtime& runtime;
  const Connect connect;
  const Changed changed;
  const std::shared_ptr<client::Serial> serial;
  client::Gate gate;
  /// Used by tasks of the serial only.
  std::map<DevicePluginLink*, std::unique_ptr<rpc::Stream>> streams;

  mutable Mutex mutex;
  std::map<std::string, Resource, std::less<>> resources DIBS_GUARDED_BY(mutex);

  void post(std::function<void(State&)> task) {
    serial->post([self = shared_from_this(), task = std::move(task)] {
      const client::GateEntry entry(self->gate);
      if (entry) task(*self);
    });
  }

  /// For callbacks that may come when all of this is gone.
  std::function<void(std::function<void(State&)>)> poster() {
    return [weak = weak_from_this()](std::function<void(State&)> task) {
      if (const auto self = weak.lock()) self->post(std::move(task));
    };
  }

  /// Not in line with the others: a plugin that does not answer holds nobody up.
  void ask_later(const std::string& resource, const std::string& socket, int tries) {
    runtime.executor.post([weak = weak_from_this(), resource, socket, tries] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      const client::GateEntry entry(self->gate);
      if (entry) self->ask(resource, socket, tries);
    });
  }

  void ask(const std::string& resource, const std::string& socket, int tries) {
    auto link = std::make_shared<DevicePluginLink>();
    link->resource = resource;
    link->socket = socket;
    link->channel = connect(socket);
    const rpc::Reply reply =
        link->channel->call(device_plugin_method("GetDevicePluginOptions"), "", kAskLimit);
    v1beta1::DevicePluginOptions options;
    if (reply.status.ok() && options.ParseFromString(reply.bytes)) {
      link->wants_start = options.pre_start_required();
      link->has_preferences = options.get_preferred_allocation_available();
      return post([link](State& state) { state.install(link); });
    }
    if (tries <= 1) {
      log::error("a device plugin registered and does not answer",
                 {{"resource", resource}, {"socket", socket}, {"error", reply.status.text()}});
      return;
    }
    runtime.timers.after(kConnectEvery, [weak = weak_from_this(), resource, socket, tries] {
      if (const auto self = weak.lock()) self->ask_later(resource, socket, tries - 1);
    });
  }

  void install(const DevicePluginLinkPtr& link) {
    {
      const MutexLock lock(mutex);
      auto& links = resources[link->resource].links;
      const auto same = std::find_if(links.begin(), links.end(), [&](const auto& other) {
        return other->socket == link->socket;
      });
      if (same != links.end()) {
        streams.erase(same->get());
        links.erase(same);
      }
      links.push_back(link);
    }
    log::info("device plugin connected", {{"resource", link->resource}});
    rpc::StreamHandlers handlers;
    const std::weak_ptr<DevicePluginLink> weak = link;
    handlers.message = [post = poster(), weak](std::string_view message) {
      post([weak, bytes = std::string(message)](State& state) {
        if (const auto sender = weak.lock()) state.listed(sender, bytes);
      });
    };
    handlers.ended = [post = poster(), weak](const rpc::Status& status) {
      post([weak, status](State& state) {
        if (const auto sender = weak.lock()) state.disconnect(sender, status.text());
      });
    };
    streams[link.get()] =
        link->channel->open_stream(device_plugin_method("ListAndWatch"), "", std::move(handlers));
  }

  void listed(const DevicePluginLinkPtr& link, const std::string& bytes) {
    v1beta1::ListAndWatchResponse list;
    if (!list.ParseFromString(bytes)) {
      return disconnect(link, "it sent a list that cannot be read");
    }
    PluginDevices now;
    for (const auto& device : list.devices()) {
      if (device.id().empty()) continue;
      PluginDevice& one = now[device.id()];
      one.healthy = device.health() == "Healthy";
      for (const auto& node : device.topology().nodes()) one.numa_nodes.push_back(node.id());
    }
    std::set<std::string> other;
    {
      const MutexLock lock(mutex);
      Resource& resource = resources[link->resource];
      if (resource.links.empty() || resource.links.back() != link) return;
      for (const auto& [id, device] : now) {
        const auto before = resource.devices.find(id);
        const bool same =
            before != resource.devices.end() && before->second.healthy == device.healthy;
        if (!same) other.insert(id);
      }
      for (const auto& [id, device] : resource.devices) {
        if (!now.contains(id)) other.insert(id);
      }
      resource.devices = std::move(now);
    }
    changed(link->resource, other);
  }

  void disconnect(const DevicePluginLinkPtr& link, const std::string& why) {
    streams.erase(link.get());
    std::set<std::string> other;
    std::uint64_t absence = 0;
    {
      const MutexLock lock(mutex);
      Resource& resource = resources[link->resource];
      if (std::erase(resource.links, link) == 0) return;
      if (resource.links.empty()) {
        for (auto& [id, device] : resource.devices) {
          if (std::exchange(device.healthy, false)) other.insert(id);
        }
        absence = ++resource.absences;
      }
    }
    log::info("device plugin gone", {{"resource", link->resource}, {"reason", why}});
    if (absence == 0) return;
    changed(link->resource, other);
    runtime.timers.after(kGrace, [post = poster(), name = link->resource, absence] {
      post([name, absence](State& state) { state.forget(name, absence); });
    });
  }

  void forget(const std::string& name, std::uint64_t absence) {
    {
      const MutexLock lock(mutex);
      Resource& resource = resources[name];
      if (!resource.links.empty() || resource.absences != absence) return;
      resource.devices.clear();
    }
    changed(name, {});
  }

  void end(const std::string& resource, const std::string& socket) {
    DevicePluginLinkPtr gone;
    {
      const MutexLock lock(mutex);
      for (const auto& link : resources[resource].links) {
        if (link->socket == socket) gone = link;
      }
    }
    if (gone) disconnect(gone, "its registration ended");
  }
};

DevicePluginLinks::DevicePluginLinks(runtime::Runtime& runtime, Connect connect,
                                     const std::set<std::string, std::less<>>& known,
                                     Changed changed)
    : state_(std::make_shared<State>(runtime, std::move(connect), std::move(changed))) {
  const MutexLock lock(state_->mutex);
  for (const auto& resource : known) state_->resources[resource];
}

DevicePluginLinks::~DevicePluginLinks() { stop(); }

void DevicePluginLinks::begin(const std::string& resource, const std::string& socket) {
  state_->ask_later(resource, socket, kConnectTries);
}

void DevicePluginLinks::end(const std::string& resource, const std::string& socket) {
  state_->post([resource, socket](State& state) { state.end(resource, socket); });
}

void DevicePluginLinks::stop() {
  state_->gate.close();
  state_->streams.clear();
}

bool DevicePluginLinks::known(std::string_view resource) const {
  const MutexLock lock(state_->mutex);
  return state_->resources.contains(resource);
}

DevicePluginLinkPtr DevicePluginLinks::speaker(std::string_view resource) const {
  const MutexLock lock(state_->mutex);
  const auto found = state_->resources.find(resource);
  if (found == state_->resources.end() || found->second.links.empty()) return nullptr;
  return found->second.links.back();
}

PluginDevices DevicePluginLinks::devices(std::string_view resource) const {
  const MutexLock lock(state_->mutex);
  const auto found = state_->resources.find(resource);
  return found == state_->resources.end() ? PluginDevices() : found->second.devices;
}

std::map<std::string, PluginDevices> DevicePluginLinks::all() const {
  std::map<std::string, PluginDevices> out;
  const MutexLock lock(state_->mutex);
  for (const auto& [name, resource] : state_->resources) out[name] = resource.devices;
  return out;
}

}  // namespace dibs::node
