#include "scheduler/pod_shapes.h"

#include <algorithm>
#include <array>

namespace dibs::scheduler {

/// What a shape is read from. Containers are whole here, but only compared by what counts.
struct PodShapes::Source {
  static constexpr std::array<std::string_view, 11> kFields = {
      "schedulerName",  "priority",    "nodeSelector", "affinity",
      "tolerations",    "overhead",    "resources",    "topologySpreadConstraints",
      "resourceClaims", "hostNetwork", "hostUsers"};
  static constexpr std::array<std::string_view, 4> kContainerFields = {
      "resources", "ports", "restartPolicy", "restartPolicyRules"};

  std::string name_space;
  json::Value labels;  // null unless the shape depends on them
  std::array<json::Value, kFields.size()> fields;
  json::Value containers;
  json::Value init_containers;

  Source(std::string_view in, const json::Value& pod_labels, const json::Value& spec)
      : name_space(in), containers(spec["containers"]), init_containers(spec["initContainers"]) {
    for (std::size_t i = 0; i < kFields.size(); ++i) fields[i] = spec[kFields[i]];
    for (const json::Value& one : spec["topologySpreadConstraints"].items()) {
      if (!one["matchLabelKeys"].empty()) labels = pod_labels;
    }
  }

  std::uint64_t hash() const;
  bool same(const Source& other) const;
};

namespace {

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

}  // namespace

std::uint64_t PodShapes::Source::hash() const {
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

bool PodShapes::Source::same(const Source& other) const {
  const auto same_containers = [](const json::Value& a, const json::Value& b) {
    if (a.same_node(b)) return true;
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (const auto field : kContainerFields) {
        if (!(a[i][field] == b[i][field])) return false;
      }
    }
    return true;
  };
  return name_space == other.name_space && labels == other.labels && fields == other.fields &&
         same_containers(containers, other.containers) &&
         same_containers(init_containers, other.init_containers);
}

struct PodShapes::Entry {
  Source source;
  std::weak_ptr<const PodShape> shape;
};

PodShapes::PodShapes() = default;
PodShapes::~PodShapes() = default;

std::shared_ptr<const PodShape> PodShapes::get(std::string_view name_space,
                                               const json::Value& labels, const json::Value& spec) {
  Source source(name_space, labels, spec);
  const std::uint64_t hash = source.hash();
  const MutexLock lock(mutex_);
  auto [at, end] = known_.equal_range(hash);
  for (; at != end; ++at) {
    if (!at->second->source.same(source)) continue;
    if (auto shape = at->second->shape.lock()) return shape;
    known_.erase(at);
    break;
  }
  if (known_.size() >= sweep_at_) sweep();
  auto shape = std::make_shared<const PodShape>(PodShape::read(name_space, labels, spec));
  known_.emplace(hash, std::make_unique<Entry>(Entry{std::move(source), shape}));
  return shape;
}

void PodShapes::sweep() {
  std::erase_if(known_, [](const auto& entry) { return entry.second->shape.expired(); });
  sweep_at_ = std::max(kFirstSweep, 2 * known_.size());
}

}  // namespace dibs::scheduler
