#include "server/server_leases.h"

#include <openssl/sha.h>

#include <charconv>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "server/stored.h"
#include "server/writing.h"

namespace dibs::server {
namespace {

using json::Value;

constexpr std::string_view kPrefix = "/registry/masterleases/";
constexpr const char* kAuthority = "dibs.io/authority";
constexpr Duration kEvery = std::chrono::seconds(10);
constexpr Duration kLife = std::chrono::seconds(15);

struct Place {
  std::string host;
  int port = 6443;
};

Place place_of(std::string_view advertise) {
  const auto colon = advertise.rfind(':');
  Place out;
  std::from_chars(advertise.data() + colon + 1, advertise.data() + advertise.size(), out.port);
  out.host = advertise.substr(0, colon);
  if (out.host.starts_with('[')) out.host = out.host.substr(1, out.host.size() - 2);
  return out;
}

bool is_loopback(std::string_view host) {
  return host.starts_with("127.") || host == "::1" || host == "localhost";
}

/// Of what all servers of a cluster must have in common. Says nothing of the key in it.
std::string authority_mark(const Options& options) {
  const std::string both = cat(options.ca_pem, options.account_key_pem);
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(both.data()), both.size(), hash);
  return hex_encode(std::string_view(reinterpret_cast<const char*>(hash), sizeof hash));
}

using Addresses = std::set<std::string>;

Value port_value(int port) {
  return Value::array({Value::object({{"name", "https"}, {"port", port}, {"protocol", "TCP"}})});
}

Value slice_endpoints(const Addresses& addresses) {
  Value out = Value::array();
  for (const std::string& address : addresses) {
    out.push(Value::object({{"addresses", Value::array({address})},
                            {"conditions", Value::object({{"ready", true}})}}));
  }
  return out;
}

Value subsets(const Addresses& addresses, int port) {
  Value ips = Value::array();
  for (const std::string& address : addresses) ips.push(Value::object({{"ip", address}}));
  return Value::array(
      {Value::object({{"addresses", std::move(ips)}, {"ports", port_value(port)}})});
}

Value metadata(Value labels) {
  return Value::object(
      {{"name", "kubernetes"}, {"namespace", "default"}, {"labels", std::move(labels)}});
}

}  // namespace

std::string service_place(const Options& options) {
  const bool alone = is_loopback(place_of(options.advertise).host) && !options.pods_place.empty();
  return alone ? options.pods_place : options.advertise;
}

struct ServerLeases::State : std::enable_shared_from_this<ServerLeases::State> {
  State(runtime::Runtime& world, store::Store& where, ResourceTable& table, const Options& how)
      : runtime(world),
        store(where),
        resources(table),
        place(place_of(service_place(how))),
        mark(authority_mark(how)),
        several(where.shared() && !is_loopback(place_of(how.advertise).host)) {}

  runtime::Runtime& runtime;
  store::Store& store;
  ResourceTable& resources;
  const Place place;
  const std::string mark;
  const bool several;  // this server tells others of itself

  struct Seen {
    store::Revision revision = 0;
    Duration at{0};
  };
  Mutex mutex;
  std::map<std::string, Seen, std::less<>> seen DIBS_GUARDED_BY(mutex);
  runtime::TimerId timer DIBS_GUARDED_BY(mutex) = 0;
  bool stopped DIBS_GUARDED_BY(mutex) = false;

  std::string own_key() const { return cat(kPrefix, place.host); }

  store::Op own_lease() const {
    Value lease = Value::object(
        {{"kind", "Endpoints"},
         {"apiVersion", "v1"},
         {"metadata", Value::object({{"annotations", Value::object({{kAuthority, mark}})}})},
         {"subsets", subsets({place.host}, place.port)}});
    // So that each is another value than the one before.
    lease.mut("metadata").set("creationTimestamp", format_rfc3339(runtime.clock.now()));
    store::Op op{own_key(), share(encode_stored(lease)), {}};
    op.lifetime = kLife;
    return op;
  }

  /// Of all that live, this server left out when it ends.
  Addresses living(bool with_own) {
    Addresses out;
    if (with_own) out.insert(place.host);
    const auto found = store.range({.prefix = std::string(kPrefix)});
    if (!found.ok()) return out;
    const Duration now = runtime.clock.steady();
    std::map<std::string, Seen, std::less<>> still;
    const MutexLock lock(mutex);
    for (const auto& record : found->records) {
      const std::string address(record->key.substr(kPrefix.size()));
      Seen one{record->modified, now};
      if (const auto before = seen.find(address);
          before != seen.end() && before->second.revision == one.revision) {
        one = before->second;
      }
      still[address] = one;
      if (address != place.host && now - one.at < kLife) out.insert(address);
    }
    seen = std::move(still);
    return out;
  }

  bool others_live() const {
    if (!store.shared()) return false;
    const auto found = store.range({.prefix = std::string(kPrefix)});
    return !found.ok() || !found->records.empty();
  }

  Result<> check_authority() {
    DIBS_TRY(const auto found, store.range({.prefix = std::string(kPrefix)}));
    for (const auto& record : found.records) {
      if (record->key == own_key()) continue;
      const auto lease = decode_stored(*record);
      if (!lease.ok()) continue;  // of a kube-apiserver
      const std::string theirs = (*lease)["metadata"]["annotations"][kAuthority].str();
      if (theirs.empty() || theirs == mark) continue;
      return Error(Code::conflict,
                   cat("the server at ", record->key.substr(kPrefix.size()),
                       " has another authority: pipe its `dibs pki export` into `dibs pki import` "
                       "here before the first start; where it has ended, wait for 15 s"));
    }
    return success();
  }

  /// What must be written so that the object says what is wanted; nothing where it does.
  Result<> add_op(std::string_view group, std::string_view kind, Value wanted,
                  std::vector<store::Op>& ops) {
    const ResourcePtr resource = resources.get()->find_kind(group, kind);
    if (resource == nullptr) return success();
    const std::string key = resource->key("default", "kubernetes");
    const auto record = store.get(key);
    if (record == nullptr) {
      wanted.set("kind", kind);
      wanted.set("apiVersion", resource->api_version());
      wanted.mut("metadata").set("uid", runtime::make_uuid(runtime.random));
      wanted.mut("metadata").set("creationTimestamp", format_rfc3339(runtime.clock.now()));
      DIBS_TRY(wanted, with_defaults(*resource, std::move(wanted)));
      ops.push_back(stored_op(key, wanted, 0));
      return success();
    }
    // Others are there for everybody.
    if (!several && others_live()) return success();
    DIBS_TRY(const Value before, decode_stored(*record));
    Value object = before;
    for (const char* field : {"subsets", "addressType", "endpoints", "ports"}) {
      if (!wanted[field].is_null()) object.set(field, wanted[field]);
    }
    DIBS_TRY(object, with_defaults(*resource, std::move(object), &before));
    if (object == before) return success();
    if (const auto generation = before["metadata"]["generation"].as_int(); generation > 0)
      object.mut("metadata").set("generation", generation + 1);
    ops.push_back(stored_op(key, object, record->modified));
    return success();
  }

  Result<std::vector<store::Op>> endpoint_ops(const Addresses& addresses) {
    std::vector<store::Op> ops;
    Value slice = Value::object(
        {{"metadata", metadata(Value::object({{"kubernetes.io/service-name", "kubernetes"}}))},
         {"addressType", place.host.find(':') == std::string::npos ? "IPv4" : "IPv6"},
         {"endpoints", slice_endpoints(addresses)},
         {"ports", port_value(place.port)}});
    DIBS_CHECK(add_op("discovery.k8s.io", "EndpointSlice", std::move(slice), ops));
    Value endpoints = Value::object(
        {{"metadata",
          metadata(Value::object({{"endpointslice.kubernetes.io/skip-mirror", "true"}}))},
         {"subsets", subsets(addresses, place.port)}});
    DIBS_CHECK(add_op("", "Endpoints", std::move(endpoints), ops));
    return ops;
  }

  /// Another server may do the same at the same time: then it is right, or the next look finds out.
  Result<> reconcile() {
    DIBS_TRY(auto ops, endpoint_ops(living(true)));
    if (ops.empty()) return success();
    const auto written = store.commit(std::move(ops));
    if (!written.ok() && written.error().code() != Code::conflict) return written.error();
    return success();
  }

  Result<> renew() {
    const auto written = store.commit({own_lease()});
    if (!written.ok()) return written.error();
    return reconcile();
  }

  void renew_later() {
    const MutexLock lock(mutex);
    if (stopped) return;
    timer = runtime.timers.after(kEvery, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr || self->has_stopped()) return;
      if (const auto renewed = self->renew(); !renewed.ok()) {
        log::warn("this server cannot tell others that it lives", {{"error", renewed.error()}});
      }
      self->renew_later();
    });
  }

  bool has_stopped() {
    const MutexLock lock(mutex);
    return stopped;
  }
};

ServerLeases::ServerLeases(runtime::Runtime& runtime, store::Store& store, ResourceTable& resources,
                           const Options& options)
    : state_(std::make_shared<State>(runtime, store, resources, options)) {}

ServerLeases::~ServerLeases() { stop(); }

Result<> ServerLeases::start() {
  if (!state_->several) {
    if (state_->store.shared()) DIBS_CHECK(state_->store.sync());
    return state_->reconcile();
  }
  DIBS_CHECK(state_->store.sync());
  DIBS_CHECK(state_->check_authority());
  DIBS_CHECK(state_->renew());
  state_->renew_later();
  return success();
}

void ServerLeases::stop() {
  {
    const MutexLock lock(state_->mutex);
    if (std::exchange(state_->stopped, true) || !state_->several) return;
    state_->runtime.timers.cancel(state_->timer);
  }
  std::vector<store::Op> ops = {{state_->own_key(), nullptr, {}}};
  const Addresses others = state_->living(false);
  if (!others.empty()) {
    if (auto more = state_->endpoint_ops(others); more.ok()) {
      for (store::Op& op : *more) ops.push_back(std::move(op));
    }
  }
  // Whether it arrives or not: what is not taken out expires.
  state_->store.commit_async(std::move(ops), [](const Result<store::Revision>&) {});
}

}  // namespace dibs::server
