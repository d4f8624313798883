#include "dns/zone_watch.h"

#include <algorithm>

#include "client/gate.h"

namespace dibs::dns {

using json::Value;

namespace {

constexpr Duration kLookAgain = std::chrono::milliseconds(20);

/// Name, namespace, uid, resourceVersion and labels: what an informer needs, and whose a slice is.
Value keep_metadata(const Value& object) {
  Value out = Value::object();
  for (const char* field : {"name", "namespace", "uid", "resourceVersion", "labels"}) {
    if (const Value* value = object["metadata"].find(field)) out.set(field, *value);
  }
  return out;
}

Value keep_service(const Value& object) {
  Value spec = Value::object();
  for (const char* field :
       {"type", "externalName", "clusterIP", "clusterIPs", "ports", "publishNotReadyAddresses"}) {
    if (const Value* value = object["spec"].find(field)) spec.set(field, *value);
  }
  return Value::object({{"metadata", keep_metadata(object)}, {"spec", spec}});
}

Value keep_slice(const Value& object) {
  Value endpoints = Value::array();
  for (const auto& one : object["endpoints"].items()) {
    Value endpoint = Value::object();
    for (const char* field : {"addresses", "hostname", "conditions"}) {
      if (const Value* value = one.find(field)) endpoint.set(field, *value);
    }
    endpoints.push(std::move(endpoint));
  }
  return Value::object({{"metadata", keep_metadata(object)},
                        {"ports", object["ports"]},
                        {"endpoints", std::move(endpoints)}});
}

}  // namespace

struct ZoneWatch::State : std::enable_shared_from_this<State> {
  State(client::Client& api, runtime::Runtime& world, Zone& target)
      : client(api), runtime(world), zone(target) {
    follow(
        {.gvr = {"", "v1", "services"}, .keep = keep_service},
        [this](const Value& object) { zone.set_service(object); },
        [this](const Value& object) { zone.remove_service(object); });
    follow(
        {.gvr = {"discovery.k8s.io", "v1", "endpointslices"}, .keep = keep_slice},
        [this](const Value& object) { zone.set_slice(object); },
        [this](const Value& object) { zone.remove_slice(object); });
    follow(
        {.gvr = {"", "v1", "namespaces"}, .metadata_only = true},
        [this](const Value& object) { zone.set_namespace(client::name_of(object)); },
        [this](const Value& object) { zone.remove_namespace(client::name_of(object)); });
  }

  using See = std::function<void(const Value& object)>;
  void follow(client::InformerOptions options, const See& set, const See& removed) {
    auto& informer = informers.emplace_back(
        std::make_unique<client::Informer>(client, runtime, std::move(options)));
    informer->add_handler({.added = [set](const Value& object, bool) { set(object); },
                           .updated = [set](const Value&, const Value& object) { set(object); },
                           .removed = removed});
  }

  void look() {
    const bool all = std::all_of(informers.begin(), informers.end(),
                                 [](const auto& informer) { return informer->synced(); });
    if (all) return zone.set_complete();
    runtime.timers.after(kLookAgain, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      if (const client::GateEntry entry(self->gate); entry) self->look();
    });
  }

  client::Client& client;
  runtime::Runtime& runtime;
  Zone& zone;
  client::Gate gate;
  std::vector<std::unique_ptr<client::Informer>> informers;
};

ZoneWatch::ZoneWatch(client::Client& client, runtime::Runtime& runtime, Zone& zone)
    : state_(std::make_shared<State>(client, runtime, zone)) {}

ZoneWatch::~ZoneWatch() { stop(); }

void ZoneWatch::start() {
  for (auto& informer : state_->informers) informer->start();
  state_->look();
}

void ZoneWatch::stop() {
  state_->gate.close();
  for (auto& informer : state_->informers) informer->stop();
}

}  // namespace dibs::dns
