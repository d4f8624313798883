// Cluster addresses and node ports of Services: given out once each, from the ranges of this
// cluster.
//
// Runs after validation, like the allocation it is. What is taken is read from the Services
// themselves, so there is nothing to repair after a crash; a lock held from the choice to the end
// of the write keeps two creations apart.
#include <arpa/inet.h>

#include <charconv>
#include <mutex>
#include <set>

#include "base/strings.h"
#include "server/plugins/plugins.h"

namespace dibs::server {
namespace {

constexpr int kFirstPort = 30000;
constexpr int kLastPort = 32767;

struct Range {
  std::uint32_t first = 0;
  std::uint32_t size = 0;
};

Range parse_range(std::string_view text) {
  auto slash = text.find('/');
  int bits = 24;
  std::from_chars(text.data() + slash + 1, text.data() + text.size(), bits);
  in_addr address{};
  inet_pton(AF_INET, std::string(text.substr(0, slash)).c_str(), &address);
  return {ntohl(address.s_addr), 1U << (32 - bits)};
}

std::string to_text(std::uint32_t address) {
  in_addr value{htonl(address)};
  char out[INET_ADDRSTRLEN];
  return inet_ntop(AF_INET, &value, out, sizeof out);
}

struct Taken {
  std::set<std::string, std::less<>> addresses;
  std::set<std::pair<std::string, std::int64_t>> ports;  // protocol, number
};

class ServiceAddresses : public AdmissionPlugin {
 public:
  explicit ServiceAddresses(PluginSources sources)
      : sources_(sources), range_(parse_range(sources.options.service_range)) {}
  std::string_view name() const override { return "ServiceAddresses"; }

  Result<> validate(AdmissionRequest& request) override {
    if (!request.is("", "services") || !request.subresource.empty()) return success();
    std::lock_guard lock(mutex_);
    if (request.operation == Operation::remove) forget(request);
    if (request.operation == Operation::remove || !request.object) return success();
    Value& service = *request.object;
    auto type = service["spec"]["type"].as_string();
    bool wants_address =
        type != "ExternalName" && service["spec"]["clusterIP"].as_string() != "None";
    bool wants_ports =
        type == "NodePort" ||
        (type == "LoadBalancer" && service["spec"]["allocateLoadBalancerNodePorts"].as_bool(true));
    Taken taken = read_taken(request);
    api::FieldErrors errors;
    if (wants_address) give_address(request, service, taken, errors);
    if (wants_ports) give_ports(request, service, taken, errors);
    if (!errors.empty()) return errors.to_error("Service", "", request.name);
    if (!request.context.dry_run) remember(service);
    return success();
  }

  void roll_back(const AdmissionRequest& request) override {
    if (!request.is("", "services")) return;
    std::lock_guard lock(mutex_);
    forget(request);
  }

 private:
  /// The Service of the request is not on its way to the store any more. Requires mutex_.
  void forget(const AdmissionRequest& request) {
    std::erase_if(recent_, [&](const Value& other) {
      const Value& metadata = other["metadata"];
      return metadata["name"].as_string() == request.name &&
             metadata["namespace"].as_string() == request.name_space;
    });
  }

  /// What others have. A Service being written now is known from its last writes as well, since it
  /// may not be stored yet.
  Taken read_taken(const AdmissionRequest& request) {
    Taken taken;
    for (const Value& other : sources_.list("", "services", "")) {
      const Value& metadata = other["metadata"];
      if (metadata["name"].as_string() == request.name &&
          metadata["namespace"].as_string() == request.name_space)
        continue;
      add(other, taken);
    }
    forget(request);
    // Once stored they are in the list above, and gone when they are deleted.
    std::erase_if(recent_, [&](const Value& other) {
      const Value& metadata = other["metadata"];
      return !sources_
                  .find("", "services", metadata["namespace"].as_string(),
                        metadata["name"].as_string())
                  .is_null();
    });
    for (const Value& other : recent_) add(other, taken);
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
  }

  void remember(const Value& service) {
    recent_.push_back(service);
    if (recent_.size() > 64) recent_.erase(recent_.begin());
  }

  void give_address(const AdmissionRequest& request, Value& service, const Taken& taken,
                    api::FieldErrors& errors) {
    std::string address(service["spec"]["clusterIP"].as_string());
    if (request.old && !address.empty() &&
        (*request.old)["spec"]["clusterIP"].as_string() == address)
      return;
    api::Path path = api::Path("spec");
    if (address.empty()) {
      // The lower part is left to those who choose their address.
      std::uint32_t offset =
          std::min<std::uint32_t>(std::max<std::uint32_t>(16, range_.size / 16), 256);
      std::uint32_t room = range_.size - 1 - offset;
      std::uint32_t start = static_cast<std::uint32_t>(sources_.runtime.random.below(room));
      for (std::uint32_t i = 0; i < room + offset - 1 && address.empty(); ++i) {
        std::uint32_t at = i < room ? offset + (start + i) % room : 1 + (i - room);
        std::string candidate = to_text(range_.first + at);
        if (!taken.addresses.contains(candidate)) address = candidate;
      }
      if (address.empty()) {
        errors.internal(path.child("clusterIP"), "failed to allocate a serviceIP: range is full");
        return;
      }
    } else if (taken.addresses.contains(address)) {
      errors.invalid(path.child("clusterIPs"), Value::array({address}),
                     cat("failed to allocate IP ", address, ": provided IP is already allocated"));
      return;
    } else if (!in_range(address)) {
      errors.invalid(path.child("clusterIPs"), Value::array({address}),
                     cat("failed to allocate IP ", address, ": the provided IP (", address,
                         ") is not in the valid range. The range of valid IPs is ",
                         sources_.options.service_range));
      return;
    }
    service.mut("spec").set("clusterIP", address);
    service.mut("spec").set("clusterIPs", Value::array({address}));
  }

  bool in_range(const std::string& address) const {
    in_addr value{};
    if (inet_pton(AF_INET, address.c_str(), &value) != 1) return false;
    std::uint32_t number = ntohl(value.s_addr);
    return number > range_.first && number < range_.first + range_.size - 1;
  }

  void give_ports(const AdmissionRequest& request, Value& service, Taken& taken,
                  api::FieldErrors& errors) {
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
        if (has_port(request.old, protocol, number)) continue;
        if (number < kFirstPort || number > kLastPort) {
          errors.invalid(
              path, number,
              "provided port is not in the valid range. The range of valid ports is 30000-32767");
        } else if (!taken.ports.insert({protocol, number}).second) {
          errors.invalid(path, number, "provided port is already allocated");
        }
        continue;
      }
      int room = kLastPort - kFirstPort + 1;
      int start = static_cast<int>(sources_.runtime.random.below(static_cast<std::uint64_t>(room)));
      for (int j = 0; j < room; ++j) {
        std::int64_t candidate = kFirstPort + (start + j) % room;
        if (!taken.ports.insert({protocol, candidate}).second) continue;
        number = candidate;
        break;
      }
      if (number == 0) {
        errors.internal(path, "failed to allocate a nodePort: range is full");
        continue;
      }
      service.mut("spec").mut("ports").mut(i).set("nodePort", number);
    }
  }

  static bool has_port(const Value* service, std::string_view protocol, std::int64_t number) {
    if (!service) return false;
    for (const Value& port : (*service)["spec"]["ports"].items()) {
      if (port["protocol"].as_string() == protocol && port["nodePort"].as_int() == number)
        return true;
    }
    return false;
  }

  PluginSources sources_;
  Range range_;
  std::mutex mutex_;
  std::vector<Value> recent_;  // guarded by mutex_; validated, perhaps not stored yet
};

}  // namespace

PluginPtr make_service_addresses(PluginSources sources) {
  return std::make_unique<ServiceAddresses>(sources);
}

}  // namespace dibs::server
