#include "server/writing.h"

#include <charconv>

#include "api/schema/builtin.h"
#include "api/schema/decode.h"
#include "api/schema/defaults.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/yaml.h"
#include "server/custom_kinds.h"
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
    value = json::parse(body);
    if (!value.ok()) {
      return Error::bad_request(
          cat("couldn't get version/kind; json parse error: ", value.error().message()));
    }
    if (!value->is_object() && !value->is_null()) {
      std::string_view kind = value->is_array()    ? "array"
                              : value->is_string() ? "string"
                              : value->is_number() ? "number"
                                                   : "bool";
      return Error::bad_request(
          cat("couldn't get version/kind; json parse error: json: cannot unmarshal ", kind,
              " into Go value of type struct { APIVersion string "
              "\"json:\\\"apiVersion,omitempty\\\"\"; Kind "
              "string \"json:\\\"kind,omitempty\\\"\" }"));
    }
  }
  return value;
}

/// DeleteOptions of the query, as an object.
Result<Value> options_of_query(const Context& context) {
  Value out = Value::object();
  const net::Target& target = context.target;
  if (target.has("gracePeriodSeconds")) {
    auto text = target.get("gracePeriodSeconds");
    std::int64_t number = 0;
    auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code != std::errc() || end != text.data() + text.size()) {
      return Error::bad_request(
          cat("strconv.ParseInt: parsing ", quoted(text), ": invalid syntax"));
    }
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
  return out;
}

/// At once, or by whoever commits the write.
Response answer(Context& context, const Resource& resource, int status, const Value& object) {
  if (!context.deferred) return present_object(context, resource, status, object);
  context.deferred->status = status;
  return {};
}

}  // namespace

Result<DeleteOptions> read_delete_options(Context& context) {
  DIBS_TRY(Value raw, parse_options_body(context));
  Value decoded;
  if (raw.is_object()) {
    auto kind = raw["kind"].as_string();
    if (!kind.empty() && kind != "DeleteOptions") {
      return Error::bad_request(
          cat("no kind ", quoted(kind), " is registered for version ",
              quoted(raw["apiVersion"].as_string()),
              " in scheme "
              "\"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27\""));
    }
    std::vector<std::string> ignored;
    DIBS_TRY(decoded, api::decode(raw, *api::builtin_schema("", "v1", "DeleteOptions"),
                                  api::Strictness::ignore, ignored));
  } else {
    DIBS_TRY(decoded, options_of_query(context));
  }

  api::FieldErrors errors;
  auto propagation = decoded["propagationPolicy"];
  if (!propagation.is_null()) {
    auto text = propagation.as_string();
    if (text != "Foreground" && text != "Background" && text != "Orphan") {
      errors.not_supported(api::Path("propagationPolicy"), propagation,
                           {"Foreground", "Background", "Orphan", "nil"});
    } else if (!decoded["orphanDependents"].is_null()) {
      errors.invalid(api::Path("propagationPolicy"), propagation,
                     "orphanDependents and deletionPropagation cannot be both set");
    }
  }
  for (const Value& item : decoded["dryRun"].items()) {
    if (item.as_string() != "All") {
      errors.not_supported(api::Path("dryRun"), decoded["dryRun"], {"All"});
      break;
    }
  }
  if (!errors.empty()) return errors.to_error("DeleteOptions", "meta.k8s.io", "");

  DeleteOptions options;
  if (const Value* grace = decoded.find("gracePeriodSeconds"); grace && !grace->is_null()) {
    options.grace_seconds = grace->as_int();
  }
  options.propagation = propagation.str();
  if (const Value* orphan = decoded.find("orphanDependents"); orphan && !orphan->is_null()) {
    options.orphan_dependents = orphan->as_bool();
  }
  options.precondition_uid = decoded["preconditions"]["uid"].str();
  options.precondition_version = decoded["preconditions"]["resourceVersion"].str();
  options.dry_run = !decoded["dryRun"].empty();
  options.raw = std::move(decoded);
  return options;
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

Result<> keep_as_sent(Context& context, const Resource& resource, const Value& object) {
  if (!resource.rules->judged_as_sent || !resource.schema) return success();
  auto sent = api::decode_as_sent(context.sent, *resource.schema);
  if (!sent.ok()) return success();
  sent->set("kind", object["kind"]);
  sent->set("apiVersion", object["apiVersion"]);
  if (*sent == object) return success();
  DIBS_TRY(context.as_sent, with_defaults(resource, std::move(sent).value()));
  return success();
}

}  // namespace

Result<Response> handle_create(Context& context, Objects& objects) {
  const Resource& resource = *context.resource;
  context.may_defer = context.can_defer;
  DIBS_CHECK(read_write_options(context, "CreateOptions"));
  DIBS_TRY(Value object, decode_body(context, expected_of(resource)));
  DIBS_CHECK(keep_as_sent(context, resource, object));
  DIBS_TRY(object, with_defaults(resource, std::move(object)));
  DIBS_TRY(Value made,
           objects.create(context, resource, context.info.name_space, std::move(object)));
  return answer(context, resource, 201, made);
}

Result<Response> handle_update(Context& context, Objects& objects) {
  const Resource& resource = *context.resource;
  context.may_defer = context.can_defer;
  DIBS_CHECK(read_write_options(context, "UpdateOptions"));
  DIBS_TRY(Value object, decode_body(context, expected_of(resource)));
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
  if (resource.namespaced && !name_space.empty() && name_space != context.info.name_space) {
    return Error::bad_request(
        "the namespace of the provided object does not match the namespace sent on the request");
  }
  bool status_write = context.info.subresource == "status";
  auto make = [&](const Value* existing) -> Result<Value> {
    return with_defaults(resource, object, existing, status_write);
  };
  bool may_create = resource.rules->allow_create_on_update && context.info.subresource.empty();
  DIBS_TRY(Written written, objects.update(context, resource, context.info.name_space, name,
                                           UpdateKind::put, may_create, make));
  return answer(context, resource, written.created ? 201 : 200, written.object);
}

Result<Response> handle_patch(Context& context, Objects& objects) {
  const Resource& resource = *context.resource;
  context.may_defer = context.can_defer;
  bool apply = is_apply(context);
  DIBS_CHECK(read_write_options(context, "PatchOptions"));
  Expected expected = expected_of(resource);
  auto make = [&](const Value* existing) -> Result<Value> {
    std::optional<Value> served;
    if (existing) served = to_served(resource, *existing);
    DIBS_TRY(Value object, patched(context, expected, resource, served ? &*served : nullptr));
    return with_defaults(resource, std::move(object), existing,
                         context.info.subresource == "status");
  };
  bool may_create = apply && context.info.subresource.empty();
  DIBS_TRY(Written written,
           objects.update(context, resource, context.info.name_space, context.info.name,
                          apply ? UpdateKind::apply : UpdateKind::patch, may_create, make));
  return answer(context, resource, written.created ? 201 : 200, written.object);
}

Result<Response> handle_delete(Context& context, Objects& objects) {
  const Resource& resource = *context.resource;
  context.may_defer = context.can_defer;
  DIBS_TRY(DeleteOptions options, read_delete_options(context));
  if (!resource.rules->orphans_warning.empty() && options.propagation.empty() &&
      !options.orphan_dependents) {
    context.warn(resource.rules->orphans_warning);
  }
  DIBS_TRY(Deleted deleted,
           objects.remove(context, resource, context.info.name_space, context.info.name, options));
  if (!deleted.removed || resource.rules->returns_deleted) {
    if (!context.deferred) return present_object(context, resource, 200, deleted.object);
    DeferredWrite& write = *context.deferred;
    if (!write.op.value && presents_bytes(context, resource) && !context.request.takes_values) {
      write.shown = share(encode_stored(deleted.object));
    }
    return Response();
  }
  const auto answer = [&context, uid = deleted.object["metadata"]["uid"].str()] {
    const Resource& kind = *context.resource;
    return present_value(context, 200,
                         success_status(context.info.name, kind.group, kind.plural, uid));
  };
  if (!context.deferred) return answer();
  context.deferred->answer = answer;
  return Response();
}

Result<Response> handle_delete_collection(Context& context, Objects& objects) {
  const Resource& resource = *context.resource;
  DIBS_TRY(DeleteOptions options, read_delete_options(context));
  DIBS_TRY(Selection selection, Selection::parse(context.target, resource));
  store::RangeQuery query;
  query.prefix = resource.namespace_prefix(context.info.name_space);
  DIBS_TRY(store::Listing listing, objects.store().range(query));
  std::vector<Value> removed;
  for (const auto& record : listing.records) {
    DIBS_TRY(Value object, decode_stored(*record));
    if (!selection.matches(to_served(resource, object))) continue;
    const Value& metadata = object["metadata"];
    auto deleted = objects.remove(context, resource, metadata["namespace"].as_string(),
                                  metadata["name"].as_string(), options);
    if (!deleted.ok() && deleted.error().code() != Code::not_found)
      return std::move(deleted).error();
    removed.push_back(std::move(object));
  }
  return present_values(context, resource, removed,
                        {options.dry_run ? 0 : listing.revision, {}, std::nullopt});
}

}  // namespace dibs::server
