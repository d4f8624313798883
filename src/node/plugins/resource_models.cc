#include "node/plugins/resource_models.h"

#include <algorithm>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "proto/dra_v1alpha3.pb.h"

namespace dibs::node {
namespace {

using client::WorkOutcome;
using json::Value;
namespace old = v1alpha3;

const client::Gvr kSlices = {"resource.k8s.io", "v1alpha2", "resourceslices"};
const client::Gvr kNodes = {"", "v1", "nodes"};

constexpr auto kComeBack = std::chrono::seconds(30);

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

ResourceModels::ResourceModels(std::string node_name, client::Client& api,
                               runtime::Runtime& runtime, Registered registered)
    : node_name_(std::move(node_name)),
      api_(api),
      runtime_(runtime),
      registered_(std::move(registered)),
      queue_(runtime, {}, [this](const std::string& driver) { return sync(driver); }),
      streams_(runtime, handlers()) {}

PluginStreams::Handlers ResourceModels::handlers() {
  PluginStreams::Handlers out;
  out.method = [](const DraPlugin&) { return "/v1alpha3.Node/NodeListAndWatchResources"; };
  out.message = [this](const DraPlugin& plugin, const std::string& bytes) {
    received(plugin.info().name, bytes);
  };
  out.ended = [](const DraPlugin&, const rpc::Status& status) {
    return !status.ok() && status.code != rpc::Code::unimplemented;
  };
  out.removed = [this](const DraPlugin& plugin, bool last) {
    bool offered = false;
    {
      const MutexLock lock(mutex_);
      offered = wanted_.count(plugin.info().name) != 0;
    }
    if (offered && last) want(plugin.info().name, {});
  };
  return out;
}

void ResourceModels::add(const std::shared_ptr<DraPlugin>& plugin) {
  if (!plugin->spoken().semver.empty()) streams_.add(plugin);
}

void ResourceModels::clean_up() {
  {
    const MutexLock lock(mutex_);
    clean_from_ = runtime_.clock.steady() + kComeBack;
  }
  follow_slices();
}

void ResourceModels::stop() {
  streams_.stop();
  std::unique_ptr<client::Informer> slices;
  {
    const MutexLock lock(mutex_);
    slices = std::move(slices_);
  }
  slices.reset();
  queue_.stop();
}

void ResourceModels::follow_slices() {
  client::InformerOptions mine;
  mine.gvr = kSlices;
  mine.field_selector = cat("nodeName=", node_name_);
  const MutexLock lock(mutex_);
  if (slices_) return;
  slices_ = std::make_unique<client::Informer>(api_, runtime_, std::move(mine));
  const auto look = [this](const Value& slice) { queue_.add(slice["driverName"].str()); };
  slices_->add_handler({[look](const Value& slice, bool) { look(slice); },
                        [look](const Value&, const Value& slice) { look(slice); }, look});
  slices_->start();
}

void ResourceModels::received(const std::string& driver, const std::string& bytes) {
  old::NodeListAndWatchResourcesResponse response;
  if (!response.ParseFromString(bytes)) {
    log::warn("what a driver offers cannot be decoded", {{"driver", driver}});
    return;
  }
  std::vector<Value> models;
  for (const auto& model : response.resources()) models.push_back(named_resources(model));
  want(driver, std::move(models));
}

void ResourceModels::want(const std::string& driver, std::vector<Value> models) {
  {
    const MutexLock lock(mutex_);
    wanted_[driver] = std::move(models);
  }
  follow_slices();
  queue_.add(driver);
}

/// What is to be done about the slices of a driver that streams nothing; nothing: delete them.
std::optional<WorkOutcome> ResourceModels::leave_alone(const std::string& driver) {
  const MutexLock lock(mutex_);
  if (wanted_.count(driver) != 0) return std::nullopt;
  if (!clean_from_) return WorkOutcome::done();
  const Duration left = *clean_from_ - runtime_.clock.steady();
  if (left > Duration(0)) return WorkOutcome::again_after(left);
  if (registered_(driver)) return WorkOutcome::done();
  return std::nullopt;
}

WorkOutcome ResourceModels::sync(const std::string& driver) {
  if (const auto otherwise = leave_alone(driver)) return *otherwise;
  std::vector<Value> models;
  {
    const MutexLock lock(mutex_);
    if (const auto found = wanted_.find(driver); found != wanted_.end()) models = found->second;
  }
  const auto synced = write(driver, std::move(models));
  if (synced) return WorkOutcome::done();
  log::warn("ResourceSlices of a driver cannot be written",
            {{"node", node_name_}, {"driver", driver}, {"error", synced.error()}});
  return WorkOutcome::retry();
}

Result<> ResourceModels::write(const std::string& driver, std::vector<Value> models) {
  client::ListOptions mine;
  mine.field_selector = cat("nodeName=", node_name_);
  DIBS_TRY(const auto list, api_.list(kSlices, "", mine));
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
      DIBS_TRY(const auto updated, api_.update(kSlices, "", slice));
      continue;
    }
    DIBS_TRY(const auto slice, fresh(driver, model));
    DIBS_TRY(const auto created, api_.create(kSlices, "", slice));
  }
  for (const auto& slice : spare) {
    const auto removed = api_.remove(kSlices, "", slice["metadata"]["name"].as_string());
    if (!removed && removed.error().code() != Code::not_found) return removed.error();
  }
  return success();
}

Result<Value> ResourceModels::fresh(const std::string& driver, const Value& model) {
  DIBS_TRY(const Value node, api_.get(kNodes, "", node_name_));
  const Value owner = Value::object({{"apiVersion", "v1"},
                                     {"kind", "Node"},
                                     {"name", node_name_},
                                     {"uid", node["metadata"]["uid"]},
                                     {"controller", true}});
  return Value::object(
      {{"apiVersion", "resource.k8s.io/v1alpha2"},
       {"kind", "ResourceSlice"},
       {"metadata", Value::object({{"generateName", cat(node_name_, "-", driver, "-")},
                                   {"ownerReferences", Value::array({owner})}})},
       {"nodeName", node_name_},
       {"driverName", driver},
       {"namedResources", model}});
}

}  // namespace dibs::node
