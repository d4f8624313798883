#include "server/service_cidrs.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "base/time.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

constexpr std::string_view kGroup = "networking.k8s.io";
constexpr std::string_view kFamilyLabel = "ipaddress.kubernetes.io/ip-family";
constexpr std::string_view kManagerLabel = "ipaddress.kubernetes.io/managed-by";
constexpr std::string_view kParentResource = "services";
constexpr std::string_view kManager = "ipallocator.k8s.io";

constexpr Duration kEvery = std::chrono::minutes(1);
/// A kube-apiserver that shares the store writes the Service after its address.
constexpr Duration kMayBeAlone = std::chrono::seconds(60);

bool is_ready(const Value& cidr) {
  if (cidr["metadata"].contains("deletionTimestamp")) return false;
  for (const Value& condition : cidr["status"]["conditions"].items()) {
    if (condition["type"].as_string() == "Ready") return condition["status"].as_string() == "True";
  }
  return false;
}

}  // namespace

Value default_service_cidr(const std::string& range, Time now) {
  return Value::object(
      {{"metadata", Value::object({{"name", kDefaultServiceCidr}})},
       {"spec", Value::object({{"cidrs", Value::array({range})}})},
       {"status",
        Value::object(
            {{"conditions", Value::array({Value::object(
                                {{"type", "Ready"},
                                 {"status", "True"},
                                 {"lastTransitionTime", format_rfc3339(now)},
                                 {"reason", ""},
                                 {"message", "Kubernetes default Service CIDR is ready"}})})}})}});
}

std::vector<Ipv4Range> usable_ranges(const std::vector<Value>& cidrs) {
  std::vector<Ipv4Range> out;
  const auto add = [&](const Value& cidr) {
    if (!is_ready(cidr)) return;
    for (const Value& text : cidr["spec"]["cidrs"].items()) {
      const auto range = Ipv4Range::parse(text.as_string());
      if (range.ok() && std::find(out.begin(), out.end(), *range) == out.end())
        out.push_back(*range);
    }
  };
  const auto is_default = [](const Value& cidr) {
    return cidr["metadata"]["name"].as_string() == kDefaultServiceCidr;
  };
  for (const Value& cidr : cidrs) {
    if (is_default(cidr)) add(cidr);
  }
  for (const Value& cidr : cidrs) {
    if (!is_default(cidr)) add(cidr);
  }
  return out;
}

Value ip_address(const Resource& resource, std::string_view address, std::string_view name_space,
                 std::string_view service, const std::string& uid, Time now) {
  const std::string_view family = address.find(':') == std::string_view::npos ? "IPv4" : "IPv6";
  return Value::object(
      {{"kind", resource.kind},
       {"apiVersion", resource.api_version()},
       {"metadata", Value::object({{"name", address},
                                   {"uid", uid},
                                   {"creationTimestamp", format_rfc3339(now)},
                                   {"labels", Value::object({{kFamilyLabel, family},
                                                             {kManagerLabel, kManager}})}})},
       {"spec", Value::object({{"parentRef", Value::object({{"resource", kParentResource},
                                                            {"namespace", name_space},
                                                            {"name", service}})}})}});
}

std::string service_of_address(const Value& ip_address) {
  const Value& parent = ip_address["spec"]["parentRef"];
  if (!parent["group"].as_string().empty() || parent["resource"].as_string() != kParentResource)
    return {};
  return cat(parent["namespace"].as_string(), "/", parent["name"].as_string());
}

AddressRepair::AddressRepair(runtime::Runtime& runtime, store::Store& store,
                             ResourceTable& resources, const Options& options)
    : runtime_(runtime), store_(store), resources_(resources), options_(options) {
  sweep();
  schedule();
}

void AddressRepair::schedule() {
  MutexLock lock(mutex_);
  if (stopped_) return;
  timer_ = runtime_.timers.after(kEvery, [this] {
    sweep();
    schedule();
  });
}

void AddressRepair::stop() {
  runtime::TimerId timer = 0;
  {
    MutexLock lock(mutex_);
    if (std::exchange(stopped_, true)) return;
    timer = timer_;
  }
  runtime_.timers.cancel(timer);
}

void AddressRepair::catch_up(const Resource& services, const Resource& addresses) {
  if (!service_follower_) {
    service_follower_ = std::make_unique<StoreFollower>(store_, services.storage_prefix);
    address_follower_ = std::make_unique<StoreFollower>(store_, addresses.storage_prefix);
  }
  const auto take_service = [this](const std::string& key,
                                   const store::Record* now) DIBS_REQUIRES(mutex_) {
    services_.erase(key);
    if (now == nullptr) return;
    const auto service = decode_stored(*now);
    if (!service.ok()) return;
    std::vector<std::string> held;
    for (const Value& address : (*service)["spec"]["clusterIPs"].items()) {
      if (address.as_string() != "None") held.push_back(address.str());
    }
    if (!held.empty()) services_[key] = std::move(held);
  };
  const auto take_address = [this](const std::string& key,
                                   const store::Record* now) DIBS_REQUIRES(mutex_) {
    addresses_.erase(key);
    if (now == nullptr) return;
    const auto object = decode_stored(*now);
    if (!object.ok()) return;
    const Value& metadata = (*object)["metadata"];
    const auto made = parse_rfc3339(metadata["creationTimestamp"].as_string());
    addresses_[key] = {service_of_address(*object),
                       metadata["labels"][kManagerLabel].as_string() == kManager,
                       made.ok() ? *made : Time(), now->modified};
  };
  service_follower_->catch_up([this]() DIBS_REQUIRES(mutex_) { services_.clear(); }, take_service);
  address_follower_->catch_up([this]() DIBS_REQUIRES(mutex_) { addresses_.clear(); }, take_address);
}

std::vector<store::Op> AddressRepair::faults(const Resource& services, const Resource& addresses) {
  std::vector<store::Op> ops;
  const Time now = runtime_.clock.now();
  const auto has = [this](const std::string& service,
                          const std::string& address) DIBS_REQUIRES(mutex_) {
    const auto found = services_.find(service);
    return found != services_.end() &&
           std::find(found->second.begin(), found->second.end(), address) != found->second.end();
  };
  std::map<std::string, bool> written;
  for (const auto& [service, held] : services_) {
    for (const std::string& address : held) {
      const auto known = addresses_.find(address);
      if (known != addresses_.end() && has(known->second.service, address)) continue;
      const auto slash = service.find('/');
      const std::string place = service.substr(0, slash);
      const std::string name = service.substr(slash + 1);
      // One that went after it was read here keeps nothing.
      if (written[address] || !store_.get(services.key(place, name))) continue;
      written[address] = true;
      // At the first look it is a Service of the cluster's beginning, or of an older program.
      if (begun_) {
        log::warn("the address of a Service was nobody's; repaired",
                  {{"service", service}, {"address", address}});
      }
      ops.push_back({addresses.key("", address),
                     share(encode_stored(ip_address(addresses, address, place, name,
                                                    runtime::make_uuid(runtime_.random), now))),
                     known == addresses_.end() ? 0 : known->second.modified});
    }
  }
  for (const auto& [address, known] : addresses_) {
    if (!known.managed || written.contains(address) || has(known.service, address)) continue;
    if (!known.service.empty() && now - known.made <= kMayBeAlone) continue;
    log::warn("an address was of no Service; given back",
              {{"address", address}, {"service", known.service}});
    ops.push_back({addresses.key("", address), nullptr, known.modified});
  }
  return ops;
}

std::size_t AddressRepair::sweep() {
  const auto set = resources_.get();
  const ResourcePtr services = set->find_plural("", "services");
  const ResourcePtr addresses = set->find_plural(kGroup, "ipaddresses");
  const ResourcePtr cidrs = set->find_plural(kGroup, "servicecidrs");
  if (!services || !addresses || !cidrs) return 0;
  std::vector<store::Op> ops;
  {
    MutexLock lock(mutex_);
    catch_up(*services, *addresses);
    ops = faults(*services, *addresses);
    begun_ = true;
  }
  // The cluster's own range is for life: who removes its object gets a new one.
  if (const std::string key = cidrs->key("", kDefaultServiceCidr); !store_.get(key)) {
    const Time now = runtime_.clock.now();
    Value object = default_service_cidr(options_.service_range, now);
    object.set("kind", cidrs->kind);
    object.set("apiVersion", cidrs->api_version());
    object.mut("metadata").set("uid", runtime::make_uuid(runtime_.random));
    object.mut("metadata").set("creationTimestamp", format_rfc3339(now));
    ops.insert(ops.begin(), {key, share(encode_stored(object)), 0});
  }
  std::size_t done = 0;
  for (std::size_t from = 0; from < ops.size(); from += store::kGroupExpecting) {
    const std::size_t to = std::min(from + store::kGroupExpecting, ops.size());
    // What was written meanwhile makes the group fail; the next look takes it up again.
    if (store_
            .commit({ops.begin() + static_cast<std::ptrdiff_t>(from),
                     ops.begin() + static_cast<std::ptrdiff_t>(to)})
            .ok())
      done += to - from;
  }
  return done;
}

}  // namespace dibs::server
