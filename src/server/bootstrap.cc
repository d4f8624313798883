#include "server/bootstrap.h"

#include <algorithm>
#include <charconv>

#include "api/volumes/volumes.h"
#include "base/finalizers.h"
#include "base/ipv4.h"
#include "base/log.h"
#include "base/strings.h"
#include "server/auth/bootstrap_roles.h"
#include "server/extensions.h"
#include "server/status.h"
#include "server/stored.h"
#include "server/token_tracking.h"
#include "server/trust.h"
#include "server/writing.h"

namespace dibs::server {
namespace {

/// What a restart changes of an object that is there already; null when nothing.
using Update = Value (*)(const Value& existing, const Value& wanted, Time now);

Value updated_where_marked(const Value& existing, const Value& wanted, Time) {
  return auth::brought_up_to_date(existing, wanted);
}

struct Named {
  std::string_view group;
  std::string_view kind;
  Value object;
  Update update = updated_where_marked;
};

Value namespace_object(std::string_view name) {
  return Value::object(
      {{"metadata",
        Value::object(
            {{"name", name}, {"labels", Value::object({{"kubernetes.io/metadata.name", name}})}})},
       {"spec", Value::object({{"finalizers", Value::array({kNamespaceFinalizer})}})},
       {"status", Value::object({{"phase", "Active"}})}});
}

Value priority_class(std::string_view name, std::int64_t value, std::string_view description) {
  return Value::object({{"metadata", Value::object({{"name", name}, {"generation", 1}})},
                        {"value", value},
                        {"description", description}});
}

std::pair<std::string, int> host_and_port(std::string_view advertise) {
  auto colon = advertise.rfind(':');
  int port = 6443;
  std::from_chars(advertise.data() + colon + 1, advertise.data() + advertise.size(), port);
  std::string host(advertise.substr(0, colon));
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  return {host, port};
}

Value kubernetes_service(const Options& options) {
  std::string address = api_service_address(options.service_range);
  auto [host, port] = host_and_port(options.advertise);
  return Value::object(
      {{"metadata", Value::object({{"name", "kubernetes"},
                                   {"namespace", "default"},
                                   {"labels", Value::object({{"component", "apiserver"},
                                                             {"provider", "kubernetes"}})}})},
       {"spec",
        Value::object(
            {{"ports",
              Value::array({Value::object(
                  {{"name", "https"}, {"protocol", "TCP"}, {"port", 443}, {"targetPort", port}})})},
             {"clusterIP", address},
             {"clusterIPs", Value::array({address})},
             {"type", "ClusterIP"},
             {"sessionAffinity", "None"},
             {"ipFamilies", Value::array({"IPv4"})},
             {"ipFamilyPolicy", "SingleStack"}})},
       {"status", Value::object({{"loadBalancer", Value::object()}})}});
}

/// No selector: every machine answers at this address itself, without pods.
Value dns_service(const std::string& address) {
  const auto port = [](std::string_view name, std::string_view protocol) {
    return Value::object(
        {{"name", name}, {"protocol", protocol}, {"port", 53}, {"targetPort", 53}});
  };
  return Value::object(
      {{"metadata",
        Value::object({{"name", "kube-dns"},
                       {"namespace", "kube-system"},
                       {"labels", Value::object({{"k8s-app", "kube-dns"},
                                                 {"kubernetes.io/cluster-service", "true"}})}})},
       {"spec",
        Value::object({{"ports", Value::array({port("dns", "UDP"), port("dns-tcp", "TCP")})},
                       {"clusterIP", address},
                       {"clusterIPs", Value::array({address})},
                       {"type", "ClusterIP"},
                       {"sessionAffinity", "None"},
                       {"ipFamilies", Value::array({"IPv4"})},
                       {"ipFamilyPolicy", "SingleStack"}})},
       {"status", Value::object({{"loadBalancer", Value::object()}})}});
}

/// Accounts and roles of what runs in this process beside the server.
void add_own_parts(const Options& options, std::vector<Named>& out) {
  const auto add_account = [&](const std::string& name) {
    out.push_back({"", "ServiceAccount",
                   Value::object({{"metadata", Value::object({{"name", name},
                                                              {"namespace", "kube-system"}})}})});
  };
  const auto add_roles = [&](const std::vector<Value>& roles) {
    for (const Value& object : roles) out.push_back({"rbac.authorization.k8s.io", {}, object});
  };
  for (const std::string& account : options.accounts) add_account(account);
  for (const DriverAccount& driver : options.drivers) {
    add_account(driver.account);
    if (!driver.driver.empty()) add_roles(auth::driver_roles(driver.account, driver.driver));
    if (!driver.rules.empty()) add_roles(auth::account_roles(driver.account, driver.rules));
  }
  if (!options.accounts.empty()) add_roles(auth::service_roles());
  if (options.fleet) add_roles(auth::fleet_roles(kFleetUser));
  if (options.metric_resolution > Duration(0)) add_roles(auth::metrics_roles());
}

/// The class of the provisioner that comes with the program, as the default.
Value local_path_class() {
  return Value::object(
      {{"metadata", Value::object({{"name", "standard"},
                                   {"annotations",
                                    Value::object({{"storageclass.kubernetes.io/is-default-class",
                                                    "true"}})}})},
       {"provisioner", api::kLocalPathProvisioner},
       {"reclaimPolicy", "Delete"},
       {"volumeBindingMode", "WaitForFirstConsumer"}});
}

/// The APIServices of what this server serves itself; those of definitions are the aggregator's.
std::vector<Named> local_api_services(const ResourceSet& set, std::string_view now) {
  std::vector<Named> out;
  for (const api::GroupInfo& group : set.catalog.groups) {
    if (group.custom || group.name == kAggregationGroup) continue;
    for (const api::VersionInfo& version : group.versions) {
      Value object = local_api_service(group.name, version.version, false);
      object.mut("status").set(
          "conditions",
          Value::array({Value::object({{"type", "Available"},
                                       {"status", "True"},
                                       {"lastTransitionTime", now},
                                       {"reason", "Local"},
                                       {"message", "Local APIServices are always available"}})}));
      out.push_back({"apiregistration.k8s.io", "APIService", std::move(object)});
    }
  }
  return out;
}

/// `first`: the cluster has no objects yet. `groups`: what the server has of them.
std::vector<Named> wanted_objects(const Options& options, bool first, auth::GroupKinds groups,
                                  Time now) {
  std::vector<Named> out;
  // Before the namespaces, so in one transaction with them: who deletes it later does not get it
  // again by a restart.
  if (first && options.local_path_class)
    out.push_back({"storage.k8s.io", "StorageClass", local_path_class()});
  for (std::string_view name : {"default", "kube-system", "kube-public", "kube-node-lease"}) {
    out.push_back({"", "Namespace", namespace_object(name)});
  }
  out.push_back({"scheduling.k8s.io", "PriorityClass",
                 priority_class("system-cluster-critical", 2000000000,
                                "For pods the cluster cannot do without, wherever they run.")});
  out.push_back({"scheduling.k8s.io", "PriorityClass",
                 priority_class("system-node-critical", 2000001000,
                                "For pods a node cannot do without; they stay on it.")});
  out.push_back({"", "Service", kubernetes_service(options)});
  if (!options.cluster_dns.empty()) {
    out.push_back({"", "Service", dns_service(options.cluster_dns)});
  }
  if (!options.ca_pem.empty()) {
    out.push_back({"", "ConfigMap", trust_object(options), trust_brought_up_to_date});
  }
  out.push_back({"", "ConfigMap", token_tracking_object(now), token_tracking_mended});
  auth::DeviceModels models = options.release.empty() ? auth::DeviceModels::both
                              : options.minor() <= 30 ? auth::DeviceModels::classic
                                                      : auth::DeviceModels::structured;
  for (const Value& object : auth::bootstrap_roles(models, groups)) {
    out.push_back({"rbac.authorization.k8s.io", {}, object});
  }
  add_own_parts(options, out);
  return out;
}

/// Whether another Service has the address, of a cluster that was there before this one took it.
Result<bool> is_taken(const store::Store& store, const Resource& services, const Value& service) {
  const std::string_view address = service["spec"]["clusterIP"].as_string();
  store::RangeQuery query;
  query.prefix = services.namespace_prefix("");
  DIBS_TRY(const store::Listing all, store.range(query));
  for (const auto& record : all.records) {
    DIBS_TRY(const Value one, decode_stored(*record));
    if (one["spec"]["clusterIP"].as_string() != address) continue;
    log::warn("service not made, its address is another's",
              {{"service", service["metadata"]["name"].str()},
               {"address", address},
               {"other", cat(one["metadata"]["namespace"].as_string(), "/",
                             one["metadata"]["name"].as_string())}});
    return true;
  }
  return false;
}

/// What is missing or has to be brought up to date.
Result<std::vector<store::Op>> missing(runtime::Runtime& runtime, const store::Store& store,
                                       const ResourceSet& set, const Options& options) {
  std::string now = format_rfc3339(runtime.clock.now());
  std::vector<store::Op> ops;
  const ResourcePtr namespaces = set.find_kind("", "Namespace");
  const bool first = namespaces && !store.get(namespaces->key("", "default"));
  const auto serves = [&](const char* kind) {
    return set.find_kind("scheduling.k8s.io", kind) != nullptr;
  };
  const auth::GroupKinds groups = serves("CompositePodGroup") ? auth::GroupKinds::groups
                                  : serves("PodGroup")        ? auth::GroupKinds::pods
                                                              : auth::GroupKinds::none;
  std::vector<Named> all = wanted_objects(options, first, groups, runtime.clock.now());
  if (set.find_kind("resource.k8s.io", "ResourcePoolStatusRequest")) {
    for (const Value& object : auth::pool_status_roles()) {
      all.push_back({"rbac.authorization.k8s.io", {}, object});
    }
  }
  for (Named& local : local_api_services(set, now)) all.push_back(std::move(local));
  for (Named& wanted : all) {
    std::string kind(wanted.kind.empty() ? wanted.object["kind"].as_string() : wanted.kind);
    ResourcePtr resource = set.find_kind(wanted.group, kind);
    if (!resource) continue;
    Value& object = wanted.object;
    std::string key = resource->key(object["metadata"]["namespace"].as_string(),
                                    object["metadata"]["name"].as_string());
    if (const auto record = store.get(key)) {
      DIBS_TRY(const Value existing, decode_stored(*record));
      const Value next = wanted.update(existing, object, runtime.clock.now());
      if (!next.is_null()) ops.push_back({key, share(encode_stored(next)), record->modified});
      continue;
    }
    if (object["spec"]["clusterIP"].is_string()) {
      DIBS_TRY(const bool taken, is_taken(store, *resource, object));
      if (taken) continue;
    }
    object.set("kind", kind);
    object.set("apiVersion", resource->api_version());
    object.mut("metadata").set("uid", runtime::make_uuid(runtime.random));
    object.mut("metadata").set("creationTimestamp", now);
    DIBS_TRY(object, with_defaults(*resource, std::move(object)));
    ops.push_back({key, share(encode_stored(object)), 0});
  }
  return ops;
}

/// Servers that start together on an empty store: each conflict is another one's success.
constexpr int kRaces = 100;

Result<> commit(store::Store& store, std::vector<store::Op> ops) {
  const std::size_t group = store.shared() ? store::kGroupExpecting : ops.size();
  for (std::size_t from = 0; from < ops.size(); from += group) {
    const std::size_t to = std::min(from + group, ops.size());
    DIBS_CHECK(store.commit({ops.begin() + static_cast<std::ptrdiff_t>(from),
                             ops.begin() + static_cast<std::ptrdiff_t>(to)}));
  }
  return success();
}

}  // namespace

std::string api_service_address(std::string_view range) {
  return ipv4_text(parse_ipv4(range.substr(0, range.find('/'))).value_or(0) + kApiServiceIndex);
}

Result<> write_trust(runtime::Runtime& runtime, Objects& objects, ResourceTable& resources,
                     const Options& options) {
  const Value wanted = trust_object(options);
  const ResourcePtr resource = resources.get()->find_kind("", "ConfigMap");
  if (!resource) return success();
  const std::string key = resource->key(wanted["metadata"]["namespace"].as_string(),
                                        wanted["metadata"]["name"].as_string());
  for (int race = 1;; ++race) {
    const auto record = objects.store().get(key);
    // Who deletes it gets it again at the next start.
    if (!record) return success();
    DIBS_TRY(const Value existing, decode_stored(*record));
    const Value next = trust_brought_up_to_date(existing, wanted, runtime.clock.now());
    if (next.is_null()) return success();
    auto written = objects.store().commit({{key, share(encode_stored(next)), record->modified}});
    if (written.ok()) return success();
    if (written.error().code() != Code::conflict || race == kRaces) return written.error();
  }
}

Result<> write_bootstrap_objects(runtime::Runtime& runtime, Objects& objects,
                                 ResourceTable& resources, const Options& options) {
  for (int race = 1;; ++race) {
    DIBS_TRY(auto ops, missing(runtime, objects.store(), *resources.get(), options));
    auto written = commit(objects.store(), std::move(ops));
    if (written.ok()) return success();
    if (written.error().code() != Code::conflict || race == kRaces)
      return written.error().within("cannot write the first objects of the cluster");
  }
}

}  // namespace dibs::server
