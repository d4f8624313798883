#include "server/request_metrics.h"

#include "base/strings.h"

namespace dibs::server {
namespace {

std::string_view scope_of(const RequestInfo& info) {
  if (!info.is_resource) return "";
  if (!info.name.empty()) return "resource";
  return info.name_space.empty() ? "cluster" : "namespace";
}

}  // namespace

RequestMetrics::RequestMetrics(metrics::Registry& registry)
    : total_(registry.counter(
          "apiserver_request_total", "Requests by verb, resource and answer.",
          {"verb", "group", "version", "resource", "subresource", "scope", "code"})),
      seconds_(
          registry.histogram("apiserver_request_duration_seconds", "Time to answer requests.",
                             {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2,
                              3,     4,     5,    6,   8,   10,  15,  20,  30,  45,   60},
                             {"verb", "group", "version", "resource", "subresource", "scope"})) {}

void RequestMetrics::count(const Context& context, int status, Duration took) {
  const RequestInfo& info = context.info;
  std::string verb = to_upper(info.verb);
  // Labels come from what is served, never from a path alone: strangers must not make new series.
  static const std::string none;
  bool known = context.resource != nullptr;
  const std::string& resource = known ? info.resource : none;
  const std::string& sub =
      known && context.resource->subresource(info.subresource) ? info.subresource : none;
  std::string code = cat(status);
  if (!known && info.is_resource) verb = "other";
  const std::string& group = known ? info.group : none;
  const std::string& version = known ? info.version : none;
  auto scope = scope_of(info);
  if (!known && !info.is_resource && verb != "GET") verb = "other";
  total_.with({verb, group, version, resource, sub, scope, code}).add();
  seconds_.with({verb, group, version, resource, sub, scope}).observe(took);
}

}  // namespace dibs::server
