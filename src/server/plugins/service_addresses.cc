// Cluster addresses and node ports of Services: given out once each, from the ranges of this
// cluster.
//
// What is taken is read from the Services themselves, so there is nothing to repair after a crash;
// one that is on its way to the store counts until its write is over. An IPAddress that somebody
// else has made keeps its address from them, too, and each address that a Service gets has one in
// the same transaction (service_cidrs.h). Where other servers give out addresses, too, a write has
// the fence of each that it takes (fences.h).
#include <list>
#include <set>

#include "base/ipv4.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "server/fences.h"
#include "server/plugins/plugins.h"
#include "server/service_cidrs.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

constexpr std::string_view kNetworking = "networking.k8s.io";
constexpr int kFirstPort = 30000;
constexpr int kLastPort = 32767;

/// Who starts a server has looked at it.
Ipv4Range range_of(const std::string& text) {
  const auto range = Ipv4Range::parse(text);
  return range.ok() ? *range : *Ipv4Range::parse(kDefaultServiceRange);
}

struct Taken {
  std::set<std::string, std::less<>> addresses;
  std::set<std::pair<std::string, std::int64_t>> ports;  // protocol, number
};

class ServiceAddresses : public AdmissionPlugin {
 public:
  explicit ServiceAddresses(PluginSources sources)
      : sources_(sources),
        range_(range_of(sources.options.service_range)),
        fences_(sources.store, "services") {}
  std::string_view name() const override { return "ServiceAddresses"; }
  bool may_be_disabled() const override { return false; }

  Result<TicketPtr> allocate(Write& write) override {
    if (!write.is("", "services") || !write.subresource.empty() || write.object.is_null())
      return TicketPtr();
    const Value& service = write.object;
    auto type = service["spec"]["type"].as_string();
    bool wants_address =
        type != "ExternalName" && service["spec"]["clusterIP"].as_string() != "None";
    bool wants_ports =
        type == "NodePort" ||
        (type == "LoadBalancer" && service["spec"]["allocateLoadBalancerNodePorts"].as_bool(true));
    MutexLock lock(mutex_);
    Value given;
    const std::size_t others = write.fences.size();
    std::string lost_before;
    for (;;) {
      const store::Revision seen = fences_.before_judging();
      given = service;
      Taken taken = read_taken(write);
      api::FieldErrors errors;
      if (type != "ExternalName") refuse_other_families(given, errors);
      if (wants_address) give_address(write, given, taken, errors);
      if (wants_ports) give_ports(write, given, taken, errors);
      if (type == "LoadBalancer" &&
          service["spec"]["externalTrafficPolicy"].as_string() == "Local") {
        give_health_port(write, given, taken, errors);
      }
      if (!errors.empty()) return errors.to_error("Service", "", write.name);
      if (!fences_.guard(write, newly_taken(write.old, given), seen)) continue;
      std::string lost = tell_addresses(write, write.old, given);
      if (lost.empty()) break;
      // Somebody has made its IPAddress since it was found to be free.
      write.fences.erase(write.fences.begin() + static_cast<std::ptrdiff_t>(others),
                         write.fences.end());
      if (lost == lost_before) {
        const api::Path spec("spec");
        errors.invalid(spec.child("clusterIPs"), Value::array({lost}), already_allocated(lost));
        return errors.to_error("Service", "", write.name);
      }
      lost_before = std::move(lost);
    }
    write.object = std::move(given);
    return std::make_unique<Hold>(*this, write.object);
  }

  void give_back(Write& write) override {
    if (write.is("", "services")) tell_addresses(write, write.old, Value());
  }

  /// A range that others have addresses of already would take them away from them.
  void judge(const Write& write, api::FieldErrors& errors) override {
    if (!write.is(kNetworking, "servicecidrs") || write.operation != Operation::create) return;
    const Value& cidrs = write.object["spec"]["cidrs"];
    const api::Path spec("spec");
    const api::Path path = spec.child("cidrs");
    for (std::size_t i = 0; i < cidrs.size(); ++i) {
      const auto range = Ipv4Range::parse(cidrs[i].as_string());
      if (!range.ok()) continue;
      for (const Value& node : sources_.list("", "nodes", "")) {
        const std::string there = overlap_with(*range, node);
        if (there.empty()) continue;
        errors.invalid(
            path.index(i), cidrs[i],
            cat("must not have ", there, " of the node ", node["metadata"]["name"].as_string()));
        break;
      }
    }
  }

 private:
  /// What of a node lies in the range; "": nothing.
  static std::string overlap_with(const Ipv4Range& range, const Value& node) {
    for (const Value& address : node["status"]["addresses"].items()) {
      const auto number = parse_ipv4(address["address"].as_string());
      if (number && range.contains(*number))
        return cat("the address ", address["address"].as_string());
    }
    for (const Value& cidr : node["spec"]["podCIDRs"].items()) {
      const auto pods = Ipv4Range::parse(cidr.as_string());
      if (pods.ok() && pods->overlaps(range)) return cat("the pods' range ", cidr.as_string());
    }
    return {};
  }

  /// Null in releases that have no such objects.
  ResourcePtr addresses() const {
    return sources_.resources.get()->find_plural(kNetworking, "ipaddresses");
  }

  /// Where Services get their addresses of.
  std::vector<Ipv4Range> ranges() const {
    if (!sources_.resources.get()->find_plural(kNetworking, "servicecidrs")) return {range_};
    return usable_ranges(sources_.list(kNetworking, "servicecidrs", ""));
  }

  /// Writes and removes the IPAddresses of what changes. Gives an address that has turned out to be
  /// somebody else's, or "".
  std::string tell_addresses(Write& write, const Value& old, const Value& service) const {
    const ResourcePtr resource = addresses();
    if (!resource) return {};
    Taken before;
    add(old, before);
    Taken now;
    add(service, now);
    const std::string own = cat(write.name_space, "/", write.name);
    const auto put = [&](const std::string& address, SharedBytes bytes) {
      const std::string key = resource->key("", address);
      const auto record = sources_.store.get(key);
      if (record ? !is_of(*record, own) : bytes == nullptr) return !record;
      write.fences.push_back({key, std::move(bytes), record ? record->modified : 0});
      return true;
    };
    for (const std::string& address : before.addresses) {
      if (!now.addresses.contains(address) && address != "None") put(address, nullptr);
    }
    for (const std::string& address : now.addresses) {
      if (before.addresses.contains(address) || address == "None") continue;
      auto bytes = share(encode_stored(ip_address(*resource, address, write.name_space, write.name,
                                                  runtime::make_uuid(sources_.runtime.random),
                                                  write.context.now)));
      if (!put(address, std::move(bytes))) return address;
    }
    return {};
  }

  static std::string already_allocated(const std::string& address) {
    return cat("failed to allocate IP ", address, ": provided IP is already allocated");
  }

  static bool is_of(const store::Record& record, const std::string& service) {
    const auto object = decode_stored(record);
    return object.ok() && service_of_address(*object) == service;
  }

  /// Somebody has it by an IPAddress, who is not this Service.
  bool is_reserved(const Write& write, const std::string& address) const {
    const ResourcePtr resource = addresses();
    if (!resource) return false;
    const auto record = sources_.store.get(resource->key("", address));
    return record && !is_of(*record, cat(write.name_space, "/", write.name));
  }

  /// What the Service did not have before. Empty where there are no fences.
  std::vector<std::string> newly_taken(const Value& old, const Value& service) const {
    std::vector<std::string> things;
    if (!fences_.are_needed()) return things;
    Taken before;
    add(old, before);
    Taken now;
    add(service, now);
    for (const std::string& address : now.addresses) {
      if (!before.addresses.contains(address)) things.push_back(cat("address ", address));
    }
    for (const auto& port : now.ports) {
      if (!before.ports.contains(port))
        things.push_back(cat("port ", port.first, " ", port.second));
    }
    return things;
  }

  /// A Service on its way to the store. Once it is there, read_taken() finds it.
  class Hold : public Ticket {
   public:
    Hold(ServiceAddresses& owner, const Value& service)
        : owner_(owner), place_(owner.on_their_way_.insert(owner.on_their_way_.end(), service)) {}
    ~Hold() override {
      MutexLock lock(owner_.mutex_);
      owner_.on_their_way_.erase(place_);
    }

   private:
    ServiceAddresses& owner_;
    std::list<Value>::iterator place_;
  };

  /// What others have, and will have.
  Taken read_taken(const Write& write) DIBS_REQUIRES(mutex_) {
    Taken taken;
    auto add_other = [&](const Value& service) {
      const Value& metadata = service["metadata"];
      if (metadata["name"].as_string() != write.name ||
          metadata["namespace"].as_string() != write.name_space)
        add(service, taken);
    };
    // In this order: one that is stored meanwhile is in at least one of the two.
    for (const Value& service : on_their_way_) add_other(service);
    for (const Value& service : sources_.list("", "services", "")) add_other(service);
    return taken;
  }

  static void add(const Value& service, Taken& taken) {
    for (const Value& address : service["spec"]["clusterIPs"].items())
      taken.addresses.insert(address.str());
    for (const Value& port : service["spec"]["ports"].items()) {
      if (auto number = port["nodePort"].as_int(); number > 0) {
        taken.ports.insert({port["protocol"].str(), number});
      }
    }
    // Asked by TCP, at the same addresses.
    if (auto number = service["spec"]["healthCheckNodePort"].as_int(); number > 0) {
      taken.ports.insert({"TCP", number});
    }
  }

  /// There is one range, of IPv4. A headless Service without a selector has whatever its owner
  /// says.
  static void refuse_other_families(const Value& service, api::FieldErrors& errors) {
    const Value& spec = service["spec"];
    if (spec["clusterIP"].as_string() == "None" && spec["selector"].empty()) return;
    const api::Path path("spec");
    if (spec["ipFamilyPolicy"].as_string() == "RequireDualStack") {
      errors.invalid(path.child("ipFamilyPolicy"), spec["ipFamilyPolicy"],
                     "this cluster is not configured for dual-stack services");
    }
    for (std::size_t i = 0; i < spec["ipFamilies"].size(); ++i) {
      if (spec["ipFamilies"][i].as_string() == "IPv4") continue;
      const api::Path families = path.child("ipFamilies");
      errors.invalid(families.index(i), spec["ipFamilies"][i], "not configured on this cluster");
    }
  }

  /// Where a balancer asks whether a node has a backend.
  void give_health_port(const Write& write, Value& service, Taken& taken,
                        api::FieldErrors& errors) {
    const std::int64_t asked = service["spec"]["healthCheckNodePort"].as_int();
    if (asked > 0 && write.old["spec"]["healthCheckNodePort"].as_int() == asked) return;
    const api::Path spec("spec");
    const api::Path path = spec.child("healthCheckNodePort");
    if (asked > 0) {
      const bool in_range = asked >= kFirstPort && asked <= kLastPort;
      if (!in_range || !taken.ports.insert({"TCP", asked}).second) {
        errors.internal(path, cat("failed to allocate requested HealthCheck NodePort ", asked, ": ",
                                  in_range ? "provided port is already allocated"
                                           : "provided port is not in the valid range. The range "
                                             "of valid ports is 30000-32767"));
      }
      return;
    }
    if (const std::int64_t number = free_port("TCP", taken); number > 0) {
      service.mut("spec").set("healthCheckNodePort", number);
    } else {
      errors.internal(path, "failed to allocate a HealthCheck NodePort: range is full");
    }
  }

  /// Takes one; 0 where there is none.
  std::int64_t free_port(const std::string& protocol, Taken& taken) {
    const int room = kLastPort - kFirstPort + 1;
    const int start =
        static_cast<int>(sources_.runtime.random.below(static_cast<std::uint64_t>(room)));
    for (int i = 0; i < room; ++i) {
      const std::int64_t candidate = kFirstPort + (start + i) % room;
      if (taken.ports.insert({protocol, candidate}).second) return candidate;
    }
    return 0;
  }

  void give_address(const Write& write, Value& service, const Taken& taken,
                    api::FieldErrors& errors) {
    std::string address(service["spec"]["clusterIP"].as_string());
    if (!address.empty() && write.old["spec"]["clusterIP"].as_string() == address) return;
    api::Path path = api::Path("spec");
    if (address.empty()) {
      for (const Ipv4Range& range : ranges()) {
        address = free_address(write, range, taken);
        if (!address.empty()) break;
      }
      if (address.empty()) {
        errors.internal(path.child("clusterIP"), "failed to allocate a serviceIP: range is full");
        return;
      }
    } else if (taken.addresses.contains(address) ||
               (in_range(address) && is_reserved(write, address))) {
      errors.invalid(path.child("clusterIPs"), Value::array({address}), already_allocated(address));
      return;
    } else if (!in_range(address)) {
      const std::string why =
          addresses() ? std::string("the provided network does not match the current range")
                      : cat("the provided IP (", address,
                            ") is not in the valid range. The range of valid IPs is ",
                            sources_.options.service_range);
      errors.invalid(path.child("clusterIPs"), Value::array({address}),
                     cat("failed to allocate IP ", address, ": ", why));
      return;
    }
    service.mut("spec").set("clusterIP", address);
    service.mut("spec").set("clusterIPs", Value::array({address}));
  }

  /// "" where all are taken. The lower part is left to those who choose their address, where there
  /// is room for one.
  std::string free_address(const Write& write, const Ipv4Range& range, const Taken& taken) {
    if (range.size() <= 2) return {};
    const std::uint64_t size = range.size();
    const std::uint64_t offset =
        size <= 32 ? 1 : std::min<std::uint64_t>(std::max<std::uint64_t>(16, size / 16), 256);
    const std::uint64_t room = size - 1 - offset;
    const std::uint64_t start = sources_.runtime.random.below(room);
    for (std::uint64_t i = 0; i < room + offset - 1; ++i) {
      const std::uint64_t at = i < room ? offset + (start + i) % room : 1 + (i - room);
      std::string candidate = range.address(static_cast<std::uint32_t>(at));
      if (!taken.addresses.contains(candidate) && !is_reserved(write, candidate)) return candidate;
    }
    return {};
  }

  bool in_range(const std::string& address) const {
    const auto number = parse_ipv4(address);
    if (!number) return false;
    for (const Ipv4Range& range : ranges()) {
      if (*number > range.first && *number < range.first + range.size() - 1) return true;
    }
    return false;
  }

  void give_ports(const Write& write, Value& service, Taken& taken, api::FieldErrors& errors) {
    std::size_t count = service["spec"]["ports"].size();
    api::Path spec("spec");
    api::Path ports = spec.child("ports");
    for (std::size_t i = 0; i < count; ++i) {
      const Value& port = service["spec"]["ports"][i];
      std::string protocol = port["protocol"].str();
      std::int64_t number = port["nodePort"].as_int();
      api::Path at = ports.index(i);
      api::Path path = at.child("nodePort");
      if (number > 0) {
        if (has_port(write.old, protocol, number)) continue;
        if (number < kFirstPort || number > kLastPort) {
          errors.invalid(
              path, number,
              "provided port is not in the valid range. The range of valid ports is 30000-32767");
        } else if (!taken.ports.insert({protocol, number}).second) {
          errors.invalid(path, number, "provided port is already allocated");
        }
        continue;
      }
      number = free_port(protocol, taken);
      if (number == 0) {
        errors.internal(path, "failed to allocate a nodePort: range is full");
        continue;
      }
      service.mut("spec").mut("ports").mut(i).set("nodePort", number);
    }
  }

  static bool has_port(const Value& service, std::string_view protocol, std::int64_t number) {
    for (const Value& port : service["spec"]["ports"].items()) {
      if (port["protocol"].as_string() == protocol && port["nodePort"].as_int() == number)
        return true;
    }
    return false;
  }

  PluginSources sources_;
  const Ipv4Range range_;
  const Fences fences_;
  Mutex mutex_;
  std::list<Value> on_their_way_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace

PluginPtr make_service_addresses(PluginSources sources) {
  return std::make_unique<ServiceAddresses>(sources);
}

}  // namespace dibs::server
