#include "controllers/endpoints/service_pods.h"

#include "controllers/endpoints/endpoint_objects.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

constexpr const char* kZoneLabel = "topology.kubernetes.io/zone";

}  // namespace

ServicePods::ServicePods(Environment& environment, Reconciler& reconciler)
    : reconciler_(reconciler),
      services_(
          environment.informers.of(kServiceResource, kByNamespace, client::index_by_namespace)),
      pods_(environment.informers.of(kPods, kByNamespace, client::index_by_namespace)),
      nodes_(environment.informers.of(kNodes)) {
  reconciler_.follow(services_);
  pods_.add_handler(
      {.added = [this](const Value& pod, bool) { add_services_of(pod); },
       .updated = [this](const Value& before, const Value& after) { pod_changed(before, after); },
       .removed = [this](const Value& pod) { add_services_of(pod); }});
  environment.informers.of(kPods, kByNode, index_by_node);
}

void ServicePods::follow_nodes() {
  const auto seen = [this](const Value& node) {
    for (const Value& pod : pods_.by_index(kByNode, std::string(name_of(node))))
      add_services_of(pod);
  };
  nodes_.add_handler({.added =
                          [seen](const Value& node, bool initial) {
                            if (!initial) seen(node);
                          },
                      .updated =
                          [seen](const Value& before, const Value& after) {
                            if (label_of(before, kZoneLabel) != label_of(after, kZoneLabel))
                              seen(after);
                          }});
}

bool ServicePods::selects(const Value& service) {
  return service["spec"]["type"].as_string() != "ExternalName" &&
         !service["spec"]["selector"].empty();
}

std::vector<Value> ServicePods::pods_of(const Value& service) const {
  const api::LabelSelector selector = service_selector(service);
  std::vector<Value> out;
  for (Value& pod : pods_.by_index(kByNamespace, std::string(namespace_of(service)))) {
    if (selector.matches(pod["metadata"]["labels"])) out.push_back(std::move(pod));
  }
  return out;
}

Value ServicePods::node_of(const Value& pod) const {
  auto found = nodes_.get(pod["spec"]["nodeName"].str());
  return found ? std::move(*found) : Value();
}

void ServicePods::pod_changed(const Value& before, const Value& after) {
  const bool moved = !(before["metadata"]["labels"] == after["metadata"]["labels"]);
  if (!moved && !changes_endpoints(before, after)) return;
  if (moved) add_services_of(before);
  add_services_of(after);
}

void ServicePods::add_services_of(const Value& pod) {
  for (const Value& service : services_.by_index(kByNamespace, std::string(namespace_of(pod)))) {
    if (selects(service) && service_selector(service).matches(pod["metadata"]["labels"]))
      reconciler_.add(client::key_of(service));
  }
}

}  // namespace dibs::controllers
