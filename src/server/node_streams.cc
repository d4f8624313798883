// Subresources::stream: log, exec, attach and port-forward, passed on to the node that has the pod.
//
// The node speaks the same protocols as the client (SPDY/3.1, WebSocket): after the upgrade the
// bytes of both are joined as they are.
#include <charconv>

#include "base/strings.h"
#include "server/authentication.h"
#include "server/list_options.h"
#include "server/node_client.h"
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
    // The annotation that marks a default is for kubectl, which names the container.
    if (pod["spec"]["containers"].size() == 1) return pod["spec"]["containers"][0]["name"].str();
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

/// A query of options that do not parse never gets to what they mean.
Result<> check_option_forms(const Context& context) {
  const net::Target& target = context.target;
  if (context.info.subresource == "log") {
    for (std::string_view name : {"sinceSeconds", "tailLines", "limitBytes"}) {
      if (!target.has(name) || target.get(name).empty()) continue;
      DIBS_CHECK(parse_query_number(target.get(name)));
    }
  } else if (context.info.subresource == "portforward") {
    for (const auto& [name, value] : target.query) {
      if (name != "ports") continue;
      for (std::string_view port : split(value, ',')) {
        if (!port.empty() && port.find_first_not_of("0123456789") == std::string_view::npos)
          continue;
        return Error::bad_request(cat("cannot convert to []int32: strconv.ParseUint: parsing ",
                                      quoted(port), ": invalid syntax"));
      }
    }
  }
  return success();
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

/// Go's spelling of a query, in the order of names.
class Query {
 public:
  void add(std::string_view name, std::string_view value) {
    append(text_, text_.empty() ? "?" : "&", name, "=", percent_encode(value));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string log_query(const net::Target& target) {
  Query out;
  for (std::string_view flag : {"follow", "limitBytes", "previous", "sinceSeconds", "sinceTime",
                                "stream", "tailLines", "timestamps"}) {
    if (!target.has(flag)) continue;
    const bool is_switch = flag == "follow" || flag == "previous" || flag == "timestamps";
    if (!is_switch) {
      out.add(flag, target.get(flag));
    } else if (query_flag(target, flag)) {
      out.add(flag, "true");
    }
  }
  return out.text();
}

std::string command_query(const net::Target& target) {
  Query out;
  for (const auto& [name, value] : target.query) {
    if (name == "command") out.add(name, value);
  }
  if (query_flag(target, "stderr")) out.add("error", "1");
  if (query_flag(target, "stdin")) out.add("input", "1");
  if (query_flag(target, "stdout")) out.add("output", "1");
  if (query_flag(target, "tty")) out.add("tty", "1");
  return out.text();
}

std::string port_query(const net::Target& target) {
  Query out;
  for (const auto& [name, value] : target.query) {
    if (name != "ports") continue;
    for (std::string_view port : split(value, ',')) out.add("port", port);
  }
  return out.text();
}

constexpr std::string_view kBase64Protocol = "base64.binary.k8s.io";

/// The first sub-protocol of the offer that a log can be sent by, "" where nothing is offered;
/// nothing where others alone are. A token may stand beside them.
std::optional<std::string> log_protocol(std::string_view offer) {
  bool others = false;
  for (std::string_view one : split(offer, ',')) {
    one = trim(one);
    if (one == "binary.k8s.io" || one == kBase64Protocol) return std::string(one);
    others = others || (!one.empty() && !one.starts_with(kTokenProtocol));
  }
  if (others) return std::nullopt;
  return "";
}

/// The body as messages. The first one is empty: it tells that the rest will follow.
void relay_messages(std::shared_ptr<net::BodySource> body,
                    const std::shared_ptr<net::WebSocket>& client, bool base64) {
  const auto send = [client, base64](std::string piece) {
    if (base64) return client->send_text(base64_encode(piece));
    client->send_binary(std::move(piece));
  };
  send("");
  client->on_drained([body] { body->hold(false); });
  const std::weak_ptr<net::BodySource> source = body;
  // Dropping the source ends the request to the node.
  client->start([](const std::string&, bool) {}, [body]() mutable { body = nullptr; });
  if (const auto begun = source.lock()) {
    begun->start(
        [source, client, send](std::string piece) {
          send(std::move(piece));
          const auto alive = source.lock();
          if (alive == nullptr || client->queued() <= kMaxQueued) return;
          alive->hold(true);
          // It may have drained meanwhile, with nobody left to tell.
          if (client->queued() == 0) alive->hold(false);
        },
        [client](bool whole) { client->close(whole ? 1000 : 1011, ""); });
  }
}

/// A node's answer that is not what was asked for, as an error of the log's request.
Error log_error(const Context& context, int status, const std::string& text) {
  if (status == 400) return Error::bad_request(text);
  if (status == 500) return Error::internal(cat("Internal error occurred: ", text));
  if (status == 404) {
    ErrorDetails details;
    details.name = context.info.name;
    details.kind = "pods/log";
    details.causes.push_back({"UnexpectedServerResponse", text, ""});
    return Error(
        Code::not_found,
        cat("the server could not find the requested resource ( pods/log ", context.info.name, ")"),
        std::move(details));
  }
  return Error::plain(text);
}

void pass_log_error(const std::shared_ptr<Context>& context, net::StreamAnswer answer,
                    const std::shared_ptr<net::Exchange>& exchange) {
  net::read_whole(
      std::move(answer.body), kMaxNodeError, kNodeTimeout,
      [context, exchange, status = answer.head.status](const Result<std::string>& text) {
        exchange->respond(status_response(text.ok() ? log_error(*context, status, *text)
                                                    : Error::plain(text.error().message())));
      });
}

}  // namespace

Result<std::optional<StreamPlace>> Subresources::locate(Context& context) {
  const Resource& resource = *context.resource;
  const std::string& what = context.info.subresource;
  DIBS_CHECK(check_option_forms(context));
  if (what != "log") DIBS_CHECK(admit_stream(objects_.admission(), context));
  DIBS_TRY(Value pod, objects_.get(resource, context.info.name_space, context.info.name));
  if (what == "log") DIBS_CHECK(check_log_options(context));
  std::string container;
  if (what != "portforward") {
    auto chosen = choose_container(context, pod);
    if (!chosen.ok()) return std::move(chosen).error();
    container = percent_encode(*chosen);
  }
  std::string node_name(pod["spec"]["nodeName"].as_string());
  if (node_name.empty()) {
    if (what == "log") return std::optional<StreamPlace>();
    return Error::bad_request(cat("pod ", context.info.name, " does not have a host assigned"));
  }
  StreamPlace out;
  DIBS_TRY(out.url, node_url(context, node_name));
  const std::string pod_path =
      cat(percent_encode(context.info.name_space), "/", percent_encode(context.info.name));
  if (what == "log") {
    out.target = cat("/containerLogs/", pod_path, "/", container, log_query(context.target));
    out.unchecked = query_flag(context.target, "insecureSkipTLSVerifyBackend");
  } else if (what == "portforward") {
    out.target = cat("/portForward/", pod_path, port_query(context.target));
  } else {
    out.target = cat("/", what, "/", pod_path, "/", container, command_query(context.target));
  }
  return std::optional<StreamPlace>(std::move(out));
}

Result<std::string> Subresources::node_url(const Context& context, const std::string& name) {
  auto nodes = context.resources->find("", "v1", "nodes");
  auto node = objects_.get(*nodes, "", name);
  // Upstream names the node but calls it a pod; clients only look at the code.
  if (!node.ok()) return not_found_error("", "pods", name);
  return nodes_.url_of(*node);
}

void Subresources::stream(const std::shared_ptr<Context>& context,
                          const std::shared_ptr<net::Exchange>& exchange) {
  const auto fail = [&](const Error& error) { exchange->respond(status_response(error)); };
  const std::string& what = context->info.subresource;
  if (what == "proxy") return proxy(context, exchange);
  if (what != "log" && net::is_websocket_upgrade(context->request)) {
    if (auto allowed = authorize_websocket(*context); !allowed.ok()) return fail(allowed.error());
  }
  auto place = locate(*context);
  if (!place.ok()) return fail(place.error());
  if (!*place) {
    net::Response empty;
    empty.status = 204;
    return exchange->respond(std::move(empty));
  }
  if (what == "log") return stream_log(context, **place, exchange);
  join_upgrade(nodes_, context->request, **place, exchange);
}

Result<> Subresources::authorize_websocket(const Context& context) {
  // A handshake is a GET; what it opens is as much as a POST of the same would be. Releases before
  // 1.35 did not mind.
  constexpr int kFirstToMind = 35;
  if (context.info.verb != "get") return success();
  if (context.resource->features && context.resource->features->minor() < kFirstToMind) {
    return success();
  }
  return access_.authorize_creation(context);
}

void Subresources::stream_log(const std::shared_ptr<Context>& context, const StreamPlace& place,
                              const std::shared_ptr<net::Exchange>& exchange) {
  net::Request request;
  request.method = "GET";
  request.target = place.target;
  request.headers.add("User-Agent", "dibs-apiserver");
  std::optional<std::string> protocol;
  if (net::is_websocket_upgrade(context->request)) {
    const auto offer = context->request.headers.get("Sec-WebSocket-Protocol");
    protocol = log_protocol(offer);
    if (!protocol) {
      return exchange->respond(status_response(Error::bad_request(
          cat("a log is sent by binary.k8s.io or ", kBase64Protocol, ", not by ", offer))));
    }
  }
  nodes_.open(place, request, *exchange,
              [context, exchange, protocol,
               what = cat(place.url, place.target)](Result<net::StreamAnswer> answer) {
                if (!answer.ok()) {
                  return exchange->respond(status_response(
                      Error::plain(cat("Get ", quoted(what), ": ", answer.error().message()))));
                }
                if (answer->head.status != 200) {
                  return pass_log_error(context, std::move(answer).value(), exchange);
                }
                if (protocol) {
                  return exchange->upgrade(
                      *protocol,
                      [body = std::move(answer->body), base64 = *protocol == kBase64Protocol](
                          const std::shared_ptr<net::WebSocket>& client) {
                        if (client != nullptr) relay_messages(body, client, base64);
                      });
                }
                net::Response head;
                head.headers.add("Content-Type", "text/plain");
                relay(std::move(answer->body), exchange->stream(std::move(head)));
              });
}

}  // namespace dibs::server
