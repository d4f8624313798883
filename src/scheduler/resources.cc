#include "scheduler/resources.h"

#include <algorithm>

#include "base/quantity.h"

namespace dibs::scheduler {
namespace {

constexpr std::int64_t kDefaultCpu = 100;
constexpr std::int64_t kDefaultMemory = 200 * 1024 * 1024;
/// No node has so much of anything. Whoever asks for more asks for this, and sums over the
/// containers of a pod and the pods of a node stay numbers: past the largest they would turn
/// negative, and a full node would be an empty one.
constexpr std::int64_t kMost = std::int64_t{1} << 47;

std::int64_t bounded(std::int64_t amount) { return std::clamp(amount, -kMost, kMost); }

std::int64_t read_amount(const json::Value& value, bool milli) {
  const std::string text = value.is_string() ? value.str() : std::to_string(value.as_int());
  auto quantity = Quantity::parse(text);
  if (!quantity.ok()) return 0;
  return bounded(milli ? quantity->milli_value() : quantity->value());
}

bool restarts(const json::Value& container) {
  return container["restartPolicy"].as_string() == "Always";
}

template <typename Requests, typename Read, typename Add, typename Raise>
Requests worst_moment(const json::Value& spec, Read read, Add add, Raise raise) {
  Requests sum;
  for (const json::Value& container : spec["containers"].items()) add(sum, read(container));
  Requests sidecars;
  Requests init;
  for (const json::Value& container : spec["initContainers"].items()) {
    const Requests wanted = read(container);
    if (restarts(container)) {
      add(sidecars, wanted);
      raise(init, sidecars);
    } else {
      Requests moment = sidecars;
      add(moment, wanted);
      raise(init, moment);
    }
  }
  add(sum, sidecars);
  raise(sum, init);
  return sum;
}

}  // namespace

Resources Resources::read(const json::Value& list) {
  Resources made;
  for (const auto& [name, value] : list.members()) {
    if (name == "cpu") {
      made.cpu = read_amount(value, true);
    } else if (name == "memory") {
      made.memory = read_amount(value, false);
    } else if (name == "ephemeral-storage") {
      made.storage = read_amount(value, false);
    } else if (name == "pods") {
      made.pods = read_amount(value, false);
    } else {
      made.scalar_slot(name) = read_amount(value, false);
    }
  }
  return made;
}

std::int64_t Resources::amount(std::string_view name) const {
  if (name == "cpu") return cpu;
  if (name == "memory") return memory;
  if (name == "ephemeral-storage") return storage;
  if (name == "pods") return pods;
  return scalar(name);
}

std::int64_t Resources::scalar(std::string_view name) const {
  for (const auto& [known, value] : scalars) {
    if (known == name) return value;
  }
  return 0;
}

std::int64_t& Resources::scalar_slot(std::string_view name) {
  auto at = std::lower_bound(scalars.begin(), scalars.end(), name,
                             [](const auto& entry, std::string_view n) { return entry.first < n; });
  if (at == scalars.end() || at->first != name) at = scalars.insert(at, {std::string(name), 0});
  return at->second;
}

void Resources::add(const Resources& other) {
  cpu += other.cpu;
  memory += other.memory;
  storage += other.storage;
  pods += other.pods;
  for (const auto& [name, value] : other.scalars) scalar_slot(name) += value;
}

void Resources::bound() {
  for (std::int64_t* one : {&cpu, &memory, &storage, &pods}) *one = bounded(*one);
  for (auto& [name, value] : scalars) value = bounded(value);
}

void Resources::subtract(const Resources& other) {
  cpu -= other.cpu;
  memory -= other.memory;
  storage -= other.storage;
  pods -= other.pods;
  for (const auto& [name, value] : other.scalars) scalar_slot(name) -= value;
}

void Resources::raise(const Resources& other) {
  cpu = std::max(cpu, other.cpu);
  memory = std::max(memory, other.memory);
  storage = std::max(storage, other.storage);
  pods = std::max(pods, other.pods);
  for (const auto& [name, value] : other.scalars) {
    std::int64_t& slot = scalar_slot(name);
    slot = std::max(slot, value);
  }
}

Resources pod_requests(const json::Value& spec) {
  Resources made = worst_moment<Resources>(
      spec, [](const json::Value& c) { return Resources::read(c["resources"]["requests"]); },
      [](Resources& a, const Resources& b) {
        a.add(b);
        a.bound();
      },
      [](Resources& a, const Resources& b) { a.raise(b); });
  const json::Value& whole = spec["resources"]["requests"];
  if (whole.is_object()) {
    const Resources stated = Resources::read(whole);
    if (whole.contains("cpu")) made.cpu = stated.cpu;
    if (whole.contains("memory")) made.memory = stated.memory;
    for (const auto& [name, value] : stated.scalars) made.scalar_slot(name) = value;
  }
  made.add(Resources::read(spec["overhead"]));
  made.bound();
  made.pods = 1;
  return made;
}

ScoreRequests score_requests(const json::Value& spec) {
  ScoreRequests made = worst_moment<ScoreRequests>(
      spec,
      [](const json::Value& c) {
        const json::Value& requests = c["resources"]["requests"];
        ScoreRequests one;
        one.cpu = requests.contains("cpu") ? read_amount(requests["cpu"], true) : kDefaultCpu;
        one.memory =
            requests.contains("memory") ? read_amount(requests["memory"], false) : kDefaultMemory;
        return one;
      },
      [](ScoreRequests& a, const ScoreRequests& b) {
        a.cpu = bounded(a.cpu + b.cpu);
        a.memory = bounded(a.memory + b.memory);
      },
      [](ScoreRequests& a, const ScoreRequests& b) {
        a.cpu = std::max(a.cpu, b.cpu);
        a.memory = std::max(a.memory, b.memory);
      });
  const json::Value& whole = spec["resources"]["requests"];
  if (whole.contains("cpu")) made.cpu = read_amount(whole["cpu"], true);
  if (whole.contains("memory")) made.memory = read_amount(whole["memory"], false);
  const Resources overhead = Resources::read(spec["overhead"]);
  made.cpu = bounded(made.cpu + overhead.cpu);
  made.memory = bounded(made.memory + overhead.memory);
  return made;
}

bool is_extended_resource(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return false;
  if (name.starts_with("requests.")) return false;
  const std::string_view domain = name.substr(0, slash);
  if (domain == "deviceclass.resource.kubernetes.io") return true;
  return domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io");
}

}  // namespace dibs::scheduler
