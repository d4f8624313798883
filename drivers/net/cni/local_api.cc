#include "drivers/net/cni/local_api.h"

#include "base/strings.h"
#include "json/parse.h"
#include "rpc/channel.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

constexpr std::size_t kMaxText = 1024;
constexpr std::size_t kMaxItems = 256;

/// Reads the fields of a message and keeps the first thing that is wrong with them.
class Reader {
 public:
  explicit Reader(const Value& value) : value_(value) {}

  void text(const char* field, std::string& out) { take(field, value_[field], out); }

  void needed(const char* field, std::string& out) {
    text(field, out);
    if (out.empty()) fail(field, "is missing");
  }

  /// A name of an object or an interface, which may stand in a path.
  void name(const char* field, std::string& out) {
    needed(field, out);
    if (!is_name(out)) fail(field, cat(quoted(out), " is not a name"));
  }

  void flag(const char* field, bool& out) {
    const Value& value = value_[field];
    if (value.is_null()) return;
    if (!value.is_boolean()) return fail(field, "must be true or false");
    out = value.as_bool();
  }

  void texts(const char* field, std::vector<std::string>& out) {
    const Value& list = value_[field];
    if (list.is_null()) return;
    if (!list.is_array()) return fail(field, "must be a list");
    if (list.size() > kMaxItems) return fail(field, cat("has more than ", kMaxItems, " items"));
    for (const auto& item : list.items()) take(field, item, out.emplace_back());
  }

  void routes(const char* field, std::vector<NicRoute>& out) {
    const Value& list = value_[field];
    if (list.is_null()) return;
    if (!list.is_array()) return fail(field, "must be a list");
    if (list.size() > kMaxItems) return fail(field, cat("has more than ", kMaxItems, " items"));
    for (const auto& item : list.items()) {
      NicRoute& route = out.emplace_back();
      take(field, item["dst"], route.dst);
      take(field, item["gw"], route.gw);
    }
  }

  void pod(PodName& out) {
    name("namespace", out.name_space);
    name("pod", out.name);
    text("uid", out.uid);
    if (!out.uid.empty() && !is_name(out.uid)) fail("uid", cat(quoted(out.uid), " is not a uid"));
  }

  void fail(const char* field, std::string_view why) {
    if (!error_) error_ = Error::invalid(cat(field, ": ", why));
  }

  template <typename T>
  Result<T> finish(T out) const {
    if (error_) return *error_;
    return out;
  }

 private:
  void take(const char* field, const Value& value, std::string& out) {
    if (value.is_null()) return;
    if (!value.is_string()) return fail(field, "must be a text");
    if (value.as_string().size() > kMaxText) {
      return fail(field, cat("is longer than ", kMaxText, " bytes"));
    }
    out = value.str();
    if (out.find('\0') != std::string::npos) fail(field, "has a zero byte");
  }

  static bool is_name(std::string_view text) {
    if (text.empty() || text.size() > 253 || text == "." || text == "..") return false;
    for (const char c : text) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == ':';
      if (!plain) return false;
    }
    return true;
  }

  const Value& value_;
  std::optional<Error> error_;
};

Result<Value> message(std::string_view text) {
  if (text.size() > kMaxLocalMessage) {
    return Error::too_large(
        cat("the message has ", text.size(), " bytes, and ", kMaxLocalMessage, " is the most"));
  }
  auto value = json::parse(text);
  if (!value.ok()) return Error::invalid(cat("the message is not JSON: ", value.error().message()));
  if (!value->is_object()) return Error::invalid("the message is no object");
  return value;
}

Value list_of(const std::vector<std::string>& texts) {
  Value out = Value::array();
  for (const auto& text : texts) out.push(text);
  return out;
}

void set_pod(Value& out, const PodName& pod) {
  out.set("namespace", pod.name_space);
  out.set("pod", pod.name);
  out.set("uid", pod.uid);
}

}  // namespace

Value to_value(const NicRequest& request) {
  Value out = Value::object();
  set_pod(out, request.pod);
  out.set("interface", request.interface);
  out.set("container", request.container);
  out.set("netns", request.network_namespace);
  out.set("network", request.network);
  out.set("ipv4Pools", list_of(request.ipv4_pools));
  out.set("ipv6Pools", list_of(request.ipv6_pools));
  out.set("cleanGateway", request.clean_gateway);
  return out;
}

Value to_value(const NicAddresses& addresses) {
  Value routes = Value::array();
  for (const auto& route : addresses.routes) {
    routes.push(Value::object({{"dst", route.dst}, {"gw", route.gw}}));
  }
  return Value::object({{"ipv4", addresses.ipv4},
                        {"ipv4Gateway", addresses.ipv4_gateway},
                        {"ipv6", addresses.ipv6},
                        {"ipv6Gateway", addresses.ipv6_gateway},
                        {"cleanGateway", addresses.clean_gateway},
                        {"routes", routes}});
}

Value to_value(const AttachedNic& nic) {
  Value out = Value::object();
  set_pod(out, nic.pod);
  out.set("interface", nic.interface);
  out.set("container", nic.container);
  out.set("mac", nic.mac);
  out.set("ips", list_of(nic.ips));
  return out;
}

Value to_value(const CoordinatorFacts& facts) {
  return Value::object({{"spec", facts.spec},
                        {"overlayPodCIDR", list_of(facts.pod_cidrs)},
                        {"serviceCIDR", list_of(facts.service_cidrs)},
                        {"defaultRouteNic", facts.default_route_nic}});
}

Result<NicRequest> read_nic_request(std::string_view text) {
  DIBS_TRY(const Value value, message(text));
  NicRequest out;
  Reader reader(value);
  reader.pod(out.pod);
  reader.name("interface", out.interface);
  reader.name("container", out.container);
  reader.text("netns", out.network_namespace);
  reader.text("network", out.network);
  reader.texts("ipv4Pools", out.ipv4_pools);
  reader.texts("ipv6Pools", out.ipv6_pools);
  reader.flag("cleanGateway", out.clean_gateway);
  return reader.finish(std::move(out));
}

Result<NicAddresses> read_nic_addresses(std::string_view text) {
  DIBS_TRY(const Value value, message(text));
  NicAddresses out;
  Reader reader(value);
  reader.text("ipv4", out.ipv4);
  reader.text("ipv4Gateway", out.ipv4_gateway);
  reader.text("ipv6", out.ipv6);
  reader.text("ipv6Gateway", out.ipv6_gateway);
  reader.flag("cleanGateway", out.clean_gateway);
  reader.routes("routes", out.routes);
  return reader.finish(std::move(out));
}

Result<AttachedNic> read_attached_nic(std::string_view text) {
  DIBS_TRY(const Value value, message(text));
  AttachedNic out;
  Reader reader(value);
  reader.pod(out.pod);
  reader.name("interface", out.interface);
  reader.name("container", out.container);
  reader.text("mac", out.mac);
  reader.texts("ips", out.ips);
  return reader.finish(std::move(out));
}

Result<CoordinatorFacts> read_coordinator_facts(std::string_view text) {
  DIBS_TRY(const Value value, message(text));
  CoordinatorFacts out;
  Reader reader(value);
  out.spec = value["spec"];
  if (!out.spec.is_null() && !out.spec.is_object()) reader.fail("spec", "must be an object");
  reader.texts("overlayPodCIDR", out.pod_cidrs);
  reader.texts("serviceCIDR", out.service_cidrs);
  reader.text("defaultRouteNic", out.default_route_nic);
  return reader.finish(std::move(out));
}

struct LocalClient::State {
  std::unique_ptr<rpc::Channel> channel;

  Result<std::string> call(const char* method, const Value& request, Duration deadline) {
    auto reply = channel->call(method, json::write(request), deadline);
    if (reply.status.ok()) return std::move(reply.bytes);
    switch (reply.status.code) {
      case rpc::Code::unavailable:
        return Error::unavailable(reply.status.message);
      case rpc::Code::deadline_exceeded:
        return Error::timeout("no answer in time");
      default:
        return Error::internal(reply.status.message);
    }
  }
};

LocalClient::LocalClient(const std::string& socket) : state_(std::make_unique<State>()) {
  state_->channel = rpc::connect_unix(socket);
}

LocalClient::~LocalClient() = default;

Result<> LocalClient::health(Duration deadline) {
  DIBS_CHECK(state_->call(kLocalHealth, Value::object(), deadline));
  return success();
}

Result<NicAddresses> LocalClient::add(const NicRequest& request, Duration deadline) {
  DIBS_TRY(const std::string bytes, state_->call(kLocalAdd, to_value(request), deadline));
  return read_nic_addresses(bytes);
}

Result<> LocalClient::del(const NicRequest& request, Duration deadline) {
  DIBS_CHECK(state_->call(kLocalDel, to_value(request), deadline));
  return success();
}

Result<> LocalClient::attached(const AttachedNic& nic, Duration deadline) {
  DIBS_CHECK(state_->call(kLocalAttached, to_value(nic), deadline));
  return success();
}

Result<CoordinatorFacts> LocalClient::coordinator(const NicRequest& request, Duration deadline) {
  DIBS_TRY(const std::string bytes, state_->call(kLocalCoordinator, to_value(request), deadline));
  return read_coordinator_facts(bytes);
}

}  // namespace dibs::drivers::net
