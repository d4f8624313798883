// Subresources::proxy: requests to the own servers of nodes, pods and services.
#include <charconv>

#include "base/strings.h"
#include "net/wire.h"
#include "server/cluster_address.h"
#include "server/negotiate.h"
#include "server/node_client.h"
#include "server/plugins/admission_policies_bodies.h"
#include "server/proxied_links.h"
#include "server/status.h"
#include "server/stored.h"
#include "server/subresources.h"

namespace dibs::server {
namespace {

/// "[scheme:]name[:port]", as the last part of a proxy's path is read.
struct ProxyName {
  std::string scheme = "http";
  std::string name = {};
  std::string port = {};
};

std::optional<ProxyName> read_name(std::string_view text) {
  const auto parts = split(text, ':');
  ProxyName out;
  if (parts.size() == 1) {
    out.name = parts[0];
  } else if (parts.size() == 2) {
    out.name = parts[0];
    out.port = parts[1];
  } else if (parts.size() == 3 && (parts[0].empty() || parts[0] == "http" || parts[0] == "https")) {
    if (!parts[0].empty()) out.scheme = parts[0];
    out.name = parts[1];
    out.port = parts[2];
  } else {
    return std::nullopt;
  }
  if (out.name.empty()) return std::nullopt;
  return out;
}

/// Path and query behind ".../proxy", as they were sent.
std::string rest_of(const Context& context) {
  const std::string_view target = net::origin_form(context.request.target);
  const auto question = target.find('?');
  std::string_view path = target.substr(0, question);
  const std::string_view query =
      question == std::string_view::npos ? std::string_view() : target.substr(question);
  // Counted, not searched for: any part before it may be called proxy, too. An escaped slash is one
  // here as well, since the path was decoded before it was taken apart.
  const auto slash = [](std::string_view text) -> std::size_t {
    if (text.starts_with('/')) return 1;
    return to_lower(text.substr(0, 3)) == "%2f" ? 3 : 0;
  };
  path.remove_prefix(slash(path));
  for (std::size_t part = 0; part < context.info.parts_before_rest; ++part) {
    while (!path.empty() && slash(path) == 0) path.remove_prefix(1);
    path.remove_prefix(slash(path));
  }
  return cat("/", path, query);
}

/// The path up to ".../proxy", as it was sent.
std::string prefix_of(const Context& context) {
  const std::string_view target = net::origin_form(context.request.target);
  std::string_view path = target.substr(0, target.find('?'));
  const std::string rest = rest_of(context);
  path.remove_suffix(std::min(rest.find('?'), rest.size()) - 1);  // less the slash it begins with
  if (path.ends_with('/')) {
    path.remove_suffix(1);
  } else if (path.size() >= 3 && to_lower(path.substr(path.size() - 3)) == "%2f") {
    path.remove_suffix(3);
  }
  return std::string(path);
}

/// Whether the path ends with ".../proxy", without a slash.
bool is_at_root(const Context& context, std::string_view prefix) {
  const std::string_view target = net::origin_form(context.request.target);
  return target.substr(0, target.find('?')) == prefix;
}

/// Whether what follows a name can be a port.
bool is_port(std::string_view text) {
  std::uint16_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size() && number > 0;
}

/// A port by number, or by the name that a container gives it.
std::string port_number(const Value& pod, std::string_view port) {
  for (const Value& container : pod["spec"]["containers"].items()) {
    for (const Value& one : container["ports"].items()) {
      if (one["name"].as_string() == port && !port.empty())
        return cat(one["containerPort"].as_int());
    }
  }
  return std::string(port);
}

bool is_ready(const Value& pod) {
  for (const Value& condition : pod["status"]["conditions"].items()) {
    if (condition["type"].as_string() == "Ready") return condition["status"].as_string() == "True";
  }
  return false;
}

bool matches(const Value& selector, const Value& labels) {
  for (const auto& [key, value] : selector.members()) {
    if (labels[key].as_string() != value.as_string()) return false;
  }
  return !selector.empty();
}

Error no_endpoints(std::string_view service) {
  return Error::unavailable(cat("no endpoints available for service ", quoted(service)));
}

}  // namespace

Result<StreamPlace> Subresources::proxied_node(Context& context) {
  const auto name = read_name(context.info.name);
  if (!name) return Error::bad_request(cat("invalid node request ", quoted(context.info.name)));
  auto node = objects_.get(*context.resource, "", name->name);
  if (!node.ok()) return not_found_error("", "nodes", name->name);
  StreamPlace out;
  DIBS_TRY(out.url, node_url(context, name->name));
  if (!name->port.empty()) {
    // Another port of the machine is none of the agent's.
    const auto colon = out.url.rfind(':');
    if (name->port != std::string_view(out.url).substr(colon + 1)) {
      if (!is_port(name->port))
        return Error::bad_request(cat("invalid node request ", quoted(context.info.name)));
      out.url = cat(name->scheme, out.url.substr(5, colon - 5), ":", name->port);
      out.to_node = false;
    }
  }
  // Agents of this process may listen on the loopback; nothing else there is for clients.
  if (!out.to_node || nodes_.own_host(name->name).empty()) out.reach = net::Reach::others;
  out.target = rest_of(context);
  return out;
}

/// The own server of a pod, wherever its status says that it is.
Result<StreamPlace> Subresources::place_in(const Context& context, const Value& pod,
                                           std::string_view scheme, std::string_view port) const {
  const std::string_view address = pod["status"]["podIP"].as_string();
  const auto nodes = context.resources->find("", "v1", "nodes");
  auto found = objects_.get(*nodes, "", pod["spec"]["nodeName"].as_string());
  const Value node = found.ok() ? std::move(found).value() : Value();
  const bool v6 = address.find(':') != std::string_view::npos;
  const std::string host = v6 ? cat("[", address, "]") : std::string(address);
  StreamPlace out{cat(scheme, "://", host, port.empty() ? "" : ":", port), rest_of(context)};
  out.to_node = false;
  out.reach = reach_of(address, node);
  if (out.reach == net::Reach::cluster && is_simulated(node)) {
    return Error::unavailable(cat("error trying to reach service: dial tcp ", host, ":",
                                  !port.empty()       ? port
                                  : scheme == "https" ? "443"
                                                      : "80",
                                  ": connect: connection refused"));
  }
  return out;
}

Result<StreamPlace> Subresources::proxied_pod(Context& context) {
  const auto name = read_name(context.info.name);
  if (!name) return Error::bad_request(cat("invalid pod request ", quoted(context.info.name)));
  DIBS_TRY(const Value pod, objects_.get(*context.resource, context.info.name_space, name->name));
  std::string port = port_number(pod, name->port);
  if (port.empty()) {
    const std::int64_t first = pod["spec"]["containers"][0]["ports"][0]["containerPort"].as_int();
    if (first > 0) port = cat(first);
  }
  if (pod["status"]["podIP"].as_string().empty()) return Error::bad_request("address not allowed");
  if (!port.empty() && !is_port(port))
    return Error::bad_request(cat("invalid pod request ", quoted(context.info.name)));
  return place_in(context, pod, name->scheme, port);
}

Result<StreamPlace> Subresources::proxied_service(Context& context) {
  const auto name = read_name(context.info.name);
  if (!name) return Error::bad_request(cat("invalid service request ", quoted(context.info.name)));
  const std::string& name_space = context.info.name_space;
  DIBS_TRY(const Value service, objects_.get(*context.resource, name_space, name->name));
  const Value& ports = service["spec"]["ports"];
  const Value* port = nullptr;
  for (const Value& one : ports.items()) {
    if ((name->port.empty() && ports.size() == 1) || one["name"].as_string() == name->port ||
        cat(one["port"].as_int()) == name->port) {
      port = &one;
      break;
    }
  }
  if (port == nullptr) {
    return Error::unavailable(
        cat("no service port ", quoted(name->port), " found for service ", quoted(name->name)));
  }
  const Value& wanted = (*port)["targetPort"];
  const auto pods = context.resources->find("", "v1", "pods");
  store::RangeQuery query;
  query.prefix = pods->namespace_prefix(name_space);
  DIBS_TRY(const store::Listing listing, objects_.store().range(query));
  for (const auto& record : listing.records) {
    DIBS_TRY(const Value pod, decode_stored(*record));
    if (!matches(service["spec"]["selector"], pod["metadata"]["labels"]) || !is_ready(pod))
      continue;
    if (pod["status"]["podIP"].as_string().empty()) continue;
    const std::string number = wanted.is_integer()  ? cat(wanted.as_int())
                               : wanted.is_string() ? port_number(pod, wanted.as_string())
                                                    : cat((*port)["port"].as_int());
    if (!is_port(number)) continue;  // a name that this pod does not have
    return place_in(context, pod, name->scheme, number);
  }
  return no_endpoints(name->name);
}

void Subresources::proxy(const std::shared_ptr<Context>& context,
                         const std::shared_ptr<net::Exchange>& exchange) {
  const auto fail = [&](const Error& error) { exchange->respond(status_response(error)); };
  if (auto admitted = admit_stream(objects_.admission(), *context); !admitted.ok()) {
    return fail(admitted.error());
  }
  const api::ProxyTarget target = context->resource->rules->proxied;
  auto place = target == api::ProxyTarget::node  ? proxied_node(*context)
               : target == api::ProxyTarget::pod ? proxied_pod(*context)
                                                 : proxied_service(*context);
  if (!place.ok()) return fail(place.error());
  if (net::has_token(context->request.headers.get("Connection"), "upgrade")) {
    return join_upgrade(nodes_, context->request, *place, exchange);
  }
  const std::string prefix = prefix_of(*context);
  const std::string& method = context->request.method;
  if ((method == "GET" || method == "HEAD") && is_at_root(*context, prefix)) {
    // Relative links of the page would lead beside it.
    net::Response moved;
    moved.status = 301;
    moved.headers.set("Location", cat(prefix, place->target));
    return exchange->respond(std::move(moved));
  }
  net::Request request = passed_on(context->request, place->target);
  request.headers.remove("Accept-Encoding");
  request.headers.remove("Connection");
  const ProxiedPage page = {prefix, place->url.substr(place->url.find("://") + 3),
                            std::string(context->request.headers.get("Host"))};
  nodes_.open(*place, request, *exchange, [exchange, page](Result<net::StreamAnswer> answer) {
    if (!answer.ok()) {
      const Error& error = answer.error();
      return exchange->respond(status_response(
          error.code() == Code::bad_request
              ? error
              : Error::unavailable(cat("error trying to reach service: ", error.message()))));
    }
    net::Response head = std::move(answer->head);
    head.headers.remove("Connection");
    std::shared_ptr<net::BodySource> body = std::move(answer->body);
    if (const auto location = head.headers.get("Location"); !location.empty()) {
      head.headers.set("Location", proxied_link(location, page));
    } else if (media_type(head.headers.get("Content-Type")) == "text/html" &&
               !head.headers.has("Content-Encoding")) {
      body = with_proxied_links(std::move(body), page);
      head.headers.remove("Content-Length");
    }
    relay(std::move(body), exchange->stream(std::move(head)));
  });
}

}  // namespace dibs::server
