// Where the Service of an APIService leads: to the ready addresses in its slices, or to a name.
#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "server/aggregator.h"
#include "server/cluster_address.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

bool is_ready(const Value& endpoint) {
  const Value& ready = endpoint["conditions"]["ready"];
  return ready.is_null() || ready.as_bool();
}

}  // namespace

Availability locate(const Value& api_service, const Value& service,
                    const std::vector<Value>& slices,
                    const std::function<Value(std::string_view)>& node_named) {
  const Value& wanted = api_service["spec"]["service"];
  const std::string name = wanted["name"].str();
  const std::string name_space = wanted["namespace"].str();
  const std::int64_t port = wanted["port"].as_int(443);
  const auto missing = [](std::string_view reason, std::string message) {
    return Availability{"False", std::string(reason), std::move(message)};
  };
  const std::string shown = cat("service/", name, " in ", quoted(name_space));
  if (service.is_null()) return missing("ServiceNotFound", cat(shown, " is not present"));
  ExtensionPlace place;
  place.name = cat(name, ".", name_space, ".svc");
  place.unchecked = api_service["spec"]["insecureSkipTLSVerify"].as_bool();
  (void)base64_decode(api_service["spec"]["caBundle"].as_string(), place.ca_pem);
  Availability out{"True", "", ""};
  const Value& spec = service["spec"];
  if (spec["type"].as_string() == "ExternalName") {
    place.host = spec["externalName"].str();
    place.port = static_cast<std::uint16_t>(port);
    out.places.push_back(std::move(place));
    return out;
  }
  const auto ports = spec["ports"].items();
  const auto found = std::find_if(ports.begin(), ports.end(),
                                  [&](const Value& one) { return one["port"].as_int() == port; });
  if (found == ports.end()) {
    return missing("ServicePortError", cat(shown, " is not listening on port ", port));
  }
  const std::string_view port_name = (*found)["name"].as_string();
  bool any = false;
  for (const Value& slice : slices) {
    if (slice["metadata"]["labels"]["kubernetes.io/service-name"].as_string() != name) continue;
    any = true;
    for (const Value& one : slice["ports"].items()) {
      if (one["name"].as_string() != port_name || one["port"].is_null()) continue;
      place.port = static_cast<std::uint16_t>(one["port"].as_int());
      for (const Value& endpoint : slice["endpoints"].items()) {
        if (!is_ready(endpoint) || endpoint["addresses"].empty()) continue;
        place.host = endpoint["addresses"][0].str();
        place.reach = reach_of(place.host, node_named(endpoint["nodeName"].as_string()));
        out.places.push_back(place);
      }
    }
  }
  if (!any) return missing("EndpointsNotFound", cat("cannot find endpointslices for ", shown));
  if (out.places.empty()) {
    return missing(
        "MissingEndpoints",
        cat("endpointslices for ", shown, " have no addresses with port name ", quoted(port_name)));
  }
  return out;
}

std::vector<Value> Aggregator::list(std::string_view group, std::string_view plural,
                                    std::string_view name_space) const {
  std::vector<Value> out;
  const auto resource = resources_.get()->find_plural(group, plural);
  if (!resource) return out;
  store::RangeQuery query;
  query.prefix = resource->namespace_prefix(name_space);
  auto listing = objects_.store().range(query);
  if (!listing.ok()) return out;
  for (const auto& record : listing->records) {
    if (auto object = decode_stored(*record); object.ok()) out.push_back(std::move(object).value());
  }
  return out;
}

Availability Aggregator::find_places(const Value& api_service) const {
  const Value& wanted = api_service["spec"]["service"];
  const auto services = resources_.get()->find("", "v1", "services");
  Value service;
  if (services) {
    auto object =
        objects_.get(*services, wanted["namespace"].as_string(), wanted["name"].as_string());
    if (object.ok()) service = std::move(object).value();
  }
  const auto nodes = resources_.get()->find("", "v1", "nodes");
  return locate(api_service, service,
                service.is_null()
                    ? std::vector<Value>()
                    : list("discovery.k8s.io", "endpointslices", wanted["namespace"].as_string()),
                [&](std::string_view name) {
                  if (!nodes || name.empty()) return Value();
                  auto node = objects_.get(*nodes, "", name);
                  return node.ok() ? std::move(node).value() : Value();
                });
}

}  // namespace dibs::server
