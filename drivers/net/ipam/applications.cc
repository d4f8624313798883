#include "drivers/net/ipam/applications.h"

#include <cctype>
#include <charconv>
#include <limits>

#include "base/names.h"
#include "base/strings.h"
#include "drivers/net/model/fields.h"

namespace dibs::drivers::net {
namespace {

constexpr std::size_t kUidPart = 5;

void split_version(std::string_view api_version, Application& application) {
  const std::size_t slash = api_version.find('/');
  if (slash != std::string_view::npos) application.api_group = api_version.substr(0, slash);
  application.api_version =
      slash == std::string_view::npos ? api_version : api_version.substr(slash + 1);
}

/// Names may be cut here: the labels are for finding, podAffinity has the whole names.
json::Value auto_pool_labels(const IpSubnet& subnet, const Application& application,
                             std::string_view interface, bool reclaim) {
  const std::string gv = application.api_group.empty()
                             ? application.api_version
                             : cat(application.api_group, '_', application.api_version);
  return json::Value::object({{kLabelOwnerSubnet, label_value(subnet.name)},
                              {kLabelApplicationGv, label_value(gv)},
                              {kLabelApplicationKind, label_value(application.kind)},
                              {kLabelApplicationNamespace, label_value(application.name_space)},
                              {kLabelApplicationName, label_value(application.name)},
                              {kLabelApplicationUid, label_value(application.uid)},
                              {kLabelInterface, label_value(interface)},
                              {kLabelReclaim, reclaim ? "true" : "false"},
                              {kLabelVersion, cat("IPv", subnet.version)},
                              {kLabelPoolCidr, cidr_label(subnet.subnet)}});
}

Error insufficient(std::int64_t wanted, std::int64_t left) {
  return Error::invalid(
      cat("insufficient subnet FreeIPs, required '", wanted, "' but only left '", left, "'"));
}

/// 0 and absent are one: at least one pod runs.
std::int64_t job_pods(const json::Value& spec) {
  const json::Value& completions = spec["completions"];
  const std::int64_t pods =
      completions.is_integer() ? completions.as_int() : spec["parallelism"].as_int(1);
  return pods == 0 ? 1 : pods;
}

}  // namespace

Application controller_of(const json::Value& object) {
  Application application;
  for (const json::Value& owner : object["metadata"]["ownerReferences"].items()) {
    if (!owner["controller"].as_bool()) continue;
    split_version(owner["apiVersion"].as_string(), application);
    application.kind = owner["kind"].str();
    application.name_space = object["metadata"]["namespace"].str();
    application.name = owner["name"].str();
    application.uid = owner["uid"].str();
    break;
  }
  return application;
}

Application application_of(const json::Value& pod, const json::Value& controller) {
  Application direct = controller_of(pod);
  const bool between = (direct.api_group == "apps" && direct.kind == "ReplicaSet") ||
                       (direct.api_group == "batch" && direct.kind == "Job");
  if (!between || controller["metadata"]["uid"].as_string() != direct.uid) return direct;
  Application top = controller_of(controller);
  return top.orphan() ? direct : top;
}

std::string auto_pool_name(const Application& application, std::string_view interface,
                           int version) {
  std::string_view uid = application.uid;
  if (const std::size_t dash = uid.rfind('-'); dash != std::string_view::npos) {
    uid = uid.substr(dash + 1);
  }
  uid = uid.substr(0, kUidPart);
  const std::string prefix = cat("auto", version, '-');
  const std::string suffix = cat('-', interface, '-', uid);
  const std::size_t fixed = prefix.size() + suffix.size();
  std::string_view name = application.name;
  if (fixed + name.size() > kDns1123SubdomainMaxLength) {
    name = name.substr(0, kDns1123SubdomainMaxLength - fixed);
  }
  std::string made = to_lower(cat(prefix, name, suffix));
  for (char& c : made) {  // interfaces may have names that objects may not
    if (c != '.' && std::isalnum(static_cast<unsigned char>(c)) == 0) c = '-';
  }
  return made;
}

json::Value application_labels(const Application& application) {
  return json::Value::object({{kApplicationLabels[0], application.api_group},
                              {kApplicationLabels[1], application.api_version},
                              {kApplicationLabels[2], application.kind},
                              {kApplicationLabels[3], application.name_space},
                              {kApplicationLabels[4], application.name}});
}

bool is_auto_pool(const IpPool& pool) { return pool.automatic; }

bool is_pool_of(const IpPool& pool, const Application& application) {
  return pool.automatic && !application.orphan() &&
         pool.application_labels == application_labels(application);
}

std::int64_t wanted_addresses(const PoolSize& size, std::int64_t replicas) {
  if (!size.flexible) return size.number;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return replicas > kMost - size.number ? kMost : replicas + size.number;
}

std::int64_t replicas_of(const json::Value& controller) {
  const std::string_view kind = controller["kind"].as_string();
  const json::Value& spec = controller["spec"];
  if (kind == "DaemonSet") return controller["status"]["desiredNumberScheduled"].as_int();
  if (kind == "Job") return job_pods(spec);
  if (kind == "CronJob") return job_pods(spec["jobTemplate"]["spec"]);
  return spec["replicas"].as_int(1);
}

Result<json::Value> make_auto_pool(const IpSubnet& subnet, const json::Value& subnet_object,
                                   const Application& application, std::string_view interface,
                                   std::int64_t wanted, bool reclaim, const IpSet& held) {
  const IpSet free = subnet.total.minus(held);
  if (free.count() < wanted) return insufficient(wanted, free.count());
  json::Value spec = json::Value::object(
      {{"ipVersion", subnet.version},
       {"subnet", subnet.subnet.str()},
       {"ips", texts_value(free.lowest_of(wanted).to_strings())},
       {"podAffinity", json::Value::object({{"matchLabels", application_labels(application)}})}});
  for (const char* inherited : {"gateway", "routes"}) {
    const json::Value& value = subnet_object["spec"][inherited];
    if (!value.is_null()) spec.set(inherited, value);
  }
  json::Value metadata = json::Value::object(
      {{"name", auto_pool_name(application, interface, subnet.version)},
       {"labels", auto_pool_labels(subnet, application, interface, reclaim)},
       {"ownerReferences",
        json::Value::array({json::Value::object({{"apiVersion", subnet_object["apiVersion"]},
                                                 {"kind", subnet_object["kind"]},
                                                 {"name", subnet.name},
                                                 {"uid", subnet.uid},
                                                 {"controller", true},
                                                 {"blockOwnerDeletion", true}})})},
       {"finalizers", json::Value::array({kFinalizer})}});
  return json::Value::object({{"apiVersion", cat(kGroup, "/v2beta1")},
                              {"kind", "SpiderIPPool"},
                              {"metadata", std::move(metadata)},
                              {"spec", std::move(spec)}});
}

Result<IpSet> resize_auto_pool(const IpPool& pool, const PoolStatus& status, const IpSubnet& subnet,
                               std::int64_t wanted, const IpSet& held) {
  IpSet ips = pool.ips;
  if (!(status.admitted == pool.total)) {
    // Another pool was faster with some of them: what nobody has here goes.
    ips.remove(held.minus(status.used()));
  }
  const std::int64_t missing = wanted - ips.count();
  if (missing > 0) {
    IpSet free = subnet.total.minus(held);
    free.remove(ips);
    if (free.count() < missing) return insufficient(missing, free.count());
    ips.add(free.lowest_of(missing));
    return ips;
  }
  // What is in use stays, however many that are.
  IpSet kept = ips.intersection(status.used());
  kept.add(ips.minus(kept).lowest_of(wanted - kept.count()));
  return kept;
}

bool is_reclaimable(const json::Value& pool, const PoolStatus& status, bool application_exists) {
  const json::Value& labels = pool["metadata"]["labels"];
  return !application_exists && labels.contains(kLabelApplicationName) &&
         labels[kLabelReclaim].as_string() == "true" && status.allocated.empty() &&
         status.settled.empty();
}

std::optional<std::int64_t> ordinal_of(std::string_view pod, std::string_view stateful_set) {
  if (stateful_set.empty() || pod.size() < stateful_set.size() + 2) return {};
  if (!pod.starts_with(stateful_set) || pod[stateful_set.size()] != '-') return {};
  const std::string_view digits = pod.substr(stateful_set.size() + 1);
  if (digits.front() < '0' || digits.front() > '9' || (digits.size() > 1 && digits[0] == '0')) {
    return {};
  }
  std::int64_t ordinal = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, ordinal);
  if (error != std::errc{} || stop != end) return {};
  return ordinal;
}

bool keeps_addresses(std::string_view pod, const json::Value& stateful_set) {
  if (!stateful_set.is_object() || is_terminating(stateful_set)) return false;
  const auto ordinal = ordinal_of(pod, stateful_set["metadata"]["name"].as_string());
  if (!ordinal) return false;
  const json::Value& spec = stateful_set["spec"];
  const std::int64_t start = spec["ordinals"]["start"].as_int();
  return *ordinal >= start && *ordinal - start < spec["replicas"].as_int(1);
}

}  // namespace dibs::drivers::net
