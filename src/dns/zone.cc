#include "dns/zone.h"

#include "base/strings.h"
#include "client/client.h"

namespace dibs::dns {

using json::Value;

namespace {

constexpr const char* kServiceName = "kubernetes.io/service-name";

std::vector<std::string> addresses_of(const Value& texts) {
  std::vector<std::string> out;
  for (const auto& text : texts.items()) {
    if (auto address = parse_address(text.as_string())) out.push_back(std::move(*address));
  }
  return out;
}

template <typename Map, typename Entry>
void take_out(Map& map, const std::string& address, const Entry& entry) {
  const auto found = map.find(address);
  if (found == map.end()) return;
  found->second.erase(entry);
  if (found->second.empty()) map.erase(found);
}

}  // namespace

Result<Name> Zone::parse_domain(std::string_view domain) {
  const auto name = Name::from_text(domain);
  if (!name || name->is_root() || domain.ends_with('.') || to_lower(domain) != domain) {
    return Error::bad_request(cat(quoted(domain), ": must be a domain name in lower case"));
  }
  return *name;
}

Zone::Zone(ZoneOptions options)
    : options_(std::move(options)),
      domain_(Name::from_text(options_.domain).value_or(Name()).lower()),
      domain_labels_(domain_.labels().size()),
      server_(Name::from_text(cat("ns.dns.", options_.domain)).value_or(domain_)) {
  for (const auto& text : options_.server_addresses) {
    if (auto address = parse_address(text)) server_addresses_.push_back(std::move(*address));
  }
}

void Zone::set_namespace(std::string_view name) {
  const MutexLock lock(mutex_);
  namespaces_.emplace(name);
}

void Zone::remove_namespace(std::string_view name) {
  const MutexLock lock(mutex_);
  if (const auto found = namespaces_.find(name); found != namespaces_.end()) {
    namespaces_.erase(found);
  }
}

std::vector<Zone::Port> Zone::ports_of(const Value& ports, const char* number) {
  std::vector<Port> out;
  for (const auto& port : ports.items()) {
    const auto value = port[number].as_int();
    if (value < 1 || value > 65535) continue;
    out.push_back({port["name"].str(), to_lower(port["protocol"].as_string("TCP")),
                   static_cast<std::uint16_t>(value)});
  }
  return out;
}

void Zone::set_service(const Value& object) {
  const Value& spec = object["spec"];
  const std::string key = client::key_of(object);
  Service made;
  if (spec["type"].as_string() == "ExternalName") {
    made.external = spec["externalName"].str();
  } else {
    made.addresses = addresses_of(spec["clusterIPs"]);
    if (spec["clusterIPs"].empty())
      made.addresses = addresses_of(Value::array({spec["clusterIP"]}));
    made.ports = ports_of(spec["ports"], "port");
    made.publish_not_ready = spec["publishNotReadyAddresses"].as_bool();
  }
  const bool headless = made.external.empty() && spec["clusterIP"].as_string() == "None";
  const MutexLock lock(mutex_);
  forget_service(key);
  // Its address is not given yet.
  if (made.external.empty() && made.addresses.empty() && !headless) return;
  for (const auto& address : made.addresses) service_addresses_[address].insert(key);
  services_.insert_or_assign(key, std::move(made));
}

void Zone::remove_service(const Value& object) {
  const MutexLock lock(mutex_);
  forget_service(client::key_of(object));
}

void Zone::forget_service(const std::string& key) {
  const auto found = services_.find(key);
  if (found == services_.end()) return;
  for (const auto& address : found->second.addresses) take_out(service_addresses_, address, key);
  services_.erase(found);
}

void Zone::set_slice(const Value& object) {
  const std::string key = client::key_of(object);
  const auto service = object["metadata"]["labels"][kServiceName].as_string();
  Slice made;
  made.ports = ports_of(object["ports"], "port");
  for (const auto& one : object["endpoints"].items()) {
    Endpoint endpoint;
    endpoint.addresses = addresses_of(one["addresses"]);
    endpoint.hostname = one["hostname"].str();
    endpoint.ready = one["conditions"]["ready"].as_bool(true);
    if (!endpoint.addresses.empty()) made.endpoints.push_back(std::move(endpoint));
  }
  const MutexLock lock(mutex_);
  forget_slice(key);
  if (service.empty()) return;
  const std::string owner = client::key_of(client::namespace_of(object), service);
  for (const auto& endpoint : made.endpoints) {
    for (const auto& address : endpoint.addresses) {
      endpoint_addresses_[address].emplace(owner, key);
    }
  }
  owners_[key] = owner;
  slices_[owner].insert_or_assign(key, std::move(made));
}

void Zone::remove_slice(const Value& object) {
  const MutexLock lock(mutex_);
  forget_slice(client::key_of(object));
}

void Zone::forget_slice(const std::string& key) {
  const auto known = owners_.find(key);
  if (known == owners_.end()) return;
  const std::string owner = known->second;
  owners_.erase(known);
  auto& slices = slices_[owner];
  for (const auto& endpoint : slices[key].endpoints) {
    for (const auto& address : endpoint.addresses) {
      take_out(endpoint_addresses_, address, std::pair(owner, key));
    }
  }
  slices.erase(key);
  if (slices.empty()) slices_.erase(owner);
}

void Zone::set_complete() {
  const MutexLock lock(mutex_);
  complete_ = true;
}

std::optional<Zone::Backends> Zone::find(const std::string& key) const {
  static const Slices kNone;
  const auto service = services_.find(key);
  if (service == services_.end()) return std::nullopt;
  const auto slices = slices_.find(key);
  return Backends{&service->second, slices == slices_.end() ? &kNone : &slices->second};
}

}  // namespace dibs::dns
