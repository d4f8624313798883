#include "controllers/controller.h"

#include <algorithm>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"

namespace dibs::controllers {
namespace {

// While the first lists are under way; they take milliseconds.
constexpr Duration kUntilSynced = std::chrono::milliseconds(10);

/// As Kubernetes writes the names of its queues.
std::string queue_name(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace

const Gvr kPods = {"", "v1", "pods"};
const Gvr kNodes = {"", "v1", "nodes"};
const Gvr kNamespaces = {"", "v1", "namespaces"};

SharedInformers::SharedInformers(client::Client& client, runtime::Runtime& runtime)
    : client_(client), runtime_(runtime) {}

SharedInformers::~SharedInformers() { stop(); }

SharedInformers::Entry& SharedInformers::entry(const Gvr& gvr) {
  auto& found = entries_[client::path_of(gvr, "")];
  if (found.informer == nullptr) {
    client::InformerOptions options;
    options.gvr = gvr;
    found.informer = std::make_unique<client::Informer>(client_, runtime_, std::move(options));
  }
  return found;
}

client::Informer& SharedInformers::of(const Gvr& gvr) { return *entry(gvr).informer; }

client::Informer& SharedInformers::of(const Gvr& gvr, const std::string& index,
                                      client::ObjectStore::Index function) {
  Entry& found = entry(gvr);
  if (std::find(found.indexes.begin(), found.indexes.end(), index) == found.indexes.end()) {
    found.indexes.push_back(index);
    found.informer->add_index(index, std::move(function));
  }
  return *found.informer;
}

void SharedInformers::start() {
  for (auto& [path, entry] : entries_) entry.informer->start();
}

void SharedInformers::stop() {
  for (auto& [path, entry] : entries_) entry.informer->stop();
}

bool SharedInformers::synced() const {
  return std::all_of(entries_.begin(), entries_.end(),
                     [](const auto& item) { return item.second.informer->synced(); });
}

client::Client& Environment::as(std::string_view account) const {
  const auto found = options.clients.find(account);
  return found == options.clients.end() ? client : *found->second;
}

Recorders::Recorders(client::Client& client, runtime::Runtime& runtime)
    : client_(client), runtime_(runtime) {}

void Recorders::event(const std::string& component, const Value& regarding, bool warning,
                      const std::string& reason, const std::string& note) {
  client::EventRecorder* recorder = nullptr;
  {
    const MutexLock lock(mutex_);
    auto& found = recorders_[component];
    if (found == nullptr) {
      found = std::make_unique<client::EventRecorder>(
          client_, runtime_, client::EventRecorderOptions{.controller = component, .core = true});
    }
    recorder = found.get();
  }
  client::EventInput input;
  input.regarding = regarding;
  input.warning = warning;
  input.reason = reason;
  input.action = reason;
  input.note = note;
  recorder->record(std::move(input));
}

void Recorders::stop() {
  const MutexLock lock(mutex_);
  recorders_.clear();
}

Reconciler::Reconciler(Environment& environment, std::string name, Function function,
                       unsigned concurrency)
    : Reconciler(
          environment, std::move(name),
          LongFunction([function = std::move(function)](const std::string& key, const Done& done) {
            done(function(key));
          }),
          concurrency) {}

Reconciler::Reconciler(Environment& environment, std::string name, LongFunction function,
                       unsigned concurrency)
    : environment_(environment),
      name_(std::move(name)),
      function_(std::move(function)),
      queue_(environment.runtime,
             {.concurrency = concurrency == 0 ? environment.options.concurrency : concurrency,
              .metrics = environment.options.metrics,
              .name = queue_name(name_)},
             [this](const std::string& key, const client::WorkQueue::Done& done) {
               work(key, done);
             }) {}

bool Reconciler::synced() {
  if (!synced_ && environment_.informers.synced()) synced_ = true;
  return synced_;
}

void Reconciler::work(const std::string& key, const client::WorkQueue::Done& done) {
  if (!synced()) return done(WorkOutcome::again_after(kUntilSynced));
  function_(key, [this, done, key](const Result<WorkOutcome>& outcome) {
    if (outcome) return done(*outcome);
    if (outcome.error().code() != Code::conflict) {
      log::debug("controller will try again",
                 {{"controller", name_}, {"key", key}, {"error", outcome.error()}});
    }
    done(WorkOutcome::retry());
  });
}

void Reconciler::call(client::Request request,
                      std::function<void(const Result<Value>& answer)> then) {
  environment_.client.call(std::move(request), [gate = queue_.gate(), then = std::move(then)](
                                                   const Result<Value>& answer) {
    client::GateEntry inside(*gate);
    if (inside) then(answer);
  });
}

void Reconciler::follow(client::Informer& informer) {
  follow(informer, [this](const Value& object) { add(client::key_of(object)); });
}

void Reconciler::follow(client::Informer& informer, std::function<void(const Value&)> seen) {
  informer.add_handler({.added = [seen](const Value& object, bool) { seen(object); },
                        .updated =
                            [seen](const Value& before, const Value& after) {
                              seen(before);
                              seen(after);
                            },
                        .removed = [seen](const Value& object) { seen(object); }});
}

bool is_gone(const Error& error) { return error.code() == Code::not_found; }

const Value& controller_of(const Value& object) {
  for (const auto& owner : object["metadata"]["ownerReferences"].items()) {
    if (owner["controller"].as_bool()) return owner;
  }
  return json::null_value();
}

std::vector<std::string> index_by_controller(const Value& object) {
  const Value& owner = controller_of(object);
  if (owner.is_null()) return {};
  return {owner["uid"].str()};
}

std::vector<std::string> index_by_node(const Value& pod) {
  const Value& node = pod["spec"]["nodeName"];
  if (node.as_string().empty()) return {};
  return {node.str()};
}

bool is_deleting(const Value& object) { return !object["metadata"]["deletionTimestamp"].is_null(); }

bool is_pod_terminal(const Value& pod) {
  const auto phase = pod["status"]["phase"].as_string();
  return phase == "Succeeded" || phase == "Failed";
}

const Value& find_condition(const Value& object, std::string_view type) {
  for (const auto& condition : object["status"]["conditions"].items()) {
    if (condition["type"].as_string() == type) return condition;
  }
  return json::null_value();
}

Value owner_reference(const Value& owner, bool block) {
  Value out = Value::object({{"apiVersion", owner["apiVersion"]},
                             {"kind", owner["kind"]},
                             {"name", owner["metadata"]["name"]},
                             {"uid", owner["metadata"]["uid"]},
                             {"controller", true}});
  if (block) out.set("blockOwnerDeletion", true);
  return out;
}

std::optional<ServedResource> find_taint_rules(const Environment& environment) {
  if (!environment.options.taint_rules) return std::nullopt;
  return environment.discovery.find("resource.k8s.io", "devicetaintrules");
}

}  // namespace dibs::controllers
