#include "scheduler/pod.h"

#include <algorithm>

#include "base/strings.h"
#include "client/client.h"
#include "json/parse.h"
#include "scheduler/counted_spec.h"
#include "scheduler/pod_shapes.h"

namespace dibs::scheduler {
namespace {

api::LabelSelector read_selector(const json::Value& selector) {
  auto read = api::to_label_selector(selector);
  return read.ok() ? std::move(read).value() : api::LabelSelector::nothing();
}

PodTerm read_term(const json::Value& source, const std::string& name_space, std::int64_t weight) {
  PodTerm made;
  made.selector = read_selector(source["labelSelector"]);
  made.topology_key = source["topologyKey"].str();
  made.weight = weight;
  for (const json::Value& name : source["namespaces"].items())
    made.namespaces.push_back(name.str());
  made.has_namespace_selector = source["namespaceSelector"].is_object();
  if (made.has_namespace_selector) {
    made.namespace_selector = read_selector(source["namespaceSelector"]);
  } else if (made.namespaces.empty()) {
    made.namespaces.push_back(name_space);
  }
  std::sort(made.namespaces.begin(), made.namespaces.end());
  made.id = cat(made.topology_key, '\n', join(made.namespaces, ","), '\n',
                made.has_namespace_selector ? cat("*", made.namespace_selector.str()) : "", '\n',
                made.selector.matches_nothing() ? "!" : made.selector.str(), '\n', weight);
  return made;
}

void read_affinity(const json::Value& spec, const std::string& name_space, PodShape& pod) {
  const json::Value& affinity = spec["affinity"];
  const json::Value& nodes = affinity["nodeAffinity"];
  const json::Value& required = nodes["requiredDuringSchedulingIgnoredDuringExecution"];
  if (required.is_object()) {
    pod.has_node_affinity = true;
    pod.node_affinity = alloc::NodeSelector::read(required);
    bool all_name = !required["nodeSelectorTerms"].empty();
    std::vector<std::string> named;
    for (const json::Value& term : required["nodeSelectorTerms"].items()) {
      bool names = false;
      for (const json::Value& field : term["matchFields"].items()) {
        if (field["key"].as_string() != "metadata.name") continue;
        if (field["operator"].as_string() != "In") continue;
        names = true;
        for (const json::Value& value : field["values"].items()) named.push_back(value.str());
      }
      all_name = all_name && names;
    }
    if (all_name) {
      pod.names_nodes = true;
      pod.named_nodes = std::move(named);
    }
  }
  pod.preferred_nodes =
      read_preferred_nodes(nodes["preferredDuringSchedulingIgnoredDuringExecution"]);
  constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  constexpr const char* kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";
  const json::Value& with = affinity["podAffinity"];
  const json::Value& without = affinity["podAntiAffinity"];
  for (const json::Value& term : with[kRequired].items()) {
    pod.affinity.push_back(read_term(term, name_space, 0));
  }
  for (const json::Value& term : without[kRequired].items()) {
    pod.anti_affinity.push_back(read_term(term, name_space, 0));
  }
  for (const json::Value& term : with[kPreferred].items()) {
    pod.preferred_affinity.push_back(
        read_term(term["podAffinityTerm"], name_space, term["weight"].as_int()));
  }
  for (const json::Value& term : without[kPreferred].items()) {
    pod.preferred_affinity.push_back(
        read_term(term["podAffinityTerm"], name_space, -term["weight"].as_int()));
  }
}

void read_ports(const json::Value& containers, bool only_sidecars, PodShape& pod) {
  for (const json::Value& container : containers.items()) {
    if (only_sidecars && container["restartPolicy"].as_string() != "Always") continue;
    for (const json::Value& port : container["ports"].items()) {
      if (port["hostPort"].as_int() <= 0) continue;
      HostPort made;
      made.ip = port["hostIP"].str();
      if (made.ip.empty()) made.ip = "0.0.0.0";
      made.protocol = port["protocol"].str();
      if (made.protocol.empty()) made.protocol = "TCP";
      made.port = port["hostPort"].as_int();
      pod.ports.push_back(std::move(made));
    }
  }
}

bool restarts_all(const json::Value& containers) {
  for (const json::Value& container : containers.items()) {
    for (const json::Value& rule : container["restartPolicyRules"].items()) {
      if (rule["action"].as_string() == "RestartAllContainers") return true;
    }
  }
  return false;
}

void read_features(const json::Value& spec, PodShape& pod) {
  if (restarts_all(spec["containers"]) || restarts_all(spec["initContainers"])) {
    pod.features.emplace_back("RestartAllContainersOnContainerExits");
  }
  if (spec["hostNetwork"].as_bool() && !spec["hostUsers"].as_bool(true)) {
    pod.features.emplace_back("UserNamespacesHostNetworkSupport");
  }
}

std::string make_signature(const PodShape& pod, std::string_view name_space,
                           const json::Value& spec) {
  std::string out = cat(name_space, '\n', pod.scheduler_name, '\n', spec["priority"].as_int(), '\n',
                        pod.requests.cpu, ',', pod.requests.memory, ',', pod.requests.storage);
  for (const auto& [name, value] : pod.requests.scalars) append(out, ',', name, '=', value);
  for (const char* field :
       {"nodeSelector", "affinity", "tolerations", "topologySpreadConstraints"}) {
    out.push_back('\n');
    if (spec.contains(field)) json::write_to(out, spec[field]);
  }
  for (const HostPort& port : pod.ports) append(out, '\n', port.ip, port.protocol, port.port);
  for (const std::string& feature : pod.features) append(out, '\n', feature);
  out.push_back('\n');
  return out;
}

}  // namespace

PodShape PodShape::read(std::string_view name_space, const json::Value& labels,
                        const json::Value& spec) {
  PodShape made;
  made.scheduler_name = spec["schedulerName"].str();
  made.requests = pod_requests(spec);
  made.score = score_requests(spec);
  read_ports(spec["containers"], false, made);
  read_ports(spec["initContainers"], true, made);
  made.node_selector = spec["nodeSelector"];
  for (const json::Value& t : spec["tolerations"].items()) {
    made.tolerations.push_back(
        {t["key"].str(), t["operator"].str(), t["value"].str(), t["effect"].str()});
  }
  read_affinity(spec, std::string(name_space), made);
  for (const json::Value& source : spec["topologySpreadConstraints"].items()) {
    made.spread.push_back(read_spread_constraint(source, labels));
  }
  for (const json::Value& entry : spec["resourceClaims"].items()) {
    // v1alpha2 had the names one level deeper.
    const json::Value& source = entry["source"].is_object() ? entry["source"] : entry;
    made.claims.push_back({entry["name"].str(), source["resourceClaimName"].str(),
                           source["resourceClaimTemplateName"].str()});
  }
  read_features(spec, made);
  made.signature = make_signature(made, name_space, spec);
  return made;
}

std::vector<PreferredNodes> read_preferred_nodes(const json::Value& terms) {
  std::vector<PreferredNodes> made;
  for (const json::Value& term : terms.items()) {
    json::Value one = json::Value::array({term["preference"]});
    made.push_back({term["weight"].as_int(), alloc::NodeSelector::read(json::Value::object(
                                                 {{"nodeSelectorTerms", std::move(one)}}))});
  }
  return made;
}

SpreadConstraint read_spread_constraint(const json::Value& source, const json::Value& labels) {
  SpreadConstraint made;
  made.max_skew = source["maxSkew"].as_int(1);
  made.min_domains = source["minDomains"].as_int(1);
  made.topology_key = source["topologyKey"].str();
  made.required = source["whenUnsatisfiable"].as_string() != "ScheduleAnyway";
  made.honor_affinity = source["nodeAffinityPolicy"].as_string() != "Ignore";
  made.honor_taints = source["nodeTaintsPolicy"].as_string() == "Honor";
  made.selector = read_selector(source["labelSelector"]);
  if (source["matchLabelKeys"].empty() || made.selector.matches_nothing()) return made;
  std::vector<api::LabelRequirement> all = made.selector.requirements();
  for (const json::Value& key : source["matchLabelKeys"].items()) {
    const json::Value* value = labels.find(key.as_string());
    if (value == nullptr) continue;
    all.push_back({key.str(), api::LabelOperator::in, {value->str()}});
  }
  made.selector = api::LabelSelector(std::move(all));
  return made;
}

bool HostPort::clashes(const HostPort& other) const {
  return port == other.port && protocol == other.protocol &&
         (ip == other.ip || ip == "0.0.0.0" || other.ip == "0.0.0.0");
}

bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint) {
  return std::any_of(tolerations.begin(), tolerations.end(), [&](const Toleration& t) {
    if (!t.effect.empty() && t.effect != taint.effect) return false;
    if (!t.key.empty() && t.key != taint.key) return false;
    if (t.op == "Exists") return true;
    return (t.op.empty() || t.op == "Equal") && t.value == taint.value;
  });
}

std::shared_ptr<const Pod> Pod::read(const json::Value& object, PodShapes& shapes) {
  auto pod = std::make_shared<Pod>();
  pod->object = object;
  const json::Value& metadata = pod->object["metadata"];
  const json::Value& spec = pod->object["spec"];
  pod->key = client::key_of(metadata["namespace"].as_string(), metadata["name"].as_string());
  pod->name_space = metadata["namespace"].as_string();
  pod->name = metadata["name"].as_string();
  pod->uid = metadata["uid"].as_string();
  pod->labels = metadata["labels"];
  pod->node_name = spec["nodeName"].as_string();
  pod->priority = spec["priority"].as_int();
  pod->may_preempt = spec["preemptionPolicy"].as_string() != "Never";
  pod->gated = !spec["schedulingGates"].empty();
  if (const std::string_view group = spec["schedulingGroup"]["podGroupName"].as_string();
      !group.empty()) {
    pod->group = client::key_of(pod->name_space, group);
  }
  pod->terminating = metadata["deletionTimestamp"].is_string();
  const std::string_view phase = pod->object["status"]["phase"].as_string();
  pod->finished = phase == "Succeeded" || phase == "Failed";
  for (const json::Value& volume : spec["volumes"].items()) {
    if (volume.contains("persistentVolumeClaim") || volume.contains("ephemeral"))
      pod->claims_volumes = true;
  }
  pod->shape = shapes.get(pod->name_space, pod->labels, counted_spec(pod->object));
  return pod;
}

std::shared_ptr<const Pod> Pod::read(const json::Value& object) {
  PodShapes alone;
  return read(object, alone);
}

std::string_view Pod::nominated_node() const {
  return object["status"]["nominatedNodeName"].as_string();
}

std::string Pod::signature() const {
  // Others may select it, which counts for it alone where it has terms of its own, and for all
  // through their anti-affinity.
  std::string out = shape->signature;
  json::write_to(out, labels);
  // What its claims need is its own.
  if (claims_volumes) append(out, '\n', key);
  return out;
}

bool Pod::same_signature(const Pod& other) const {
  return (shape == other.shape || shape->signature == other.shape->signature) &&
         labels == other.labels;
}

}  // namespace dibs::scheduler
