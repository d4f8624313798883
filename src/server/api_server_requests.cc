#include <algorithm>
#include <charconv>

#include "base/strings.h"
#include "json/yaml.h"
#include "server/api_server_parts.h"
#include "server/authentication.h"
#include "server/headed_exchange.h"
#include "server/presenting.h"
#include "server/request_timeout.h"
#include "server/status.h"
#include "server/warnings.h"

namespace dibs::server {
namespace {

// Who does not heed Retry-After and asks again at once would keep the io threads busy with
// refusals.
constexpr Duration kRefusalDelay = std::chrono::milliseconds(250);

Response error_response(const Context& context, const Error& error) {
  if (context.request.takes_values) {
    Response response;
    response.status = http_status(error);
    response.value = status_value(error);
    return response;
  }
  Response response = status_response(error);
  auto answer = negotiate_answer(context.request, context.target, AnswerTo::one, forms_of(context));
  bool asks_yaml = media_type(context.request.headers.get("Accept")) == "application/yaml";
  if (answer.ok() ? answer->media == Media::yaml : asks_yaml) {
    response.body = json::write_yaml(status_value(error));
    response.headers.set("Content-Type", "application/yaml");
  } else if (answer.ok() && answer->media == Media::protobuf) {
    response.body = *to_protobuf(status_value(error));
    response.headers.set("Content-Type", kProtobuf);
  }
  if (error.code() != Code::forbidden) add_warnings(context.warnings, response.headers);
  return response;
}

/// As upstream's, which is no Status either.
Response too_many_requests() {
  net::Response response = text_response(429, "Too many requests, please try again later.\n");
  response.headers.add("Retry-After", "1");
  return response;
}

net::Response shutting_down(const Options& options) {
  if (!options.sends_retry_after) {
    return status_response(try_again_error("the server is shutting down"));
  }
  net::Response response =
      text_response(429, "The apiserver is shutting down, please try again later.\n");
  response.headers.add("Retry-After", "5");
  return response;
}

bool is_anonymous(const auth::UserInfo& user) {
  return user.name == auth::kAnonymous || user.in_group(auth::kUnauthenticated);
}

/// HTTP/2 lets one connection cost much: who is nobody gets one answer of it, as upstream has it.
std::unique_ptr<calls::Exchange> last(std::unique_ptr<calls::Exchange> exchange) {
  return headed(std::move(exchange), {{"Connection", "close"}});
}

}  // namespace

void ApiServer::handle(net::Request request, std::unique_ptr<net::Exchange> exchange) {
  handle(Request{std::move(request)}, calls::over_http(std::move(exchange)));
}

void ApiServer::handle(Request request, std::unique_ptr<calls::Exchange> exchange) {
  Parts& p = *parts_;
  auto context = std::make_shared<Context>();
  context->request = std::move(request);
  context->now = p.runtime.clock.now();
  context->trees = p.trees.get();
  if (p.closed) return exchange->respond(shutting_down(p.options));
  auto target = net::Target::parse(context->request.target);
  if (!target.ok()) return exchange->respond(text_response(400, "400 Bad Request\n"));
  context->target = std::move(target).value();
  if (auto answer = p.page.answer(context->request, context->target)) {
    // A browser that has the first file asks for the others by the same connection.
    if (context->request.peer.http2 && answer->status >= 400) exchange = last(std::move(exchange));
    return exchange->respond(*std::move(answer));
  }
  p.page.stand_in(context->request, p.options.front_proxies);
  context->info = parse_request_info(context->request.method, context->target);
  context->resources = p.resources.get();
  if (context->info.is_resource && context->info.resource == "watch" &&
      context->info.name.empty()) {
    exchange->respond(text_response(
        500, cat("Internal Server Error: ", quoted(context->info.path),
                 ": failed to create RequestInfo: unable to determine kind and namespace "
                 "from url, ",
                 context->info.path, "\n")));
    return;
  }

  p.admit(context, std::move(exchange));
}

void ApiServer::Parts::admit(const ContextPtr& context, std::unique_ptr<calls::Exchange> exchange,
                             bool looks_again) {
  // Rights that another server has given a moment ago count here, too, so nobody is turned away
  // before a second look.
  const auto again = [&](const std::function<void(calls::Exchange&)>& refuse) {
    if (!shared || looks_again) return refuse(*exchange);
    auto held = std::make_shared<std::unique_ptr<calls::Exchange>>(std::move(exchange));
    // Where nobody can be asked, what is known here decides.
    freshen(context, [this, context, held](const Result<>&) {
      access->catch_up();
      admit(context, std::move(*held), true);
    });
  };
  auto sender = access->authenticate(context->request);
  if (!sender.ok()) {
    if (!looks_again) {
      auto held = std::make_shared<std::unique_ptr<calls::Exchange>>(std::move(exchange));
      const auto go_on = [this, context, held] { admit(context, std::move(*held), true); };
      if (access->await_keys(context->request, go_on)) return;
      exchange = std::move(*held);
    }
    if (context->request.peer.http2) exchange = last(std::move(exchange));
    return again([&](calls::Exchange& to) { refuse_stranger(context, to, sender.error()); });
  }
  if (context->request.peer.http2 && is_anonymous(*sender)) exchange = last(std::move(exchange));
  if (auto allowed = allow(context, *sender); !allowed.ok()) {
    return again([&](calls::Exchange& to) { respond(context, to, allowed.error()); });
  }
  // Whoever the request is handed on to must not take them for this server's word.
  if (!is_inside(context->request)) {
    auth::clear_front_proxy_headers(context->request.headers, options.front_proxies);
  }
  dispatch(context, std::move(exchange));
}

Result<> ApiServer::Parts::allow(const ContextPtr& context, const auth::UserInfo& sender) {
  if (auditor && context->audit == nullptr &&
      (context->audit = auditor->begin(*context, &sender)) != nullptr) {
    context->audit->received();
  }
  DIBS_TRY(context->user, access->impersonate(context->request, sender));
  if (context->audit && context->request.headers.has("Impersonate-User")) {
    context->audit->impersonates(context->user);
  }
  if (Page::asks_for_code(context->info) && !is_anonymous(context->user)) return success();
  if (is_usage_path(context->info.path)) {
    // Who may list claims may know what they held.
    auth::RequestAttributes what;
    what.user = context->user;
    what.verb = "list";
    what.group = "resource.k8s.io";
    what.version = "v1";
    what.resource = "resourceclaims";
    what.name_space = std::string(context->target.get("namespace"));
    return access->authorize_for(*context, what);
  }
  return access->authorize_request(*context);
}

void ApiServer::Parts::freshen(const ContextPtr& context, std::function<void(Result<>)> go_on) {
  store.sync_async([this, context, go_on = std::move(go_on)](const Result<>& synced) {
    runtime.executor.post([context, go_on, synced] {
      if (synced.ok()) context->fresh = true;
      go_on(synced);
    });
  });
}

void ApiServer::Parts::freshen(const ContextPtr& context, const ExchangePtr& exchange,
                               std::function<void()> go_on) {
  freshen(context, [this, context, exchange, go_on = std::move(go_on)](const Result<>& synced) {
    if (!synced.ok()) return respond(context, *exchange, synced.error());
    go_on();
  });
}

bool ApiServer::Parts::is_unknown(const Context& context) const {
  const RequestInfo& info = context.info;
  return info.is_resource && !context.resources->find(info.group, info.version, info.resource);
}

void ApiServer::Parts::know_definitions(Context& context) {
  if (context.info.is_resource && !is_unknown(context)) return;
  definitions->look_again();
  context.resources = resources.get();
}

bool ApiServer::Parts::wants_newest(const Context& context) const {
  const RequestInfo& info = context.info;
  if (!info.is_resource) return info.path.starts_with("/api") || info.path.starts_with("/openapi");
  if (is_unknown(context)) return true;
  if (info.verb == "get" || info.verb == "list" || info.verb == "watch") {
    const auto version = context.target.get("resourceVersion");
    if (version.empty() || !context.target.get("continue").empty()) return true;
    store::Revision wanted = 0;
    std::from_chars(version.data(), version.data() + version.size(), wanted);
    return wanted > store.revision();
  }
  if (info.verb == "deletecollection" || info.subresource == "eviction" ||
      info.subresource == "token" || subresources->streams(context)) {
    return true;
  }
  const auto resource = context.resources->find(info.group, info.version, info.resource);
  const api::Question question = resource->rules->question;
  return question != api::Question::none && question != api::Question::binding;
}

void ApiServer::Parts::respond(const ContextPtr& context, calls::Exchange& exchange,
                               Result<Response> outcome) {
  Response response =
      outcome.ok() ? std::move(outcome).value() : error_response(*context, outcome.error());
  requests.count(*context, response.status, runtime.clock.now() - context->now);
  if (const auto entry = std::exchange(context->audit, nullptr)) {
    entry->answered(*context, response);
    response.headers.set("Audit-Id", entry->id());
  }
  exchange.answer(std::move(response));
  context->seat.reset();
}

void ApiServer::Parts::refuse_stranger(const ContextPtr& context, calls::Exchange& exchange,
                                       const Error& error) {
  Response response = error_response(*context, error);
  requests.count(*context, response.status, runtime.clock.now() - context->now);
  if (const auto entry = auditor ? auditor->begin(*context, nullptr) : nullptr) {
    entry->not_known(*context, response);
  }
  exchange.answer(std::move(response));
}

void ApiServer::Parts::dispatch(const ContextPtr& context,
                                std::unique_ptr<calls::Exchange> exchange) {
  const RequestInfo& info = context->info;
  Duration timeout{0};
  if (!is_long_running(info)) {
    auto asked = timeout_of(context->target, options.request_timeout);
    if (!asked.ok()) return respond(context, *exchange, std::move(asked).error());
    if (!is_inside(context->request)) timeout = *asked;
  }
  // Callers in the process share its fate, and their number is known.
  const bool own = context->request.peer.address == "in-process";
  Fairness::Flow flow;
  if (!own) {
    flow = fairness.flow_of(context->user, info);
    exchange = labelled(std::move(exchange), flow);
  }
  if (const auto extension = aggregator->current()->find_path(context->target.path)) {
    return pass_on(context, audited(std::move(exchange), context), extension, flow);
  }
  bool heavy = true;
  if (!info.is_resource) {
    heavy = info.path.starts_with("/openapi") || info.path.starts_with("/metrics") ||
            is_backup_path(info.path) || is_usage_path(info.path);
  } else {
    const auto resource = context->resources->find(info.group, info.version, info.resource);
    heavy = info.verb != "get" || !info.subresource.empty() || (resource && resource->conversion);
  }
  if (context->fresh) know_definitions(*context);
  const bool waits = shared && !context->fresh && wants_newest(*context);
  if (!heavy) {
    const auto read = [this, context](calls::Exchange& to) {
      auto reply = serve(*context);
      if (!reply.ok()) return respond(context, to, std::move(reply).error());
      respond(context, to, std::move(reply->response));
    };
    if (!waits) return read(*exchange);
    const ExchangePtr held = timed(std::move(exchange), runtime, timeout);
    return freshen(context, held, [this, context, held, read] {
      know_definitions(*context);
      read(*held);
    });
  }

  ExchangePtr held = audited(timed(std::move(exchange), runtime, timeout), context);
  const auto start = [this, context, held, waits](Fairness::Seat seat) {
    context->seat = std::move(seat);
    if (!waits) return runtime.executor.post([this, context, held] { work(context, held); });
    freshen(context, held, [this, context, held] {
      know_definitions(*context);
      work(context, held);
    });
  };
  if (is_exempt(*context)) return start(nullptr);
  const auto refuse = [this, context, held] { respond(context, *held, too_many_requests()); };
  take_turn(context, held, flow, seats_of(*context), start, [this, refuse] {
    if (closed) return refuse();
    runtime.timers.after(kRefusalDelay, refuse);
  });
}

void ApiServer::Parts::pass_on(const ContextPtr& context, const ExchangePtr& exchange,
                               const ExtensionPtr& to, const Fairness::Flow& flow) {
  // Nobody is to wait in line to be told that, nor to be kept waiting by those who are.
  if (!to->can_be_asked()) {
    return respond(context, *exchange, text_response(503, "service unavailable\n"));
  }
  const auto go = [this, context, exchange, to](Fairness::Seat seat) {
    context->seat = std::move(seat);
    aggregator->pass_on(context, exchange, *to, [this, context](net::Response& head) {
      requests.count(*context, head.status, runtime.clock.now() - context->now);
      if (context->audit) {
        head.headers.set("Audit-Id", context->audit->id());
        if (!context->audit->is_long()) {
          std::exchange(context->audit, nullptr)->answered(*context, head);
        }
      }
      context->seat.reset();
    });
  };
  if (is_exempt(*context)) return go(nullptr);
  // A server that cannot be reached gives the seat back at once, and with it the next one's turn.
  const auto start = [this, go](const Fairness::Seat& seat) {
    runtime.executor.post([go, seat] { go(seat); });
  };
  take_turn(context, exchange, flow, 1, start,
            [this, context, exchange] { respond(context, *exchange, too_many_requests()); });
}

void ApiServer::Parts::take_turn(const ContextPtr& context, const ExchangePtr& exchange,
                                 const Fairness::Flow& flow, unsigned seats,
                                 std::function<void(Fairness::Seat)> go,
                                 std::function<void()> refused) {
  struct Turn {
    std::atomic<bool> waits{false};
    std::atomic<bool> gone{false};
  };
  const auto turn = std::make_shared<Turn>();
  exchange->on_gone([turn] { turn->gone = true; });
  const auto start = [this, context, exchange, turn, go = std::move(go)](Fairness::Seat seat) {
    // Who has closed its side alone gets an answer that needs no waiting.
    if (!turn->waits || !turn->gone) return go(std::move(seat));
    respond(context, *exchange, too_many_requests());
    // Given back here, the seat would start the next within this one.
    runtime.executor.post([seat = std::move(seat)] {});
  };
  fairness.enter(flow, seats, start, std::move(refused));
  turn->waits = true;
}

bool ApiServer::Parts::is_exempt(const Context& context) {
  return context.request.peer.address == "in-process" || is_long_running(context.info);
}

/// One, and of what looks at a whole collection one for every hundred objects.
unsigned ApiServer::Parts::seats_of(const Context& context) const {
  constexpr std::size_t kObjects = 100;
  constexpr std::size_t kMost = 10;
  const RequestInfo& info = context.info;
  if (!info.is_resource || !info.name.empty()) return 1;
  if (info.verb == "watch") {
    const auto version = context.target.get("resourceVersion");
    const bool sends_all =
        version.empty() || version == "0" || query_flag(context.target, "sendInitialEvents");
    if (!sends_all) return 1;
  } else if (info.verb != "list" && info.verb != "deletecollection") {
    return 1;
  }
  const auto resource = context.resources->find(info.group, info.version, info.resource);
  if (!resource || resource->storage_prefix.empty()) return 1;
  std::size_t count = store.count(resource->namespace_prefix(info.name_space));
  const std::size_t limit =
      std::strtoull(std::string(context.target.get("limit")).c_str(), nullptr, 10);
  if (limit > 0) count = std::min(count, limit);
  return static_cast<unsigned>(
      std::clamp<std::size_t>((count + kObjects - 1) / kObjects, 1, kMost));
}

}  // namespace dibs::server
