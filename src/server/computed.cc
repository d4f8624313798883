#include "server/computed.h"

#include <algorithm>

#include "base/quantity.h"
#include "base/strings.h"
#include "server/list_options.h"
#include "server/presenting.h"
#include "server/selection.h"
#include "server/status.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

Value amounts(const UsageRate& rate) {
  const auto number = [](std::uint64_t value) {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(value, INT64_MAX));
  };
  return Value::object(
      {{"cpu", Quantity(number(rate.nano_cores), -9).canonical()},
       {"memory", Quantity(number(rate.memory), 0, Quantity::Format::binary_si).canonical()}});
}

/// Named and labelled as what it is about.
Value about(const Context& context, const Value& object) {
  Value metadata = Value::object({{"name", object["metadata"]["name"]}});
  for (std::string_view key : {"namespace", "labels"}) {
    if (const Value* value = object["metadata"].find(key)) metadata.set(key, *value);
  }
  metadata.set("creationTimestamp", format_rfc3339(context.now));
  return Value::object({{"kind", context.resource->kind},
                        {"apiVersion", context.resource->api_version()},
                        {"metadata", std::move(metadata)}});
}

void set_time(Value& object, Time at, Duration window) {
  object.set("timestamp", format_rfc3339(at));
  object.set("window", format_duration(window));
}

}  // namespace

Computed::Computed(Objects& objects, ResourceTable& resources, NodeUsage* usage,
                   std::vector<Component> components)
    : objects_(objects),
      resources_(resources),
      usage_(usage),
      components_(std::move(components)),
      kinds_({{"NodeMetrics", {&Computed::node_usage, "nodemetrics"}},
              {"PodMetrics", {&Computed::pod_usage, "podmetrics"}},
              {"ComponentStatus", {&Computed::components, "componentstatus"}}}) {}

bool Computed::is_computed(const Resource& resource) {
  return resource.storage_prefix.empty() && resource.has_verb("list");
}

Result<Response> Computed::handle(Context& context) {
  const Resource& resource = *context.resource;
  const auto kind = kinds_.find(resource.kind);
  if (kind == kinds_.end()) return unknown_resource_error();
  if (context.info.verb == "get") {
    const std::vector<Value> found = (this->*kind->second.make)(context, context.info.name);
    if (!found.empty()) return present_object(context, resource, 200, found.front());
    const std::string& plural = kind->second.plural;
    // Upstream names the namespace of what it knows nothing of, and only there.
    const std::string name = resource.namespaced
                                 ? cat(context.info.name_space, '/', context.info.name)
                                 : context.info.name;
    return not_found_error(resource.group, plural.empty() ? resource.plural : plural, name);
  }
  DIBS_TRY(const ListOptions options, ListOptions::parse(context.target, false));
  DIBS_TRY(const Selection selection, Selection::parse(context.target, resource));
  std::vector<Value> out;
  for (Value& object :
       (this->*kind->second.make)(context, selection.exact_name().value_or(std::string()))) {
    if (selection.matches(object)) out.push_back(std::move(object));
  }
  return present_values(context, resource, out, ListMeta{});
}

std::vector<Value> Computed::stored(const char* plural, std::string_view name_space,
                                    std::string_view name) const {
  std::vector<Value> out;
  const auto resource = resources_.get()->find("", "v1", plural);
  if (!resource) return out;
  if (!name.empty() && (!resource->namespaced || !name_space.empty())) {
    if (auto found = objects_.get(*resource, name_space, name); found.ok())
      out.push_back(std::move(found).value());
    return out;
  }
  store::RangeQuery query;
  query.prefix = resource->namespace_prefix(name_space);
  const auto listing = objects_.store().range(query);
  if (!listing.ok()) return out;
  for (const auto& record : listing->records) {
    if (auto object = decode_stored(*record); object.ok()) out.push_back(std::move(*object));
  }
  return out;
}

std::vector<Value> Computed::node_usage(const Context& context, std::string_view name) {
  std::vector<Value> out;
  if (usage_ == nullptr) return out;
  for (const Value& node : stored("nodes", "", name)) {
    const auto rate = usage_->node(node["metadata"]["name"].str());
    if (!rate) continue;
    Value one = about(context, node);
    set_time(one, rate->at, rate->window);
    one.set("usage", amounts(*rate));
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<Value> Computed::pod_usage(const Context& context, std::string_view name) {
  std::vector<Value> out;
  if (usage_ == nullptr) return out;
  for (const Value& pod : stored("pods", context.info.name_space, name)) {
    const std::string node = pod["spec"]["nodeName"].str();
    const auto rates = usage_->containers(node, pod["metadata"]["namespace"].as_string(),
                                          pod["metadata"]["name"].as_string());
    if (rates.empty()) continue;
    Value one = about(context, pod);
    // As old as the oldest of them.
    const auto& oldest =
        *std::min_element(rates.begin(), rates.end(),
                          [](const auto& a, const auto& b) { return a.second.at < b.second.at; });
    set_time(one, oldest.second.at, oldest.second.window);
    Value containers = Value::array();
    for (const auto& [container, rate] : rates)
      containers.push(Value::object({{"name", container}, {"usage", amounts(rate)}}));
    one.set("containers", std::move(containers));
    out.push_back(std::move(one));
  }
  return out;
}

/// Whoever does it elsewhere keeps a lease.
Result<> Computed::lease_held(const Context& context, const std::string& lease) const {
  const auto resource = resources_.get()->find("coordination.k8s.io", "v1", "leases");
  auto found = resource ? objects_.get(*resource, "kube-system", lease)
                        : Result<Value>(Error::not_found(""));
  if (!found.ok() || (*found)["spec"]["holderIdentity"].as_string().empty())
    return Error::unavailable(cat("nobody holds the lease kube-system/", lease));
  const Value& spec = (*found)["spec"];
  const auto renewed = parse_rfc3339(spec["renewTime"].as_string());
  const Duration span = std::chrono::seconds(spec["leaseDurationSeconds"].as_int());
  if (!renewed.ok() || *renewed + span < context.now)
    return Error::unavailable(
        cat("the lease kube-system/", lease, " was last renewed ", spec["renewTime"].as_string()));
  return success();
}

std::vector<Value> Computed::components(const Context& context, std::string_view name) {
  std::vector<Value> out;
  for (const Component& component : components_) {
    if (!name.empty() && component.name != name) continue;
    const Result<> health =
        component.health ? component.health() : lease_held(context, component.lease);
    Value condition =
        Value::object({{"type", "Healthy"}, {"status", health.ok() ? "True" : "False"}});
    if (health.ok()) {
      condition.set("message", "ok");
    } else {
      condition.set("error", health.error().message());
    }
    out.push_back(Value::object({{"kind", "ComponentStatus"},
                                 {"apiVersion", "v1"},
                                 {"metadata", Value::object({{"name", component.name}})},
                                 {"conditions", Value::array({std::move(condition)})}}));
  }
  return out;
}

}  // namespace dibs::server
