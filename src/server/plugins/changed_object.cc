#include "server/plugins/changed_object.h"

#include "api/kinds/workload/scale.h"
#include "api/schema/builtin.h"
#include "base/strings.h"
#include "server/custom_kinds.h"
#include "server/presenting.h"
#include "server/writing.h"

namespace dibs::server {
namespace {

ResourcePtr resource_of(const Write& write, const api::ServedAs& served) {
  const ResourceSetPtr& set = write.context.resources;
  return set ? set->find(served.group, served.version, served.resource) : nullptr;
}

/// The sub-resource of the write, where its body is of another kind than the object.
const api::SubresourceInfo* body_of(const Write& write, const Resource& resource) {
  const api::SubresourceInfo* sub =
      write.subresource.empty() ? nullptr : resource.subresource(write.subresource);
  return sub == nullptr || sub->kind.kind == resource.kind ? nullptr : sub;
}

const api::Schema* schema_of_body(const api::SubresourceInfo& sub) {
  return api::builtin_schema(sub.kind.group, sub.kind.version, sub.kind.kind);
}

/// As the decoder of its kind takes it.
Result<Value> decode_changed(const api::Schema& schema, const Value& before, const Value& changed,
                             api::Strictness strictness) {
  for (std::string_view key : {"kind", "apiVersion"}) {
    if (changed[key] == before[key]) continue;
    return internal_error(cat("no kind ", quoted(changed["kind"].as_string()),
                              " is registered for version ",
                              quoted(changed["apiVersion"].as_string())));
  }
  std::vector<std::string> unknown;
  auto decoded = api::decode(changed, schema, strictness, unknown);
  if (!decoded.ok()) return internal_error(decoded.error().message());
  for (std::string_view key : {"kind", "apiVersion"}) decoded->set(key, before[key]);
  return decoded;
}

Result<bool> take_whole(Write& write, const Resource& resource, const Value& before, Value changed,
                        api::Strictness strictness) {
  Value decoded;
  if (resource.custom) {
    std::vector<std::string> ignored;
    auto pruned = decode_custom(*resource.custom_kind, resource.version, changed, ignored);
    if (!pruned.ok()) return internal_error(pruned.error().message());
    decoded = std::move(pruned).value();
    for (std::string_view key : {"kind", "apiVersion"}) decoded.set(key, before[key]);
  } else {
    DIBS_TRY(decoded, decode_changed(*resource.schema, before, changed, strictness));
  }
  if (decoded == before) return false;
  if (resource.namespaced && write.operation == Operation::create &&
      decoded["metadata"]["namespace"].as_string() != write.name_space) {
    return wrong_namespace_error();
  }
  // What the version does not show stays as the caller wants it, not as it was.
  DIBS_TRY(write.object, with_defaults(resource, std::move(decoded), write.object_if_any(),
                                       write.subresource == "status"));
  // It may have been shown in another version than it is written in.
  if (write.resource.conversion) {
    DIBS_TRY(write.object, to_served(write.resource, write.object));
  }
  return true;
}

Result<> take_scale(Write& write, const Resource& resource, const Value& scale) {
  DIBS_TRY(const Value served, to_served(resource, write.object));
  const api::ScalePaths* paths =
      resource.custom_kind ? scale_paths(*resource.custom_kind, resource.version) : nullptr;
  DIBS_TRY(Value scaled, paths ? api::apply_scale_custom(served, scale, *paths)
                               : api::apply_scale(served, scale));
  if (resource.to_storage) {
    DIBS_TRY(scaled, resource.to_storage(scaled, write.object_if_any(), false));
  }
  if (write.resource.conversion) {
    DIBS_TRY(scaled, to_served(write.resource, scaled));
  }
  write.object = std::move(scaled);
  return success();
}

}  // namespace

bool can_be_changed(const Write& write) {
  return write.operation != Operation::connect && write.subresource != "binding";
}

const api::Schema* shown_schema(const Write& write, const api::ServedAs& served) {
  const auto other = resource_of(write, served);
  const Resource& resource = other ? *other : write.resource;
  const api::SubresourceInfo* body = body_of(write, resource);
  return body ? schema_of_body(*body) : resource.schema;
}

Result<bool> take_changed(Write& write, const api::ServedAs& served, const Value& before,
                          Value changed, api::Strictness strictness) {
  const auto other = resource_of(write, served);
  const Resource& resource = other ? *other : write.resource;
  const api::SubresourceInfo* sub = body_of(write, resource);
  if (sub == nullptr) return take_whole(write, resource, before, std::move(changed), strictness);
  const api::Schema* schema = schema_of_body(*sub);
  if (schema == nullptr) return internal_error(cat("unknown kind ", quoted(sub->kind.kind)));
  DIBS_TRY(Value body, decode_changed(*schema, before, changed, strictness));
  if (body == before) return false;
  if (write.subresource == "scale") {
    DIBS_CHECK(take_scale(write, resource, body));
  } else {
    write.object = std::move(body);
  }
  return true;
}

Error internal_error(std::string_view why) {
  ErrorDetails details;
  details.causes.push_back({"", std::string(why), ""});
  return {Code::internal, cat("Internal error occurred: ", why), std::move(details)};
}

}  // namespace dibs::server
