#include "node/plugins/resource_models.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "base/log.h"
#include "base/strings.h"
#include "client/gate.h"
#include "client/serial.h"
#include "client/work_queue.h"
#include "proto/dra_v1alpha3.pb.h"

namespace dibs::node {
namespace {

using client::WorkOutcome;
using json::Value;
namespace old = v1alpha3;

constexpr auto kRetry = std::chrono::seconds(5);
const client::Gvr kSlices = {"resource.k8s.io", "v1alpha2", "resourceslices"};
const client::Gvr kNodes = {"", "v1", "nodes"};

Value attribute_value(const old::NamedResourcesAttribute& attribute) {
  Value out = Value::object({{"name", attribute.name()}});
  const auto& value = attribute.attribute_value();
  if (value.has_quantity()) out.set("quantity", value.quantity().string());
  if (value.has_bool_()) out.set("bool", value.bool_());
  if (value.has_int_()) out.set("int", static_cast<long long>(value.int_()));
  if (value.has_int_slice()) {
    Value ints = Value::array();
    for (const auto number : value.int_slice().ints()) ints.push(static_cast<long long>(number));
    out.set("intSlice", Value::object({{"ints", ints}}));
  }
  if (value.has_string()) out.set("string", value.string());
  if (value.has_string_slice()) {
    Value strings = Value::array();
    for (const auto& text : value.string_slice().strings()) strings.push(text);
    out.set("stringSlice", Value::object({{"strings", strings}}));
  }
  if (value.has_version()) out.set("version", value.version());
  return out;
}

Value named_resources(const old::ResourceModel& model) {
  Value instances = Value::array();
  for (const auto& instance : model.named_resources().instances()) {
    Value entry = Value::object({{"name", instance.name()}});
    if (instance.attributes_size() > 0) {
      Value attributes = Value::array();
      for (const auto& attribute : instance.attributes()) {
        attributes.push(attribute_value(attribute));
      }
      entry.set("attributes", attributes);
    }
    instances.push(entry);
  }
  return Value::object({{"instances", instances}});
}

}  // namespace

struct ResourceModels::State : std::enable_shared_from_this<State> {
  struct Watch {
    std::shared_ptr<DraPlugin> plugin;
    std::unique_ptr<rpc::Stream> stream;
    std::uint64_t attempt = 0;
  };

  State(std::string name, client::Client& a, runtime::Runtime& r)
      : node_name(std::move(name)),
        api(a),
        runtime(r),
        serial(std::make_shared<client::Serial>(r.executor)),
        queue(r, {}, [this](const std::string& driver) { return sync(driver); }) {}

  void post(std::function<void(State&)> task) {
    serial->post([self = shared_from_this(), task = std::move(task)] {
      const client::GateEntry entry(self->gate);
      if (entry) task(*self);
    });
  }

  void open(DraPlugin* key) {
    const auto found = watches.find(key);
    if (found == watches.end() || found->second.stream) return;
    const std::uint64_t attempt = ++found->second.attempt;
    const std::weak_ptr<State> weak = weak_from_this();
    rpc::StreamHandlers handlers;
    handlers.message = [weak, key, attempt](std::string_view message) {
      if (const auto self = weak.lock()) {
        self->post([key, attempt, bytes = std::string(message)](State& state) {
          state.received(key, attempt, bytes);
        });
      }
    };
    handlers.ended = [weak, key, attempt](const rpc::Status& status) {
      if (const auto self = weak.lock()) {
        self->post([key, attempt, status](State& state) { state.ended(key, attempt, status); });
      }
    };
    found->second.stream = found->second.plugin->channel().open_stream(
        "/v1alpha3.Node/NodeListAndWatchResources", "", std::move(handlers));
  }

  Watch* current(DraPlugin* key, std::uint64_t attempt) {
    const auto found = watches.find(key);
    return found != watches.end() && found->second.attempt == attempt ? &found->second : nullptr;
  }

  void received(DraPlugin* key, std::uint64_t attempt, const std::string& bytes) {
    Watch* watch = current(key, attempt);
    if (!watch) return;
    const std::string driver = watch->plugin->info().name;
    old::NodeListAndWatchResourcesResponse response;
    if (!response.ParseFromString(bytes)) {
      log::warn("what a driver offers cannot be decoded", {{"driver", driver}});
      return;
    }
    std::vector<Value> models;
    for (const auto& model : response.resources()) models.push_back(named_resources(model));
    want(driver, std::move(models));
  }

  void ended(DraPlugin* key, std::uint64_t attempt, const rpc::Status& status) {
    Watch* watch = current(key, attempt);
    if (!watch) return;
    watch->stream.reset();
    if (status.ok() || status.code == rpc::Code::unimplemented) return;
    const std::weak_ptr<State> weak = weak_from_this();
    runtime.timers.after(kRetry, [weak, key] {
      if (const auto self = weak.lock()) self->post([key](State& state) { state.open(key); });
    });
  }

  void want(const std::string& driver, std::vector<Value> models) {
    {
      const std::lock_guard lock(mutex);
      wanted[driver] = std::move(models);
    }
    queue.add(driver);
  }

  WorkOutcome sync(const std::string& driver) {
    std::vector<Value> models;
    {
      const std::lock_guard lock(mutex);
      models = wanted[driver];
    }
    const auto synced = write(driver, std::move(models));
    if (synced) return WorkOutcome::done();
    log::warn("ResourceSlices of a driver cannot be written",
              {{"node", node_name}, {"driver", driver}, {"error", synced.error()}});
    return WorkOutcome::retry();
  }

  Result<> write(const std::string& driver, std::vector<Value> models) {
    client::ListOptions mine;
    mine.field_selector = cat("nodeName=", node_name);
    DIBS_TRY(const auto list, api.list(kSlices, "", mine));
    std::vector<Value> spare;
    for (const auto& slice : list.items) {
      if (slice["driverName"].as_string() != driver) continue;
      const auto same = std::find(models.begin(), models.end(), slice["namedResources"]);
      if (same != models.end()) {
        models.erase(same);
      } else {
        spare.push_back(slice);
      }
    }
    for (const auto& model : models) {
      if (!spare.empty()) {
        Value slice = spare.back();
        spare.pop_back();
        slice.set("namedResources", model);
        DIBS_TRY(const auto updated, api.update(kSlices, "", slice));
        continue;
      }
      DIBS_TRY(const auto slice, fresh(driver, model));
      DIBS_TRY(const auto created, api.create(kSlices, "", slice));
    }
    for (const auto& slice : spare) {
      const auto removed = api.remove(kSlices, "", slice["metadata"]["name"].as_string());
      if (!removed && removed.error().code() != Code::not_found) return removed.error();
    }
    return success();
  }

  Result<Value> fresh(const std::string& driver, const Value& model) {
    DIBS_TRY(const Value node, api.get(kNodes, "", node_name));
    const Value owner = Value::object({{"apiVersion", "v1"},
                                       {"kind", "Node"},
                                       {"name", node_name},
                                       {"uid", node["metadata"]["uid"]},
                                       {"controller", true}});
    return Value::object(
        {{"apiVersion", "resource.k8s.io/v1alpha2"},
         {"kind", "ResourceSlice"},
         {"metadata", Value::object({{"generateName", cat(node_name, "-", driver, "-")},
                                     {"ownerReferences", Value::array({owner})}})},
         {"nodeName", node_name},
         {"driverName", driver},
         {"namedResources", model}});
  }

  const std::string node_name;
  client::Client& api;
  runtime::Runtime& runtime;
  const std::shared_ptr<client::Serial> serial;
  client::Gate gate;
  std::map<DraPlugin*, Watch> watches;  // only tasks of `serial` use it
  std::mutex mutex;
  std::map<std::string, std::vector<Value>> wanted;  // by driver; guarded by mutex
  client::WorkQueue queue;
};

ResourceModels::ResourceModels(std::string node_name, client::Client& api,
                               runtime::Runtime& runtime)
    : state_(std::make_shared<State>(std::move(node_name), api, runtime)) {}

ResourceModels::~ResourceModels() { stop(); }

void ResourceModels::add(const std::shared_ptr<DraPlugin>& plugin) {
  if (plugin->spoken().semver.empty()) return;
  state_->post([plugin](State& state) {
    state.watches[plugin.get()].plugin = plugin;
    state.open(plugin.get());
  });
}

void ResourceModels::remove(const std::shared_ptr<DraPlugin>& plugin) {
  state_->post([plugin](State& state) {
    if (state.watches.erase(plugin.get()) == 0) return;
    const std::string driver = plugin->info().name;
    bool offered = false;
    {
      const std::lock_guard lock(state.mutex);
      offered = state.wanted.count(driver) != 0;
    }
    if (offered) state.want(driver, {});
  });
}

void ResourceModels::stop() {
  state_->gate.close();
  state_->watches.clear();
  state_->queue.stop();
}

}  // namespace dibs::node
