#include "scheduler/pod.h"

#include <algorithm>
#include <array>
#include <functional>
#include <mutex>
#include <unordered_map>

#include "base/strings.h"
#include "client/client.h"
#include "json/parse.h"

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
  for (const json::Value& term : nodes["preferredDuringSchedulingIgnoredDuringExecution"].items()) {
    json::Value terms = json::Value::array({term["preference"]});
    pod.preferred_nodes.push_back(
        {term["weight"].as_int(),
         alloc::NodeSelector::read(json::Value::object({{"nodeSelectorTerms", terms}}))});
  }
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

void read_spread(const json::Value& spec, const json::Value& labels, PodShape& pod) {
  for (const json::Value& source : spec["topologySpreadConstraints"].items()) {
    SpreadConstraint made;
    made.max_skew = source["maxSkew"].as_int(1);
    made.min_domains = source["minDomains"].as_int(1);
    made.topology_key = source["topologyKey"].str();
    made.required = source["whenUnsatisfiable"].as_string() != "ScheduleAnyway";
    made.honor_affinity = source["nodeAffinityPolicy"].as_string() != "Ignore";
    made.honor_taints = source["nodeTaintsPolicy"].as_string() == "Honor";
    made.selector = read_selector(source["labelSelector"]);
    if (!source["matchLabelKeys"].empty() && !made.selector.matches_nothing()) {
      std::vector<api::LabelRequirement> all = made.selector.requirements();
      for (const json::Value& key : source["matchLabelKeys"].items()) {
        const json::Value* value = labels.find(key.as_string());
        if (value == nullptr) continue;
        all.push_back({key.str(), api::LabelOperator::in, {value->str()}});
      }
      made.selector = api::LabelSelector(std::move(all));
    }
    pod.spread.push_back(std::move(made));
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
  out.push_back('\n');
  return out;
}

PodShape read_shape(std::string_view name_space, const json::Value& labels,
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
  read_spread(spec, labels, made);
  for (const json::Value& entry : spec["resourceClaims"].items()) {
    // v1alpha2 had the names one level deeper.
    const json::Value& source = entry["source"].is_object() ? entry["source"] : entry;
    made.claims.push_back({entry["name"].str(), source["resourceClaimName"].str(),
                           source["resourceClaimTemplateName"].str()});
  }
  made.signature = make_signature(made, name_space, spec);
  return made;
}

/// What a shape is read from. Containers are whole here, but only compared by what counts.
struct ShapeSource {
  static constexpr std::array<std::string_view, 9> kFields = {
      "schedulerName", "priority", "nodeSelector", "affinity",
      "tolerations",   "overhead", "resources",    "topologySpreadConstraints",
      "resourceClaims"};
  static constexpr std::array<std::string_view, 3> kContainerFields = {"resources", "ports",
                                                                       "restartPolicy"};

  std::string name_space;
  json::Value labels;  // null unless the shape depends on them
  std::array<json::Value, kFields.size()> fields;
  json::Value containers;
  json::Value init_containers;

  ShapeSource(std::string_view in, const json::Value& pod_labels, const json::Value& spec)
      : name_space(in), containers(spec["containers"]), init_containers(spec["initContainers"]) {
    for (std::size_t i = 0; i < kFields.size(); ++i) fields[i] = spec[kFields[i]];
    for (const json::Value& one : spec["topologySpreadConstraints"].items()) {
      if (!one["matchLabelKeys"].empty()) labels = pod_labels;
    }
  }

  std::uint64_t hash() const;
  friend bool operator==(const ShapeSource& a, const ShapeSource& b);
};

void mix(std::uint64_t& sum, std::uint64_t more) {
  sum = (sum ^ more) * 0x9e3779b97f4a7c15U;
  sum ^= sum >> 29;
}

/// Keys are left out: comparing follows, and values tell specs apart well enough.
void mix_tree(std::uint64_t& sum, const json::Value& value) {
  switch (value.kind()) {
    case json::Kind::string:
      mix(sum, std::hash<std::string_view>()(value.as_string()));
      break;
    case json::Kind::array:
      for (const json::Value& item : value.items()) mix_tree(sum, item);
      break;
    case json::Kind::object:
      for (const auto& [key, member] : value.members()) mix_tree(sum, member);
      break;
    default:
      mix(sum, static_cast<std::uint64_t>(value.as_int(value.as_bool() ? 1 : 0)));
  }
  mix(sum, static_cast<std::uint64_t>(value.kind()));
}

std::uint64_t ShapeSource::hash() const {
  std::uint64_t sum = std::hash<std::string_view>()(name_space);
  mix_tree(sum, labels);
  for (const json::Value& field : fields) mix_tree(sum, field);
  for (const json::Value* list : {&containers, &init_containers}) {
    for (const json::Value& container : list->items()) {
      for (const auto field : kContainerFields) mix_tree(sum, container[field]);
    }
    mix(sum, list->size());
  }
  return sum;
}

bool same_containers(const json::Value& a, const json::Value& b) {
  if (a.same_node(b)) return true;
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (const auto field : ShapeSource::kContainerFields) {
      if (!(a[i][field] == b[i][field])) return false;
    }
  }
  return true;
}

bool operator==(const ShapeSource& a, const ShapeSource& b) {
  return a.name_space == b.name_space && a.labels == b.labels && a.fields == b.fields &&
         same_containers(a.containers, b.containers) &&
         same_containers(a.init_containers, b.init_containers);
}

/// The shapes in use, of all schedulers of the process. An entry without a user goes when there
/// are twice as many as were in use the last time.
class Shapes {
 public:
  std::shared_ptr<const PodShape> get(std::string_view name_space, const json::Value& labels,
                                      const json::Value& spec) {
    ShapeSource source(name_space, labels, spec);
    const std::uint64_t hash = source.hash();
    std::lock_guard lock(mutex_);
    auto [at, end] = known_.equal_range(hash);
    for (; at != end; ++at) {
      if (!(at->second->source == source)) continue;
      if (auto shape = at->second->shape.lock()) return shape;
      known_.erase(at);
      break;
    }
    if (known_.size() >= sweep_at_) sweep();
    auto shape = std::make_shared<const PodShape>(read_shape(name_space, labels, spec));
    known_.emplace(hash, std::make_unique<Entry>(Entry{std::move(source), shape}));
    return shape;
  }

 private:
  static constexpr std::size_t kFirstSweep = 256;
  struct Entry {
    ShapeSource source;
    std::weak_ptr<const PodShape> shape;
  };

  void sweep() {
    std::erase_if(known_, [](const auto& entry) { return entry.second->shape.expired(); });
    sweep_at_ = std::max(kFirstSweep, 2 * known_.size());
  }

  std::mutex mutex_;
  std::unordered_multimap<std::uint64_t, std::unique_ptr<Entry>> known_;  // guarded by mutex_
  std::size_t sweep_at_ = kFirstSweep;                                    // guarded by mutex_
};

Shapes& shapes() {
  static Shapes all;
  return all;
}

}  // namespace

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

std::shared_ptr<const Pod> Pod::read(const json::Value& object) {
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
  pod->terminating = metadata["deletionTimestamp"].is_string();
  const std::string_view phase = pod->object["status"]["phase"].as_string();
  pod->finished = phase == "Succeeded" || phase == "Failed";
  pod->shape = shapes().get(pod->name_space, pod->labels, spec);
  return pod;
}

std::string_view Pod::nominated_node() const {
  return object["status"]["nominatedNodeName"].as_string();
}

std::string Pod::signature() const {
  // Others may select it, which counts for it alone where it has terms of its own, and for all
  // through their anti-affinity.
  std::string out = shape->signature;
  json::write_to(out, labels);
  return out;
}

bool Pod::same_signature(const Pod& other) const {
  return (shape == other.shape || shape->signature == other.shape->signature) &&
         labels == other.labels;
}

}  // namespace dibs::scheduler
