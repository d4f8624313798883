#include "drivers/net/objects/reconciler.h"

#include <atomic>
#include <optional>

#include "base/log.h"
#include "base/strings.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "client/resource_versions.h"
#include "client/work_queue.h"
#include "drivers/net/model/claim_parameter.h"
#include "drivers/net/model/multus_config.h"
#include "drivers/net/objects/coordinator_status.h"
#include "drivers/net/objects/device_class.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers::net {
namespace {

using client::WorkOutcome;
using json::Value;

const client::Gvr kDeviceClasses = {"resource.k8s.io", "v1", "deviceclasses"};

// Keys of the queue: what there is to be done, and for which object. No object has these two:
constexpr const char* kBegin = "begin";
constexpr const char* kReady = "ready";
constexpr std::string_view kConfig = "config ";
constexpr std::string_view kParameter = "parameter ";
constexpr std::string_view kCoordinator = "coordinator ";

// Indexes.
constexpr const char* kByOwner = "owner";            // definitions by the config that has them
constexpr const char* kByDefinition = "definition";  // configs by what they make
constexpr const char* kByMultus = "multus";          // pools by the configs they name
constexpr const char* kByDefault = "default";        // pools by whether they are for everybody
constexpr const char* kByNic = "nic";                // parameters by the configs they name

constexpr Duration kInstallPoll = std::chrono::seconds(1);
constexpr Duration kSyncPoll = std::chrono::milliseconds(20);
/// Others' objects that a coordinator's status follows from are not watched.
constexpr Duration kCoordinatorPoll = std::chrono::seconds(60);

bool is_terminating(const Value& object) {
  return !object["metadata"]["deletionTimestamp"].as_string().empty();
}

/// The SpiderMultusConfig that has the definition; null when none has.
const Value& owner_of(const Value& definition) {
  for (const auto& owner : definition["metadata"]["ownerReferences"].items()) {
    if (owner["kind"].as_string() == "SpiderMultusConfig" && owner["controller"].as_bool() &&
        owner["apiVersion"].as_string().starts_with(cat(kGroup, "/"))) {
      return owner;
    }
  }
  return json::null_value();
}

std::vector<std::string> owner_key(const Value& definition) {
  const Value& owner = owner_of(definition);
  if (owner.is_null()) return {};
  return {client::key_of(client::namespace_of(definition), owner["name"].as_string())};
}

std::vector<std::string> definition_key(const Value& object) {
  const auto config = parse_multus_config(object);
  if (!config) return {client::key_of(object)};
  return {client::key_of(config->name_space, config->definition)};
}

std::vector<std::string> pools_of(const MultusConfig& config) {
  std::vector<std::string> out = config.ipv4_pools;
  out.insert(out.end(), config.ipv6_pools.begin(), config.ipv6_pools.end());
  return out;
}

std::vector<std::string> nic_keys(const Value& object) {
  std::vector<std::string> out;
  const auto parameter = parse_claim_parameter(object);
  if (!parameter) return out;
  if (parameter->default_nic) out.push_back(parameter->default_nic->key());
  for (const auto& nic : parameter->secondary_nics) out.push_back(nic.key());
  return out;
}

/// The config that a class says it was made from; "" where its name says otherwise.
std::string made_from(const Value& device_class) {
  std::string key = device_class["metadata"]["annotations"][kMadeFrom].str();
  const auto [name_space, name] = client::split_key(key);
  return device_class_name(name, name_space) == client::name_of(device_class) ? key : "";
}

/// What of a definition follows from its config.
bool is_as_wanted(const Value& there, const Value& wanted, std::string_view owner_uid) {
  const Value& annotations = there["metadata"]["annotations"];
  const Value& wanted_annotations = wanted["metadata"]["annotations"];
  const bool same_annotations =
      annotations == wanted_annotations || (annotations.empty() && wanted_annotations.empty());
  return same_annotations &&
         there["spec"]["config"].as_string() == wanted["spec"]["config"].as_string() &&
         owner_of(there)["uid"].as_string() == owner_uid;
}

}  // namespace

struct Reconciler::State {
  State(driver::Environment& environment, ReconcilerOptions given)
      : api(environment.api),
        runtime(environment.runtime),
        options(std::move(given)),
        resources(api),
        events(api, runtime, {.controller = "spiderpool-controller", .core = true}) {}

  client::Client& api;
  runtime::Runtime& runtime;
  const ReconcilerOptions options;
  client::ResourceClient resources;
  client::EventRecorder events;
  std::atomic<bool> ready{false};
  // Made in begin(); only the queue's work touches these, one at a time.
  bool looked_once = false;
  std::unique_ptr<client::Informer> configs;
  std::unique_ptr<client::Informer> definitions;
  std::unique_ptr<client::Informer> parameters;
  std::unique_ptr<client::Informer> coordinators;
  std::unique_ptr<client::Informer> pools;
  std::unique_ptr<client::Informer> classes;  // null: the server has none
  std::unique_ptr<client::WorkQueue> queue;

  WorkOutcome work(const std::string& key);
  WorkOutcome outcome(const std::string& key, const Result<>& done);
  Result<> begin();
  void watch_configs();
  void watch_others();
  std::unique_ptr<client::Informer> informer(client::Client& client, const client::Gvr& gvr);
  void on_change(client::Informer& informer, std::function<void(const Value&)> look);
  std::vector<client::Informer*> all() const;
  bool informed() const;
  WorkOutcome look_around();
  void look_at_parameters(const std::string& nic);
  void look_at_configs();

  Result<> sync_config(const std::string& key);
  Result<> clean_up(const std::string& key);
  Result<> sync_definition(const MultusConfig& config, const Value& object);
  Result<> sync_class(const MultusConfig& config);
  Result<> sync_parameter(const std::string& key);
  Result<> sync_coordinator(const std::string& key);
  std::optional<MultusConfig> find_config(const std::string& key) const;
  /// The pools that a pod of the config gets addresses from, where nothing else names any; nothing:
  /// that cannot be told.
  std::optional<std::vector<Value>> pools_serving(const MultusConfig& config) const;
  std::vector<Subnet> subnets_of(const MultusConfig& config) const;
  void warn(const Value& object, std::string reason, std::string note);
};

// --- What is watched, and what a change means.

std::unique_ptr<client::Informer> Reconciler::State::informer(client::Client& client,
                                                              const client::Gvr& gvr) {
  client::InformerOptions watch;
  watch.gvr = gvr;
  return std::make_unique<client::Informer>(client, runtime, watch);
}

void Reconciler::State::on_change(client::Informer& informer,
                                  std::function<void(const Value&)> look) {
  informer.add_handler({.added = [look](const Value& object, bool) { look(object); },
                        .updated = [look](const Value&, const Value& object) { look(object); },
                        .removed = look});
}

void Reconciler::State::look_at_parameters(const std::string& nic) {
  for (const auto& parameter : parameters->by_index(kByNic, nic)) {
    queue->add(cat(kParameter, client::key_of(parameter)));
  }
}

void Reconciler::State::watch_configs() {
  configs = informer(api, kMultusConfigs);
  configs->add_index(kByDefinition, definition_key);
  on_change(*configs, [this](const Value& object) {
    queue->add(cat(kConfig, client::key_of(object)));
    look_at_parameters(client::key_of(object));
  });
  definitions = informer(api, kNetAttachDefs);
  definitions->add_index(kByOwner, owner_key);
  on_change(*definitions, [this](const Value& object) {
    const std::string key = client::key_of(object);
    for (const auto& owner : owner_key(object)) queue->add(cat(kConfig, owner));
    for (const auto& config : configs->by_index(kByDefinition, key)) {
      queue->add(cat(kConfig, client::key_of(config)));
    }
    look_at_parameters(key);
  });
}

void Reconciler::State::watch_others() {
  parameters = informer(api, kClaimParameters);
  parameters->add_index(kByNic, nic_keys);
  on_change(*parameters,
            [this](const Value& object) { queue->add(cat(kParameter, client::key_of(object))); });
  coordinators = informer(api, kCoordinators);
  on_change(*coordinators,
            [this](const Value& object) { queue->add(cat(kCoordinator, client::key_of(object))); });
  pools = informer(api, kIpPools);
  pools->add_index(kByMultus, [home = options.install_namespace](const Value& pool) {
    std::vector<std::string> out;
    for (const auto& name : pool["spec"]["multusName"].items()) {
      const bool whole = name.as_string().find('/') != std::string_view::npos;
      out.push_back(whole ? name.str() : cat(home, "/", name.as_string()));
    }
    return out;
  });
  pools->add_index(kByDefault, [](const Value& pool) {
    return std::vector<std::string>(pool["spec"]["default"].as_bool() ? 1 : 0, kByDefault);
  });
  // The status of a pool changes with every address.
  const auto look = [this](const Value&) { look_at_configs(); };
  pools->add_handler({.added = [look](const Value& pool, bool) { look(pool); },
                      .updated =
                          [look](const Value& before, const Value& pool) {
                            if (before["spec"] != pool["spec"]) look(pool);
                          },
                      .removed = look});
}

void Reconciler::State::look_at_configs() {
  for (const auto& config : configs->list()) queue->add(cat(kConfig, client::key_of(config)));
}

std::vector<client::Informer*> Reconciler::State::all() const {
  std::vector<client::Informer*> out;
  for (const auto* informer :
       {&configs, &definitions, &parameters, &coordinators, &pools, &classes}) {
    if (*informer) out.push_back(informer->get());
  }
  return out;
}

bool Reconciler::State::informed() const {
  for (const auto* informer : all()) {
    if (!informer->synced()) return false;
  }
  return true;
}

Result<> Reconciler::State::begin() {
  DIBS_CHECK(install(api, {.release = options.release}));
  // Where only the classic model is served there is nothing to make a class of.
  const auto some_class = resources.list_page(kDeviceClasses, "", {.limit = 1});
  if (!some_class && some_class.error().code() != Code::not_found) return some_class.error();
  watch_configs();
  watch_others();
  if (some_class) {
    classes = informer(resources, kDeviceClasses);
    on_change(*classes, [this](const Value& object) {
      const std::string config = made_from(object);
      if (!config.empty()) queue->add(cat(kConfig, config));
    });
  }
  for (auto* informer : all()) informer->start();
  queue->add(kReady);
  return success();
}

// --- The work.

WorkOutcome Reconciler::State::work(const std::string& key) {
  if (key == kBegin) {
    const auto begun = begin();
    if (begun) return WorkOutcome::done();
    log::info("the network's kinds are not installed yet", {{"error", begun.error()}});
    return WorkOutcome::again_after(kInstallPoll);
  }
  if (!informed()) return WorkOutcome::again_after(kSyncPoll);
  if (key == kReady) return look_around();
  const std::string_view view = key;
  if (view.starts_with(kConfig)) {
    return outcome(key, sync_config(key.substr(kConfig.size())));
  }
  if (view.starts_with(kParameter)) {
    return outcome(key, sync_parameter(key.substr(kParameter.size())));
  }
  const std::string coordinator = key.substr(kCoordinator.size());
  if (!coordinators->get(coordinator)) return WorkOutcome::done();
  const auto done = sync_coordinator(coordinator);
  return done ? WorkOutcome::again_after(kCoordinatorPoll) : outcome(key, done);
}

/// All that there was in the beginning stands in the queue before this key the second time.
WorkOutcome Reconciler::State::look_around() {
  if (looked_once) {
    ready = true;
    return WorkOutcome::done();
  }
  looked_once = true;
  return WorkOutcome::again_after(Duration(0));
}

WorkOutcome Reconciler::State::outcome(const std::string& key, const Result<>& done) {
  if (done) return WorkOutcome::done();
  const Code code = done.error().code();
  // Somebody else was faster.
  if (code != Code::conflict && code != Code::already_exists) {
    log::warn("the network's objects are not in step", {{"object", key}, {"error", done.error()}});
  }
  return WorkOutcome::retry();
}

void Reconciler::State::warn(const Value& object, std::string reason, std::string note) {
  client::EventInput event;
  event.regarding = client::object_reference(object);
  event.warning = true;
  event.reason = std::move(reason);
  event.note = std::move(note);
  events.record(std::move(event));
}

Result<> Reconciler::State::sync_config(const std::string& key) {
  const auto object = configs->get(key);
  if (!object) return clean_up(key);
  if (is_terminating(*object)) return success();
  const auto config = parse_multus_config(*object);
  if (!config) {
    warn(*object, "InvalidMultusConfig", config.error().message());
    return success();
  }
  DIBS_CHECK(sync_definition(*config, *object));
  return classes ? sync_class(*config) : success();
}

/// A class cannot be owned by an object in a namespace; definitions are owned, but who says that
/// somebody collects garbage.
Result<> Reconciler::State::clean_up(const std::string& key) {
  const auto removed = [](const Result<Value>& answer) -> Result<> {
    if (answer || answer.error().code() == Code::not_found) return success();
    return answer.error();
  };
  for (const auto& definition : definitions->by_index(kByOwner, key)) {
    client::DeleteOptions precise;
    precise.uid = client::uid_of(definition);
    DIBS_CHECK(removed(api.remove(kNetAttachDefs, client::namespace_of(definition),
                                  client::name_of(definition), precise)));
  }
  if (!classes) return success();
  const auto [name_space, name] = client::split_key(key);
  const std::string class_name = device_class_name(name, name_space);
  const auto there = resources.get(kDeviceClasses, "", class_name);
  if (!there && there.error().code() == Code::not_found) return success();
  if (!there) return there.error();
  if (made_from(*there) != key) return success();
  client::DeleteOptions precise;
  precise.uid = client::uid_of(*there);
  return removed(resources.remove(kDeviceClasses, "", class_name, precise));
}

Result<> Reconciler::State::sync_definition(const MultusConfig& config, const Value& object) {
  for (const auto& definition : definitions->by_index(kByOwner, config.key())) {
    if (client::name_of(definition) == config.definition || is_terminating(definition) ||
        owner_of(definition)["uid"] != object["metadata"]["uid"]) {
      continue;
    }
    warn(object, "InvalidMultusConfig",
         cat("it's unsupported to change customized Multus net-attach-def resource name from '",
             client::name_of(definition), "' to '", config.definition, "'"));
    return success();
  }
  const Value wanted = net_attach_def_of(config, object);
  auto there = api.get(kNetAttachDefs, config.name_space, config.definition);
  if (!there && there.error().code() != Code::not_found) return there.error();
  if (!there) {
    DIBS_CHECK(api.create(kNetAttachDefs, config.name_space, wanted));
    return success();
  }
  if (is_terminating(*there)) {
    const std::string note = cat("the old net-attach-def ", config.name_space, "/",
                                 config.definition, " is terminating, wait for a while");
    warn(object, "NetAttachDefTerminating", note);
    return Error::unavailable(note);
  }
  const Value& owner = owner_of(*there);
  if (!owner.is_null() && owner["name"].as_string() != config.name &&
      configs->get(client::key_of(config.name_space, owner["name"].as_string()))) {
    warn(object, "InvalidMultusConfig",
         cat("the net-attach-def ", config.name_space, "/", config.definition,
             " already exists and is managed by SpiderMultusConfig ", config.name_space, "/",
             owner["name"].as_string(), "."));
    return success();
  }
  if (is_as_wanted(*there, wanted, client::uid_of(object))) return success();
  Value next = wanted;
  next.set("metadata", (*there)["metadata"]);
  next.mut("metadata").set("ownerReferences", wanted["metadata"]["ownerReferences"]);
  next.mut("metadata").set("annotations", wanted["metadata"]["annotations"]);
  DIBS_CHECK(api.update(kNetAttachDefs, config.name_space, next));
  return success();
}

std::optional<std::vector<Value>> Reconciler::State::pools_serving(
    const MultusConfig& config) const {
  std::vector<Value> out;
  const auto named = pools_of(config);
  for (const auto& name : named) {
    auto pool = pools->get(name);
    // A pattern, or a pool that is not there yet, can mean any.
    if (!pool) return std::nullopt;
    out.push_back(std::move(*pool));
  }
  if (!named.empty() || !options.multus_name_selects) return out;
  if (!pools->by_index(kByDefault, kByDefault).empty()) return std::nullopt;
  return pools->by_index(kByMultus, config.key());
}

std::vector<Subnet> Reconciler::State::subnets_of(const MultusConfig& config) const {
  if (!options.match_subnets || config.disable_ipam) return {};
  const auto serving = pools_serving(config);
  if (!serving) return {};
  std::vector<Subnet> out;
  for (const auto& pool : *serving) {
    const auto subnet = Subnet::parse(pool["spec"]["subnet"].as_string());
    if (!subnet) return {};
    out.push_back(*subnet);
  }
  return out;
}

Result<> Reconciler::State::sync_class(const MultusConfig& config) {
  const Value wanted = device_class_of(config, subnets_of(config));
  const std::string name(client::name_of(wanted));
  const auto there = resources.get(kDeviceClasses, "", name);
  if (!there && there.error().code() != Code::not_found) return there.error();
  if (!there) {
    DIBS_CHECK(resources.create(kDeviceClasses, "", wanted));
    return success();
  }
  if (made_from(*there) != config.key()) {
    if (const auto object = configs->get(config.key())) {
      warn(*object, "DeviceClassExists",
           cat("the DeviceClass ", name, " is somebody else's: it has no annotation ", kMadeFrom));
    }
    return success();
  }
  if ((*there)["spec"]["selectors"] == wanted["spec"]["selectors"] &&
      (*there)["spec"]["config"] == wanted["spec"]["config"]) {
    return success();
  }
  Value next = *there;
  next.mut("spec").set("selectors", wanted["spec"]["selectors"]);
  next.mut("spec").set("config", wanted["spec"]["config"]);
  DIBS_CHECK(resources.update(kDeviceClasses, "", next));
  return success();
}

std::optional<MultusConfig> Reconciler::State::find_config(const std::string& key) const {
  if (const auto object = configs->get(key)) {
    // One that is wrong has its own event.
    const auto config = parse_multus_config(*object);
    return config ? *config : MultusConfig();
  }
  if (const auto definition = definitions->get(key)) {
    const auto config = config_of_definition(*definition);
    return config ? *config : MultusConfig();
  }
  return std::nullopt;
}

Result<> Reconciler::State::sync_parameter(const std::string& key) {
  const auto object = parameters->get(key);
  if (!object || is_terminating(*object)) return success();
  const auto parameter = parse_claim_parameter(*object);
  if (!parameter) {
    warn(*object, "InvalidClaimParameter", parameter.error().message());
    return success();
  }
  const auto judged =
      check_nics(*parameter, [this](const std::string& nic) { return find_config(nic); });
  if (!judged) {
    const bool absent = judged.error().code() == Code::not_found;
    warn(*object, absent ? "NetworkNotFound" : "InvalidClaimParameter", judged.error().message());
  }
  const std::string warning = warning_of(*parameter);
  if (!warning.empty()) warn(*object, "OldCdiVersion", warning);
  return success();
}

Result<> Reconciler::State::sync_coordinator(const std::string& key) {
  const auto object = coordinators->get(key);
  if (!object || is_terminating(*object)) return success();
  Value status = coordinator_status(*object, api);
  if ((*object)["status"] == status) return success();
  Value next = *object;
  next.set("status", std::move(status));
  DIBS_CHECK(api.update_status(kCoordinators, "", next));
  return success();
}

// --- Life.

Reconciler::Reconciler() = default;

Reconciler::~Reconciler() { stop(); }

std::unique_ptr<Reconciler> Reconciler::start(driver::Environment environment,
                                              ReconcilerOptions options) {
  std::unique_ptr<Reconciler> out(new Reconciler());
  out->state_ = std::make_unique<State>(environment, options);
  State& state = *out->state_;
  state.queue = std::make_unique<client::WorkQueue>(
      state.runtime, client::WorkQueueOptions(),
      client::WorkQueue::Work([&state](const std::string& key) { return state.work(key); }));
  state.queue->add(kBegin);
  return out;
}

bool Reconciler::synced() const { return state_->ready; }

void Reconciler::stop() {
  if (!state_) return;
  state_->queue->stop();
  for (auto* informer : state_->all()) informer->stop();
}

}  // namespace dibs::drivers::net
