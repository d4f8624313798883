// Subresources::reach_node: log, exec, attach, port-forward, proxy, up to the point where a node is
// needed.
#include <charconv>

#include "base/strings.h"
#include "server/plugins/admission_policies_bodies.h"
#include "server/status.h"
#include "server/subresources.h"

namespace dibs::server {
namespace {

std::string names_of(const Value& containers) {
  std::string out;
  for (const Value& container : containers.items())
    append(out, out.empty() ? "" : " ", container["name"].as_string());
  return out;
}

/// The containers to choose from, as messages list them.
std::string choices(const Value& pod) {
  std::string out = cat("[", names_of(pod["spec"]["containers"]), "]");
  if (std::string init = names_of(pod["spec"]["initContainers"]); !init.empty()) {
    append(out, " or one of the init containers: [", init, "]");
  }
  if (std::string debug = names_of(pod["spec"]["ephemeralContainers"]); !debug.empty()) {
    append(out, " or one of the ephemeral containers: [", debug, "]");
  }
  return out;
}

bool has_container(const Value& pod, std::string_view name) {
  for (std::string_view list : {"containers", "initContainers", "ephemeralContainers"}) {
    for (const Value& container : pod["spec"][list].items()) {
      if (container["name"].as_string() == name) return true;
    }
  }
  return false;
}

Result<std::string> choose_container(const Context& context, const Value& pod) {
  std::string name(context.target.get("container"));
  if (name.empty()) {
    if (pod["spec"]["containers"].size() == 1) return pod["spec"]["containers"][0]["name"].str();
    if (auto marked =
            pod["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"].as_string();
        !marked.empty()) {
      return std::string(marked);
    }
    return Error::bad_request(cat("a container name must be specified for pod ",
                                  pod["metadata"]["name"].as_string(),
                                  ", choose one of: ", choices(pod)));
  }
  if (!has_container(pod, name)) {
    return Error::bad_request(
        cat("container ", name, " is not valid for pod ", pod["metadata"]["name"].as_string()));
  }
  return name;
}

Result<> check_log_options(const Context& context) {
  api::FieldErrors errors;
  auto number = [&](std::string_view name) -> std::optional<std::int64_t> {
    if (!context.target.has(name)) return std::nullopt;
    auto text = context.target.get(name);
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  };
  if (auto tail = number("tailLines"); tail && *tail < 0) {
    errors.invalid(api::Path("tailLines"), *tail, "must be greater than or equal to 0");
  }
  if (auto limit = number("limitBytes"); limit && *limit < 1) {
    errors.invalid(api::Path("limitBytes"), *limit, "must be greater than 0");
  }
  bool seconds = context.target.has("sinceSeconds");
  if (seconds && context.target.has("sinceTime")) {
    errors.forbidden(api::Path(""),
                     "at most one of `sinceTime` or `sinceSeconds` may be specified");
  } else if (seconds && *number("sinceSeconds") < 1) {
    errors.invalid(api::Path("sinceSeconds"), *number("sinceSeconds"), "must be greater than 0");
  }
  if (!errors.empty()) return errors.to_error("PodLogOptions", "", context.info.name);
  return success();
}

}  // namespace

Result<net::Response> Subresources::reach_node(Context& context) {
  const Resource& resource = *context.resource;
  const std::string& what = context.info.subresource;
  if (what != "log") DIBS_CHECK(admit_stream(objects_.admission(), context));
  if (resource.plural != "pods") {
    DIBS_TRY(Value object, objects_.get(resource, context.info.name_space, context.info.name));
    return Error::unavailable(cat("no endpoints available for ", resource.singular, " ",
                                  quoted(object["metadata"]["name"].as_string())));
  }
  DIBS_TRY(Value pod, objects_.get(resource, context.info.name_space, context.info.name));
  if (what == "log") DIBS_CHECK(check_log_options(context));
  if (what != "portforward" && what != "proxy") {
    auto container = choose_container(context, pod);
    if (!container.ok()) return std::move(container).error();
  }
  std::string node_name(pod["spec"]["nodeName"].as_string());
  if (node_name.empty()) {
    if (what == "log") {
      net::Response empty;
      empty.status = 204;
      return empty;
    }
    return Error::bad_request(cat("pod ", context.info.name, " does not have a host assigned"));
  }
  auto nodes = context.resources->find("", "v1", "nodes");
  auto node = objects_.get(*nodes, "", node_name);
  // Upstream names the node but calls it a pod; clients only look at the code.
  if (!node.ok()) return not_found_error("", "pods", node_name);
  const Value& addresses = (*node)["status"]["addresses"];
  if (addresses.empty()) {
    return Error::plain("no preferred addresses found; known addresses: []");
  }
  std::string address;
  for (std::string_view type :
       {"Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"}) {
    for (const Value& candidate : addresses.items()) {
      if (address.empty() && candidate["type"].as_string() == type)
        address = candidate["address"].str();
    }
  }
  std::int64_t port = (*node)["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_int();
  return Error::internal(cat("Internal error occurred: error dialing backend: node ",
                             quoted(node_name), " at ", address, ":", port > 0 ? port : 10250,
                             " cannot be reached"));
}

}  // namespace dibs::server
