#include "server/api_server.h"

#include <algorithm>
#include <charconv>
#include <thread>

#include "api/schema/builtin.h"
#include "base/log.h"
#include "base/strings.h"
#include "json/yaml.h"
#include "server/access.h"
#include "server/admission.h"
#include "server/audit.h"
#include "server/authentication.h"
#include "server/backup.h"
#include "server/bootstrap.h"
#include "server/builtin_resources.h"
#include "server/definitions.h"
#include "server/event_expiry.h"
#include "server/fairness.h"
#include "server/node_client.h"
#include "server/objects.h"
#include "server/pieces.h"
#include "server/plugins/plugins.h"
#include "server/presenting.h"
#include "server/reading.h"
#include "server/request_metrics.h"
#include "server/reviews.h"
#include "server/routes.h"
#include "server/server_leases.h"
#include "server/status.h"
#include "server/subresources.h"
#include "server/warnings.h"
#include "server/watching.h"
#include "server/writing.h"

namespace dibs::server {

using ContextPtr = std::shared_ptr<Context>;
using ExchangePtr = std::shared_ptr<calls::Exchange>;
using ReplyPtr = std::shared_ptr<const Reply>;

struct ApiServer::Parts {
  Parts(runtime::Runtime& runtime, store::Store& store, Options options)
      : runtime(runtime),
        store(store),
        shared(store.shared()),
        options(std::move(options)),
        requests(metrics),
        fairness(runtime, metrics, this->options.seats),
        pieces(runtime.executor, std::max(1U, std::thread::hardware_concurrency() / 2)),
        objects(runtime, store, admission),
        backups(store),
        watches(runtime, store) {}

  runtime::Runtime& runtime;
  store::Store& store;
  const bool shared;
  Options options;
  metrics::Registry metrics;
  const std::shared_ptr<json::Pool> trees = std::make_shared<json::Pool>();
  std::unique_ptr<Auditor> auditor;  // null: nothing is audited. Outlives whatever holds an entry
  RequestMetrics requests;
  Fairness fairness;
  Turns pieces;
  ResourceTable resources;
  AdmissionChain admission;
  Objects objects;
  Backups backups;
  Watches watches;
  std::unique_ptr<Access> access;
  std::unique_ptr<Definitions> definitions;
  std::unique_ptr<Routes> routes;
  std::unique_ptr<NodeClient> nodes;
  std::unique_ptr<Subresources> subresources;
  std::unique_ptr<Reviews> reviews;
  std::unique_ptr<EventExpiry> expiry;
  std::unique_ptr<ServerLeases> leases;
  std::atomic<bool> leaving{false};
  std::atomic<bool> closed{false};

  /// Makes out who asks, and whether he may.
  void admit(const ContextPtr& context, std::unique_ptr<calls::Exchange> exchange,
             bool looks_again = false);
  /// Errors: forbidden.
  Result<> allow(const ContextPtr& context, const auth::UserInfo& sender);
  void dispatch(const ContextPtr& context, std::unique_ptr<calls::Exchange> exchange);
  /// Calls, on the executor, when what is in memory is as new as the request, or cannot get there.
  void freshen(const ContextPtr& context, std::function<void(Result<>)> go_on);
  /// The same; the request is refused where it cannot.
  void freshen(const ContextPtr& context, const ExchangePtr& exchange, std::function<void()> go_on);
  /// Whether the request asks for what is newest before anything is decided. A write does not: it
  /// is judged when it is refused, or by the store.
  bool wants_newest(const Context& context) const;
  bool is_unknown(const Context& context) const;
  /// Serves what others have defined meanwhile, where the request is about it.
  void know_definitions(Context& context);
  /// On a thread that may block.
  void work(const ContextPtr& context, const ExchangePtr& exchange);
  static bool is_exempt(const Context& context);
  unsigned seats_of(const Context& context) const;
  Result<Reply> serve(Context& context);
  /// Of what has no write to be driven.
  Result<Response> serve_at_once(Context& context);
  /// Serves a request that may write, and answers it.
  void answer(const ContextPtr& context, const ExchangePtr& exchange);
  /// Takes a write to its end (write.h) and answers it; nobody waits for the disk.
  void drive(const ContextPtr& context, const ExchangePtr& exchange, const ReplyPtr& reply,
             int tries = 0);
  void settle(const ContextPtr& context, const ExchangePtr& exchange, const ReplyPtr& reply,
              const Result<store::Revision>& revision);
  Result<ResourcePtr> find_resource(const Context& context) const;
  Result<> check_verb(const Context& context, const Resource& resource) const;
  void respond(const ContextPtr& context, calls::Exchange& exchange, Result<Response> outcome);
  /// Answers somebody who could not be made out.
  void refuse_stranger(const ContextPtr& context, calls::Exchange& exchange, const Error& error);
};

namespace {

/// Anybody may ask whether the server is ready; where its etcd is, the log tells.
Result<> state_of(const store::Store& store) {
  if (store.health().ok()) return success();
  return Error::unavailable("the store takes no writes; the log says why");
}

// A refusal that will not hold is looked at again, for a second in all.
constexpr Duration kLaterDelay = std::chrono::milliseconds(50);
constexpr int kLaterTries = 20;

// Who does not heed Retry-After and asks again at once would keep the io threads busy with
// refusals.
constexpr Duration kRefusalDelay = std::chrono::milliseconds(250);

Response not_found_page() { return text_response(404, "404 page not found\n"); }

Response error_response(const Context& context, const Error& error) {
  if (context.request.takes_values) {
    Response response;
    response.status = http_status(error.code());
    response.value = status_value(error);
    return response;
  }
  Response response = status_response(error);
  auto answer = negotiate_answer(context.request, context.target, AnswerTo::one);
  bool asks_yaml = media_type(context.request.headers.get("Accept")) == "application/yaml";
  if (answer.ok() ? answer->media == Media::yaml : asks_yaml) {
    response.body = json::write_yaml(status_value(error));
    response.headers.set("Content-Type", "application/yaml");
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

AnswerTo answer_to(const RequestInfo& info) {
  if (info.verb == "watch") return AnswerTo::watch;
  if (info.verb == "list" || info.verb == "deletecollection") return AnswerTo::list;
  return AnswerTo::one;
}

/// Metadata of one object was asked of a list, or the other way round.
Result<> check_form(const Context& context, const Resource& resource) {
  bool list = answer_to(context.info) == AnswerTo::list;
  Form form = context.answer.form;
  if (form != Form::metadata && form != Form::metadata_list) return success();
  if ((form == Form::metadata_list) == list) return success();
  std::string group =
      resource.group.empty() ? "core" : resource.group.substr(0, resource.group.find('.'));
  return Error(
      Code::not_acceptable,
      list ? cat("you requested PartialObjectMetadata, but the requested object is a list (*",
                 group, ".", resource.list_kind, ")")
           : cat("you requested PartialObjectMetadataList, but the requested object is not a list "
                 "(*",
                 group, ".", resource.kind, ")"));
}

bool contains(const std::vector<std::string>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

}  // namespace

ApiServer::ApiServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

ApiServer::~ApiServer() { close(); }

Result<std::unique_ptr<ApiServer>> ApiServer::open(runtime::Runtime& runtime, store::Store& store,
                                                   Options options) {
  DIBS_CHECK(check_whole(store));
  auto parts = std::make_unique<Parts>(runtime, store, std::move(options));
  Parts& p = *parts;
  DIBS_CHECK(store.sync());
  DIBS_TRY(auto builtin, builtin_resources(p.options));
  if (!builtin.empty()) {
    auto gates = p.metrics.gauge("kubernetes_feature_enabled",
                                 "Feature gates of this server, 1 for those that are on.",
                                 {"name", "stage"});
    for (const auto& gate : builtin.front()->features->all())
      gates.with({gate.name, gate.stage}).set(gate.on ? 1 : 0);
  }
  p.definitions =
      std::make_unique<Definitions>(runtime, store, p.objects, p.resources, std::move(builtin));
  p.definitions->on_end([&p](const std::string& prefix) { p.watches.end(prefix); });
  DIBS_CHECK(p.definitions->load());
  DIBS_TRY(p.auditor, Auditor::open(p.options, runtime, p.metrics));
  DIBS_TRY(p.access, Access::open(runtime, p.objects, p.resources, p.options));
  add_admission_plugins(p.admission,
                        {runtime, store, p.objects, p.resources, *p.access, p.options, p.metrics});
  DIBS_CHECK(p.admission.choose(p.options.enabled_plugins, p.options.disabled_plugins));
  DIBS_TRY(p.nodes, NodeClient::open(p.options));
  p.subresources = std::make_unique<Subresources>(p.objects, p.resources, *p.access, *p.nodes);
  p.reviews = std::make_unique<Reviews>(*p.access);
  p.routes = std::make_unique<Routes>(Routes::Sources{
      &p.options, &p.metrics, [&p] { return state_of(p.store); }, [&p] { return p.store.room(); },
      [&p] { return p.access->jwks(); }, [&p] { return p.leaving.load(); }});
  p.metrics.gauge_function("dibs_store_full", "1 while the disk is full: only deletions are taken.",
                           [&p] { return p.store.room().ok() ? 0.0 : 1.0; });
  p.metrics.gauge_function("apiserver_registered_watchers", "Watches that are open now.",
                           [&p] { return static_cast<double>(p.watches.count()); });
  p.metrics.gauge_function("dibs_own_requests_refused",
                           "Requests of parts of this process that were refused.",
                           [&p] { return static_cast<double>(p.access->own_refusals()); });
  DIBS_CHECK(write_bootstrap_objects(runtime, p.objects, p.resources, p.options));
  DIBS_CHECK(p.access->load());
  p.leases = std::make_unique<ServerLeases>(runtime, store, p.resources, p.options);
  DIBS_CHECK(p.leases->start());
  // From here on nothing can fail: what they have posted must find them.
  p.definitions->start();
  if (!store.expires()) p.expiry = std::make_unique<EventExpiry>(runtime, store, p.resources);
  return std::unique_ptr<ApiServer>(new ApiServer(std::move(parts)));
}

calls::Handler ApiServer::handler() {
  return [this](Request request, std::unique_ptr<calls::Exchange> exchange) {
    handle(std::move(request), std::move(exchange));
  };
}

metrics::Registry& ApiServer::metrics() { return parts_->metrics; }
std::shared_ptr<json::Pool> ApiServer::trees() const { return parts_->trees; }

void ApiServer::retire() {
  if (parts_->leaving.exchange(true)) return;
  parts_->leases->stop();
}

void ApiServer::close() {
  if (parts_->closed.exchange(true)) return;
  parts_->leases->stop();
  parts_->watches.close();
  parts_->nodes->close();
  if (parts_->expiry) parts_->expiry->stop();
  parts_->fairness.stop();
  parts_->definitions->stop();
  parts_->access->stop();
}

Result<> ApiServer::set_node_client(const std::string& certificate_pem,
                                    const std::string& key_pem) {
  return parts_->nodes->set_certificate(certificate_pem, key_pem);
}

void ApiServer::handle(net::Request request, std::unique_ptr<net::Exchange> exchange) {
  handle(Request{std::move(request)}, calls::over_http(std::move(exchange)));
}

void ApiServer::handle(Request request, std::unique_ptr<calls::Exchange> exchange) {
  Parts& p = *parts_;
  auto context = std::make_shared<Context>();
  context->request = std::move(request);
  context->now = p.runtime.clock.now();
  context->trees = p.trees.get();
  if (p.closed)
    return exchange->respond(status_response(try_again_error("the server is shutting down")));
  auto target = net::Target::parse(context->request.target);
  if (!target.ok()) return exchange->respond(text_response(400, "400 Bad Request\n"));
  context->target = std::move(target).value();
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
    return again([&](calls::Exchange& to) { refuse_stranger(context, to, sender.error()); });
  }
  if (auto allowed = allow(context, *sender); !allowed.ok()) {
    return again([&](calls::Exchange& to) { respond(context, to, allowed.error()); });
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
  bool heavy = true;
  if (!info.is_resource) {
    heavy = info.path.starts_with("/openapi") || info.path.starts_with("/metrics") ||
            is_backup_path(info.path);
  } else {
    heavy = info.verb != "get" || !info.subresource.empty();
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
    const ExchangePtr held = std::move(exchange);
    return freshen(context, held, [this, context, held, read] {
      know_definitions(*context);
      read(*held);
    });
  }

  ExchangePtr held = audited(std::move(exchange), context);
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
  fairness.enter(flow_of(context->user, info), seats_of(*context), start, [this, refuse] {
    if (closed) return refuse();
    runtime.timers.after(kRefusalDelay, refuse);
  });
}

/// Callers in the process share its fate, and their number is known.
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
  if (!resource) return 1;
  std::size_t count = store.count(resource->namespace_prefix(info.name_space));
  const std::size_t limit =
      std::strtoull(std::string(context.target.get("limit")).c_str(), nullptr, 10);
  if (limit > 0) count = std::min(count, limit);
  return static_cast<unsigned>(
      std::clamp<std::size_t>((count + kObjects - 1) / kObjects, 1, kMost));
}

void ApiServer::Parts::work(const ContextPtr& context, const ExchangePtr& shared) {
  if (context->info.verb == "watch" && context->info.is_resource) {
    auto resource = find_resource(*context);
    if (!resource.ok()) return respond(context, *shared, std::move(resource).error());
    if (!*resource) return respond(context, *shared, not_found_page());
    context->resource = *resource;
    if (auto allowed = check_verb(*context, **resource); !allowed.ok()) {
      return respond(context, *shared, std::move(allowed).error());
    }
    if (!(*resource)->deprecation.empty()) context->warn((*resource)->deprecation);
    auto answer = negotiate_answer(context->request, context->target, AnswerTo::watch,
                                   (*resource)->two_models);
    if (!answer.ok()) return respond(context, *shared, std::move(answer).error());
    context->answer = *answer;
    return watches.open(context, shared);
  }
  if (subresources->streams(*context)) {
    auto resource = find_resource(*context);
    if (resource.ok() && *resource) {
      context->resource = *resource;
      if (auto allowed = check_verb(*context, **resource); !allowed.ok()) {
        return respond(context, *shared, std::move(allowed).error());
      }
      return subresources->stream(context, shared);
    }
  }
  answer(context, shared);
}

void ApiServer::Parts::answer(const ContextPtr& context, const ExchangePtr& exchange) {
  auto reply = serve(*context);
  if (!reply.ok()) return respond(context, *exchange, std::move(reply).error());
  if (reply->pieces) {
    requests.count(*context, reply->response.status, runtime.clock.now() - context->now);
    if (const auto entry = std::exchange(context->audit, nullptr)) {
      if (entry->wants_body()) entry->leave_out_bodies();
      entry->answered(*context, reply->response);
      reply->response.headers.set("Audit-Id", entry->id());
    }
    // Who reads slowly must not keep others from their seats.
    context->seat.reset();
    return send_pieces(pieces, context->user.name,
                       exchange->stream(std::move(reply->response).take_http()),
                       std::move(reply->pieces), context);
  }
  if (reply->many) {
    return reply->many->run(
        [this, context, exchange, answer = reply->answer_to_many](const Result<>& done) {
          respond(context, *exchange, done.ok() ? answer() : Result<Response>(done.error()));
        });
  }
  if (!reply->write) return respond(context, *exchange, std::move(reply->response));
  drive(context, exchange, std::make_shared<const Reply>(std::move(reply).value()));
}

void ApiServer::Parts::drive(const ContextPtr& context, const ExchangePtr& exchange,
                             const ReplyPtr& reply, int tries) {
  Write& write = *reply->write;
  if (auto free = backups.may_write(); !free.ok()) {
    return respond(context, *exchange, std::move(free).error());
  }
  auto prepared = objects.prepare(write);
  if (!objects.is_final(write, prepared)) {
    return freshen(context, exchange, [this, context, exchange, reply, tries] {
      access->catch_up();
      drive(context, exchange, reply, tries);
    });
  }
  if (!prepared.ok()) {
    if (!write.is_refused_for_now() || tries == kLaterTries || closed)
      return respond(context, *exchange, std::move(prepared).error());
    runtime.timers.after(kLaterDelay, [this, context, exchange, reply, tries] {
      drive(context, exchange, reply, tries + 1);
    });
    return;
  }
  if (!write.op) return respond(context, *exchange, reply->answered());
  store.commit_async(write.transaction(), [this, context, exchange, reply](const auto& revision) {
    // The store's writer answers in passing where that is a copy; all else is for another thread.
    if (revision.ok() && reply->is_quick()) return settle(context, exchange, reply, revision);
    runtime.executor.post(
        [this, context, exchange, reply, revision] { settle(context, exchange, reply, revision); });
  });
}

void ApiServer::Parts::settle(const ContextPtr& context, const ExchangePtr& exchange,
                              const ReplyPtr& reply, const Result<store::Revision>& revision) {
  auto over = objects.settle(*reply->write, revision);
  if (!over.ok()) return respond(context, *exchange, std::move(over).error());
  if (!*over) return drive(context, exchange, reply);
  respond(context, *exchange, reply->answered());
}

Result<ResourcePtr> ApiServer::Parts::find_resource(const Context& context) const {
  const RequestInfo& info = context.info;
  const ResourceSet& set = *context.resources;
  auto resource = set.find(info.group, info.version, info.resource);
  if (resource) {
    if (!resource->namespaced && info.in_namespace) return unknown_resource_error();
    if (resource->namespaced && info.name_space.empty() && !info.name.empty())
      return unknown_resource_error();
    return resource;
  }
  const api::GroupInfo* group = set.catalog.group(info.group);
  if (!group || (group->custom && !group->version(info.version))) return ResourcePtr();
  return unknown_resource_error();
}

Result<> ApiServer::Parts::check_verb(const Context& context, const Resource& resource) const {
  const RequestInfo& info = context.info;
  static constexpr std::string_view kMethods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
  const std::string& method = context.request.method;
  if (std::find(std::begin(kMethods), std::end(kMethods), method) == std::end(kMethods)) {
    return method_not_allowed_error();
  }
  if (info.legacy_watch && method != "GET") return method_not_allowed_error();
  if (!info.rest.empty() && info.subresource != "proxy") return unknown_resource_error();
  if (!info.subresource.empty()) {
    const api::SubresourceInfo* sub = resource.subresource(info.subresource);
    if (!sub) {
      if (resource.custom) return not_found_error(resource.group, resource.plural, info.name);
      return unknown_resource_error();
    }
    if (!contains(sub->verbs, info.verb)) return method_not_allowed_error();
    return success();
  }
  bool named = !info.name.empty();
  if (info.verb == "create" && (named || (resource.namespaced && info.name_space.empty()))) {
    return method_not_allowed_error();
  }
  if ((info.verb == "update" || info.verb == "patch") && !named) return method_not_allowed_error();
  if (info.verb == "deletecollection" && resource.namespaced && info.name_space.empty()) {
    return method_not_allowed_error();
  }
  if (resource.verbs.size() == 1 && named)
    return unknown_resource_error();  // reviews have no objects
  if (!resource.has_verb(info.verb)) return method_not_allowed_error();
  return success();
}

Result<Reply> ApiServer::Parts::serve(Context& context) {
  const RequestInfo& info = context.info;
  if (!info.is_resource) {
    if (auto answer = negotiate_answer(context.request, context.target, AnswerTo::one);
        answer.ok()) {
      context.answer = *answer;
    }
    if (is_backup_path(info.path)) return backups.handle(context);
    return Reply(routes->handle(context));
  }
  DIBS_TRY(context.resource, find_resource(context));
  if (!context.resource) return Reply(not_found_page());
  const Resource& resource = *context.resource;
  if (!resource.deprecation.empty()) context.warn(resource.deprecation);
  DIBS_CHECK(check_verb(context, resource));
  DIBS_TRY(context.answer,
           negotiate_answer(context.request, context.target, answer_to(info), resource.two_models));
  DIBS_CHECK(check_form(context, resource));
  const api::Question question = resource.rules->question;
  if (question == api::Question::binding) return subresources->handle(context);
  if (question == api::Question::none) {
    if (!info.subresource.empty() && subresources->handles(context))
      return subresources->handle(context);
    if (info.verb == "create") return handle_create(context);
    if (info.verb == "update") return handle_update(context, *access);
    if (info.verb == "patch") return handle_patch(context, *access);
    if (info.verb == "delete") return handle_delete(context);
    if (info.verb == "deletecollection") {
      DIBS_CHECK(backups.may_write());
      return handle_delete_collection(context, objects);
    }
    if (info.verb == "list") {
      DIBS_TRY(ListAnswer list, handle_list(context, objects));
      Reply reply(std::move(list.response));
      reply.pieces = std::move(list.pieces);
      return reply;
    }
  }
  DIBS_TRY(Response response, serve_at_once(context));
  return Reply(std::move(response));
}

Result<Response> ApiServer::Parts::serve_at_once(Context& context) {
  const std::string& verb = context.info.verb;
  if (context.resource->rules->question != api::Question::none) return reviews->handle(context);
  if (verb == "get") return handle_get(context, objects);
  return method_not_allowed_error();
}

}  // namespace dibs::server
