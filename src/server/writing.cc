#include "server/writing.h"

#include "api/schema/builtin.h"
#include "api/schema/decode.h"
#include "api/schema/defaults.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/yaml.h"
#include "server/custom_kinds.h"
#include "server/list_options.h"
#include "server/presenting.h"
#include "server/selection.h"
#include "server/status.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

Result<Value> parse_options_body(Context& context) {
  const std::string& body = context.request.body;
  if (!context.request.value.is_null()) return context.request.value;
  if (body.empty()) return Value(nullptr);
  DIBS_TRY(BodyFormat format, body_format(context.request.headers.get("Content-Type")));
  Result<Value> value = Value();
  if (format == BodyFormat::yaml) {
    value = json::parse_yaml(body);
  } else if (format == BodyFormat::protobuf) {
    return parse_protobuf(body);
  } else {
    value = json::parse(body, {.max_depth = kMaxDepth});
    if (!value.ok()) {
      return Error::bad_request(
          cat("couldn't get version/kind; json parse error: ", value.error().message()));
    }
  }
  if (!value.ok()) return value;
  if (auto fault = type_meta_fault(*value); !fault.empty())
    return Error::bad_request(cat("couldn't get version/kind; json parse error: ", fault));
  return value;
}

/// DeleteOptions of the query, as an object.
Result<Value> options_of_query(const Context& context) {
  Value out = Value::object();
  const net::Target& target = context.target;
  if (target.has("gracePeriodSeconds")) {
    DIBS_TRY(const std::int64_t number, parse_query_number(target.get("gracePeriodSeconds")));
    out.set("gracePeriodSeconds", number);
  }
  if (target.has("propagationPolicy"))
    out.set("propagationPolicy", target.get("propagationPolicy"));
  if (target.has("orphanDependents"))
    out.set("orphanDependents", query_flag(target, "orphanDependents"));
  Value dry_run = Value::array();
  for (const auto& [key, value] : target.query) {
    if (key == "dryRun") dry_run.push(value);
  }
  if (!dry_run.empty()) out.set("dryRun", std::move(dry_run));
  Value preconditions = Value::object();
  // That of a collection is a version to list at.
  const bool one = !context.info.name.empty();
  for (std::string_view key : {"uid", "resourceVersion"}) {
    if ((one || key == "uid") && target.has(key)) preconditions.set(key, target.get(key));
  }
  if (!preconditions.empty()) out.set("preconditions", std::move(preconditions));
  return out;
}

}  // namespace

namespace {

Result<Value> decoded_options(Context& context) {
  DIBS_TRY(Value raw, parse_options_body(context));
  if (!raw.is_object()) return options_of_query(context);
  auto kind = raw["kind"].as_string();
  auto version = raw["apiVersion"].as_string();
  if (version.find('/') != version.rfind('/'))
    return Error::bad_request(cat("unexpected GroupVersion string: ", version));
  if (!kind.empty() && kind != "DeleteOptions") {
    return Error::bad_request(
        cat("no kind ", quoted(kind), " is registered for version ",
            quoted(version.empty() ? "meta.k8s.io/v1" : version),
            " in scheme "
            "\"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27\""));
  }
  std::vector<std::string> ignored;
  return api::decode(raw, *api::builtin_schema("", "v1", "DeleteOptions"), api::Strictness::ignore,
                     ignored);
}

Result<> check_options(const Value& options) {
  api::FieldErrors errors;
  const Value& propagation = options["propagationPolicy"];
  if (!propagation.is_null()) {
    auto text = propagation.as_string();
    if (text != "Foreground" && text != "Background" && text != "Orphan") {
      errors.not_supported(api::Path("propagationPolicy"), propagation,
                           {"Foreground", "Background", "Orphan", "nil"});
    } else if (!options["orphanDependents"].is_null()) {
      errors.invalid(api::Path("propagationPolicy"), propagation,
                     "orphanDependents and deletionPropagation cannot be both set");
    }
  }
  for (const Value& item : options["dryRun"].items()) {
    if (item.as_string() != "All") {
      errors.not_supported(api::Path("dryRun"), options["dryRun"], {"All"});
      break;
    }
  }
  if (!errors.empty()) return errors.to_error("DeleteOptions", "meta.k8s.io", "");
  return success();
}

}  // namespace

DeleteOptions to_delete_options(const Value& raw) {
  DeleteOptions options;
  if (const Value* grace = raw.find("gracePeriodSeconds"); grace && !grace->is_null()) {
    options.grace_seconds = grace->as_int();
  }
  options.propagation = raw["propagationPolicy"].str();
  if (const Value* orphan = raw.find("orphanDependents"); orphan && !orphan->is_null()) {
    options.orphan_dependents = orphan->as_bool();
  }
  options.precondition_uid = raw["preconditions"]["uid"].str();
  options.precondition_version = raw["preconditions"]["resourceVersion"].str();
  options.dry_run = !raw["dryRun"].empty();
  options.raw = raw;
  return options;
}

Result<DeleteOptions> read_delete_options(Context& context) {
  DIBS_TRY(Value options, decoded_options(context));
  DIBS_CHECK(check_options(options));
  return to_delete_options(options);
}

Result<Value> with_defaults(const Resource& resource, Value object, const Value* existing,
                            bool status_write) {
  if (resource.custom) {
    apply_custom_defaults(*resource.custom_kind, resource.version, object);
  } else {
    api::apply_defaults(object, *resource.schema);
    if (resource.rules->set_defaults) resource.rules->set_defaults(object);
  }
  if (!resource.to_storage) return object;
  return resource.to_storage(object, existing, status_write);
}

namespace {

/// What the kind judges of a new object, where that tells more than the object.
Result<Value> as_sent(const Resource& resource, const Decoded& body) {
  if (!resource.rules->judged_as_sent || !resource.schema) return Value();
  auto sent = api::decode_as_sent(body.sent, *resource.schema);
  if (!sent.ok()) return Value();
  sent->set("kind", body.object["kind"]);
  sent->set("apiVersion", body.object["apiVersion"]);
  if (*sent == body.object) return Value();
  return with_defaults(resource, std::move(sent).value());
}

/// An update of the object, or the status, that the request names.
std::shared_ptr<Write> update_of(Context& context, Access& access, Verb verb, bool creates) {
  auto write = std::make_shared<Write>(context, *context.resource, verb);
  if (creates && context.info.subresource.empty())
    write->may_create = [&context, &access] { return access.authorize_creation(context); };
  return write;
}

Response answer_object(const Write& write) {
  const Outcome& outcome = write.outcome;
  const int status = outcome.created ? 201 : 200;
  if (outcome.version != 0 && outcome.bytes) {
    return present_written(write.context, write.resource, status, outcome.object, *outcome.bytes,
                           outcome.version);
  }
  return present_object(write.context, write.resource, status, write.written());
}

}  // namespace

Response Reply::answered() const {
  if (!write) return response;
  if (answer) return answer(*write);
  return answer_object(*write);
}

bool Reply::is_quick() const {
  constexpr std::size_t kSmall = 64 * 1024;
  const SharedBytes& bytes = write->outcome.bytes;
  if (is_small || !bytes) return static_cast<bool>(answer);
  return bytes->size() < kSmall && presents_bytes(write->context, write->resource);
}

Result<> check_place(const Context& context, const Value& object) {
  const std::string& name = context.info.name;
  auto given = object["metadata"]["name"].as_string();
  if (given.empty()) {
    return Error::bad_request(cat("the name of the object (", name,
                                  " based on URL) was undeterminable: name must be provided"));
  }
  if (given != name) {
    return Error::bad_request(cat("the name of the object (", given,
                                  ") does not match the name on the URL (", name, ")"));
  }
  auto name_space = object["metadata"]["namespace"].as_string();
  if (context.resource->namespaced && !name_space.empty() && name_space != context.info.name_space)
    return wrong_namespace_error();
  return success();
}

Result<Reply> handle_create(Context& context) {
  const Resource& resource = *context.resource;
  DIBS_CHECK(read_write_options(context, "CreateOptions"));
  DIBS_TRY(Decoded body, decode_body(context, expected_of(resource)));
  DIBS_TRY(Value judged, as_sent(resource, body));
  DIBS_TRY(Value object, with_defaults(resource, std::move(body.object)));
  auto write = std::make_shared<Write>(context, resource, Verb::create);
  write->make = [wanted = Wanted{std::move(object), body.forgets_managers, std::move(judged)}](
                    const Value*) -> Result<Wanted> { return wanted; };
  return Reply(std::move(write));
}

Result<Reply> handle_update(Context& context, Access& access) {
  const Resource& resource = *context.resource;
  DIBS_CHECK(read_write_options(context, "UpdateOptions"));
  DIBS_TRY(Decoded body, decode_body(context, expected_of(resource)));
  DIBS_CHECK(check_place(context, body.object));
  auto write = update_of(context, access, Verb::put, resource.rules->allow_create_on_update);
  write->make = [&resource, body = std::move(body), of_status = write->subresource == "status"](
                    const Value* existing) -> Result<Wanted> {
    DIBS_TRY(Value object, with_defaults(resource, body.object, existing, of_status));
    return Wanted{std::move(object), body.forgets_managers};
  };
  return Reply(std::move(write));
}

Result<Reply> handle_patch(Context& context, Access& access) {
  const Resource& resource = *context.resource;
  const bool apply = is_apply(context);
  DIBS_TRY(Patch patch, read_patch(context, resource.custom));
  auto write = update_of(context, access, apply ? Verb::apply : Verb::patch, apply);
  write->make = [&context, &resource, patch = std::move(patch), expected = expected_of(resource),
                 of_status =
                     write->subresource == "status"](const Value* existing) -> Result<Wanted> {
    std::optional<Value> served;
    if (existing) {
      DIBS_TRY(served, to_served(resource, *existing));
    }
    DIBS_TRY(Decoded made,
             patched(context, patch, expected, resource, served ? &*served : nullptr));
    DIBS_TRY(Value object, with_defaults(resource, std::move(made.object), existing, of_status));
    return Wanted{std::move(object), made.forgets_managers};
  };
  return Reply(std::move(write));
}

Result<Reply> handle_delete(Context& context) {
  const Resource& resource = *context.resource;
  auto write = std::make_shared<Write>(context, resource, Verb::remove);
  DIBS_TRY(write->removal, read_delete_options(context));
  const DeleteOptions& options = write->removal;
  if (!resource.rules->orphans_warning.empty() && options.propagation.empty() &&
      !options.orphan_dependents) {
    context.warn(resource.rules->orphans_warning);
  }
  Reply reply(write);
  if (resource.rules->returns_deleted) {
    write->encodes_removed = presents_bytes(context, resource) && !context.request.takes_values;
    return reply;
  }
  reply.answer = [](const Write& done) {
    if (!done.outcome.removed) return answer_object(done);
    return present_value(done.context, 200,
                         success_status(done.name, done.resource.group, done.resource.plural,
                                        done.outcome.object["metadata"]["uid"].as_string()));
  };
  return reply;
}

Result<Reply> handle_delete_collection(Context& context, Objects& objects) {
  struct Collection {
    DeleteOptions options;
    Selection selection;
    store::Listing listing;
    std::vector<Value> served = {};  // all of it, where a webhook converts
    std::size_t at = 0;
    std::vector<Value> removed = {};
  };
  const Resource& resource = *context.resource;
  DIBS_CHECK(ListOptions::parse(context.target, false));
  DIBS_TRY(DeleteOptions options, read_delete_options(context));
  DIBS_TRY(Selection selection, Selection::parse(context.target, resource));
  store::RangeQuery query;
  query.prefix = resource.namespace_prefix(context.info.name_space);
  DIBS_TRY(store::Listing listing, objects.store().range(query));
  const auto all = std::make_shared<Collection>(
      Collection{std::move(options), std::move(selection), std::move(listing)});
  if (resource.conversion) {
    for (const auto& record : all->listing.records) {
      DIBS_TRY(Value object, decode_stored(*record));
      all->served.push_back(std::move(object));
    }
    DIBS_TRY(all->served, to_served_all(resource, std::move(all->served)));
  }
  const auto next = [&context, &resource, all]() -> Result<std::shared_ptr<Write>> {
    while (all->at < all->listing.records.size()) {
      const std::size_t at = all->at++;
      DIBS_TRY(Value object, all->served.empty() ? decode_stored(*all->listing.records[at])
                                                 : Result<Value>(all->served[at]));
      if (!all->selection.everything()) {
        DIBS_TRY(const Value served, to_served(resource, object));
        if (!all->selection.matches(served)) continue;
      }
      auto write = std::make_shared<Write>(context, resource, Verb::remove);
      write->name_space = object["metadata"]["namespace"].str();
      write->name = object["metadata"]["name"].str();
      write->removal = all->options;
      all->removed.push_back(std::move(object));
      return write;
    }
    return std::shared_ptr<Write>();
  };
  Reply reply(std::make_shared<ManyWrites>(
      objects, next, [](const Error& error) { return error.code() == Code::not_found; }));
  reply.answer_to_many = [&context, &resource, all] {
    return present_values(context, resource, all->removed,
                          {all->listing.revision, {}, std::nullopt});
  };
  return reply;
}

}  // namespace dibs::server
