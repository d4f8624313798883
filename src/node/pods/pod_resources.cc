#include "node/pods/pod_resources.h"

#include <algorithm>
#include <set>

#include "base/quantity.h"

namespace dibs::node {
namespace {

using json::Value;

/// No machine has so much; of processors, in thousandths, far fewer. Sums over containers and pods
/// stay numbers, and so do microseconds of a processor.
constexpr std::int64_t kMost = std::int64_t{1} << 47;
constexpr std::int64_t kMostCpu = std::int64_t{1} << 40;

bool is_huge_pages(std::string_view resource) { return resource.starts_with("hugepages-"); }

/// What spec.resources may name.
bool is_pod_level(std::string_view resource) {
  return resource == "cpu" || resource == "memory" || is_huge_pages(resource);
}

bool is_sidecar(const Value& container) {
  return container["restartPolicy"].as_string() == "Always";
}

bool uses(const Value& claim, std::string_view container) {
  for (const Value& name : claim["containers"].items()) {
    if (name.as_string() == container) return true;
  }
  return false;
}

const Value& claims_of(const Value& pod) {
  return pod["status"]["nodeAllocatableResourceClaimStatuses"];
}

/// What one claim has of a resource.
struct ClaimAmounts {
  std::int64_t mapped = 0;
  std::int64_t per_pod = 0;
  std::int64_t per_container = 0;
};

ClaimAmounts amounts_of(const Value& claim, std::string_view resource) {
  ClaimAmounts out;
  for (const Value& mapping : claim["mapping"].items()) {
    if (mapping["name"].as_string() == resource) {
      out.mapped = sum_of(out.mapped, amount_of(mapping["quantity"], resource));
    }
  }
  for (const Value& overhead : claim["overhead"].items()) {
    if (overhead["name"].as_string() != resource) continue;
    out.per_pod = sum_of(out.per_pod, amount_of(overhead["perPod"], resource));
    out.per_container = sum_of(out.per_container, amount_of(overhead["perContainer"], resource));
  }
  return out;
}

/// Bytes are shown by powers of two, as people write them.
Value text_of(std::int64_t amount, std::string_view resource) {
  if (resource == "cpu") return Value(Quantity(amount, -3).canonical());
  const bool bytes =
      resource == "memory" || resource == "ephemeral-storage" || is_huge_pages(resource);
  const auto format = bytes ? Quantity::Format::binary_si : Quantity::Format::decimal_si;
  return Value(Quantity(amount, 0, format).canonical());
}

Value shown(const Value& pod, const char* which) {
  std::set<std::string> names;
  const auto collect = [&](const Value& resources) {
    for (const auto& [name, quantity] : resources[which].members()) names.emplace(name);
  };
  for (const char* list : {"containers", "initContainers"}) {
    for (const Value& container : pod["spec"][list].items()) collect(container["resources"]);
  }
  collect(pod["spec"]["resources"]);
  for (const char* name : {"cpu", "memory"}) {
    if (claimed(pod, name) > 0) names.emplace(name);
  }
  Value out;
  for (const auto& name : names) {
    if (const auto total = total_of(pod, which, name)) out.set(name, text_of(*total, name));
  }
  return out;
}

bool has_any(const Value& resources) {
  for (const char* list : {"requests", "limits"}) {
    for (const char* name : {"cpu", "memory"}) {
      if (amount_of(resources[list][name], name) != 0) return true;
    }
  }
  return false;
}

bool is_bounded(const Value& resources) {
  for (const char* name : {"cpu", "memory"}) {
    const std::int64_t limit = amount_of(resources["limits"][name], name);
    if (limit == 0) return false;
    const Value& request = resources["requests"][name];
    if (request.is_string() && amount_of(request, name) != limit) return false;
  }
  return true;
}

}  // namespace

std::int64_t amount_of(const Value& quantity, std::string_view resource) {
  if (!quantity.is_string()) return 0;
  const auto parsed = Quantity::parse(quantity.as_string());
  if (!parsed) return 0;
  const bool cpu = resource == "cpu";
  const std::int64_t most = cpu ? kMostCpu : kMost;
  return std::clamp(cpu ? parsed->milli_value() : parsed->value(), -most, most);
}

std::int64_t sum_of(std::int64_t a, std::int64_t b) { return std::clamp(a + b, -kMost, kMost); }

std::int64_t claimed(const Value& pod, std::string_view resource) {
  std::int64_t sum = 0;
  for (const Value& claim : claims_of(pod).items()) {
    const ClaimAmounts amounts = amounts_of(claim, resource);
    const auto users = static_cast<std::int64_t>(claim["containers"].size());
    sum = sum_of(sum, sum_of(amounts.mapped, amounts.per_pod));
    for (std::int64_t i = 0; i < users; ++i) sum = sum_of(sum, amounts.per_container);
  }
  return sum;
}

std::int64_t claimed_by(const Value& pod, std::string_view container, std::string_view resource) {
  std::int64_t sum = 0;
  for (const Value& claim : claims_of(pod).items()) {
    if (!uses(claim, container)) continue;
    const ClaimAmounts amounts = amounts_of(claim, resource);
    sum = sum_of(sum, amounts.mapped + amounts.per_pod + amounts.per_container);
  }
  return sum;
}

std::int64_t memory_share(const Value& pod, const Value& container) {
  std::int64_t sum = amount_of(container["resources"]["requests"]["memory"], "memory");
  for (const Value& claim : claims_of(pod).items()) {
    if (!uses(claim, container["name"].as_string())) continue;
    const ClaimAmounts amounts = amounts_of(claim, "memory");
    const auto users = static_cast<std::int64_t>(claim["containers"].size());
    sum = sum_of(sum, amounts.mapped / users + amounts.per_pod / users + amounts.per_container);
  }
  return sum;
}

std::optional<std::int64_t> containers_total(const Value& pod, const char* which,
                                             std::string_view resource) {
  bool named = false;
  const auto own = [&](const Value& container) {
    const Value& wanted = container["resources"][which][resource];
    named = named || wanted.is_string();
    return amount_of(wanted, resource);
  };
  std::int64_t sum = 0;
  for (const Value& container : pod["spec"]["containers"].items()) {
    sum = sum_of(sum, own(container));
  }
  // An init container runs beside the sidecars that started before it.
  std::int64_t sidecars = 0;
  std::int64_t peak = 0;
  for (const Value& container : pod["spec"]["initContainers"].items()) {
    const std::int64_t one = own(container);
    if (is_sidecar(container)) {
      sidecars = sum_of(sidecars, one);
      peak = std::max(peak, sidecars);
    } else {
      peak = std::max(peak, sidecars + one);
    }
  }
  std::int64_t out = std::max(sum + sidecars, peak);
  // Claims add to what is limited; what is not stays so, but for huge pages, which none has then.
  if (const std::int64_t more = claimed(pod, resource); more > 0) {
    const bool limits = std::string_view(which) == "limits";
    if (!limits || named || is_huge_pages(resource)) {
      named = true;
      out = sum_of(out, more);
    }
  }
  if (!named) return std::nullopt;
  return out;
}

std::optional<std::int64_t> total_of(const Value& pod, const char* which,
                                     std::string_view resource) {
  std::optional<std::int64_t> out = containers_total(pod, which, resource);
  if (const Value& whole = pod["spec"]["resources"][which];
      is_pod_level(resource) && whole.contains(resource)) {
    out = amount_of(whole[resource], resource);
  }
  if (!out) return std::nullopt;
  const bool limits = std::string_view(which) == "limits";
  if (limits && *out == 0) return out;
  return *out + amount_of(pod["spec"]["overhead"][resource], resource);
}

std::int64_t requested(const Value& pod, std::string_view resource) {
  const auto total = total_of(pod, "requests", resource);
  return total ? *total : amount_of(pod["spec"]["overhead"][resource], resource);
}

Value shown_requests(const Value& pod) { return shown(pod, "requests"); }

Value shown_resources(const Value& pod) {
  Value out;
  for (const char* which : {"limits", "requests"}) {
    if (Value list = shown(pod, which); !list.empty()) out.set(which, std::move(list));
  }
  return out;
}

std::string_view qos_class(const Value& pod) {
  const auto told = pod["status"]["qosClass"].as_string();
  if (told == "Guaranteed") return "Guaranteed";
  if (told == "Burstable") return "Burstable";
  if (told == "BestEffort") return "BestEffort";
  bool any = false;
  bool all = true;
  // What the pod as a whole has decides alone.
  if (const Value& whole = pod["spec"]["resources"]; has_any(whole)) {
    return is_bounded(whole) ? "Guaranteed" : "Burstable";
  }
  for (const char* list : {"initContainers", "containers"}) {
    for (const auto& container : pod["spec"][list].items()) {
      any = any || has_any(container["resources"]);
      all = all && is_bounded(container["resources"]);
    }
  }
  if (!any) return "BestEffort";
  return all ? "Guaranteed" : "Burstable";
}

}  // namespace dibs::node
