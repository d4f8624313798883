#include <algorithm>

#include "base/strings.h"
#include "server/api_server_parts.h"
#include "server/presenting.h"
#include "server/reading.h"
#include "server/status.h"
#include "server/writing.h"

namespace dibs::server {
namespace {

// A refusal that will not hold is looked at again, for a second in all.
constexpr Duration kLaterDelay = std::chrono::milliseconds(50);
constexpr int kLaterTries = 20;

Response not_found_page() { return text_response(404, "404 page not found\n"); }

AnswerTo answer_to(const RequestInfo& info) {
  if (info.verb == "watch") return AnswerTo::watch;
  if (info.verb == "list" || info.verb == "deletecollection") return AnswerTo::list;
  return AnswerTo::one;
}

/// Metadata of one object was asked of a list, or the other way round; or a table with rows of
/// nobody knows what.
Result<> check_form(const Context& context, const Resource& resource) {
  bool list = answer_to(context.info) == AnswerTo::list;
  Form form = context.answer.form;
  const auto include = context.target.get("includeObject");
  if (form == Form::table && !include.empty() && include != "Metadata" && include != "Object" &&
      include != "None") {
    return Error::bad_request(cat(
        "Unable to convert to Table as requested: includeObject: Invalid value: ", quoted(include),
        ": must be 'Metadata', 'Object', 'None', or empty"));
  }
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

Forms forms_of(const Context& context) {
  Forms forms;
  if (!context.resource) return forms;
  const Resource& resource = *context.resource;
  forms.stored = resource.two_models;
  forms.protobuf = !resource.custom;
  forms.strict = true;
  forms.table = resource.rules->question == api::Question::none;
  return forms;
}

void ApiServer::Parts::work(const ContextPtr& context, const ExchangePtr& shared) {
  const RequestInfo& info = context->info;
  const auto asked = context->resources->find(info.group, info.version, info.resource);
  // Whoever else has that level is not to wait for somebody's webhook.
  // Lists and watches know when they have to (served_to()).
  const bool knows = info.verb == "list" || info.verb == "watch";
  if (asked && asked->calls_out() && !knows) context->seat.reset();
  if (context->info.verb == "watch" && context->info.is_resource) {
    auto resource = find_resource(*context);
    if (!resource.ok()) return respond(context, *shared, std::move(resource).error());
    if (!*resource) return respond(context, *shared, not_found_page());
    context->resource = *resource;
    if (auto allowed = check_verb(*context, **resource); !allowed.ok()) {
      return respond(context, *shared, std::move(allowed).error());
    }
    if (!(*resource)->deprecation.empty()) context->warn((*resource)->deprecation);
    auto answer =
        negotiate_answer(context->request, context->target, AnswerTo::watch, forms_of(*context));
    if (!answer.ok()) return respond(context, *shared, std::move(answer).error());
    context->answer = *answer;
    if (auto form = check_form(*context, **resource); !form.ok())
      return respond(context, *shared, std::move(form).error());
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
    return send_pieces(runtime, pieces, context->user.name,
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
  const auto in_turn = [this, context, exchange, reply] {
    runtime.executor.post(
        [this, context, exchange, reply] { commit(context, exchange, reply, nullptr); });
  };
  commit(context, exchange, reply, in_turn);
}

void ApiServer::Parts::commit(const ContextPtr& context, const ExchangePtr& exchange,
                              const ReplyPtr& reply, const std::function<void()>& in_turn) {
  Write& write = *reply->write;
  const auto charged = objects.charge(write, in_turn);
  if (!charged.ok()) {
    if (objects.is_final(write, charged.error()))
      return respond(context, *exchange, charged.error());
    return freshen(context, exchange,
                   [this, context, exchange, reply] { drive(context, exchange, reply); });
  }
  if (!*charged) return;
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
  // What a server behind a proxy makes of these is its own business.
  const bool passed_on = info.subresource == "proxy" && (method == "OPTIONS" || method == "HEAD");
  if (!passed_on &&
      std::find(std::begin(kMethods), std::end(kMethods), method) == std::end(kMethods)) {
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
    if (!passed_on && !contains(sub->verbs, info.verb)) return method_not_allowed_error();
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
    if (Page::asks_for_code(info)) {
      DIBS_TRY(Response response, page.make_code(context));
      return Reply(std::move(response));
    }
    if (is_usage_path(info.path)) {
      DIBS_TRY(Response response, answer_usage(context));
      return Reply(std::move(response));
    }
    return Reply(routes->handle(context));
  }
  DIBS_TRY(context.resource, find_resource(context));
  if (!context.resource) return Reply(not_found_page());
  const Resource& resource = *context.resource;
  if (!resource.deprecation.empty()) context.warn(resource.deprecation);
  DIBS_CHECK(check_verb(context, resource));
  DIBS_TRY(context.answer,
           negotiate_answer(context.request, context.target, answer_to(info), forms_of(context)));
  DIBS_CHECK(check_form(context, resource));
  if (Computed::is_computed(resource)) {
    DIBS_TRY(Response response, computed->handle(context));
    return Reply(std::move(response));
  }
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

Result<Response> ApiServer::Parts::answer_usage(const Context& context) {
  if (recorder) return recorder->answer(context);
  return Error::not_found("this server does not record usage: see --usage-size");
}

Result<Response> ApiServer::Parts::serve_at_once(Context& context) {
  const std::string& verb = context.info.verb;
  if (context.resource->rules->question != api::Question::none) return reviews->handle(context);
  if (verb == "get") return handle_get(context, objects);
  return method_not_allowed_error();
}

}  // namespace dibs::server
