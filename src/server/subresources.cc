#include "server/subresources.h"

#include "api/kinds/pod/pod.h"
#include "api/kinds/workload/workload.h"
#include "api/merge/managed_fields.h"
#include "api/schema/builtin.h"
#include "base/strings.h"
#include "server/body.h"
#include "server/custom_kinds.h"
#include "server/field_management.h"
#include "server/plugins/admission_policies_bodies.h"
#include "server/presenting.h"
#include "server/status.h"
#include "server/writing.h"

namespace dibs::server {
namespace {

Value created_status() {
  return Value::object({{"kind", "Status"},
                        {"apiVersion", "v1"},
                        {"metadata", Value::object()},
                        {"status", "Success"},
                        {"code", 201}});
}

Expected expected_body(const api::SubresourceInfo& sub) {
  return {sub.kind, api::builtin_schema(sub.kind.group, sub.kind.version, sub.kind.kind), nullptr};
}

/// A Scale in the form asked for; it is a kind with columns of its own.
Response present_scale(const Context& context, const Value& scale) {
  Resource as_kind;
  as_kind.group = "autoscaling";
  as_kind.version = "v1";
  as_kind.kind = "Scale";
  return present_object(context, as_kind, 200, scale);
}

/// Of the number that a Scale shows, in its object.
api::FieldPath replicas_path(const api::ScalePaths* paths) {
  if (!paths) return {api::PathElement::field("spec"), api::PathElement::field("replicas")};
  api::FieldPath path;
  for (std::string_view part : split(paths->spec_replicas, '.')) {
    if (!part.empty()) path.push_back(api::PathElement::field(part));
  }
  return path;
}

}  // namespace

bool Subresources::handles(const Context& context) const {
  const std::string& sub = context.info.subresource;
  return sub == "binding" || sub == "eviction" || sub == "scale" || sub == "token" ||
         streams(context);
}

bool Subresources::streams(const Context& context) const {
  const std::string& sub = context.info.subresource;
  return context.info.is_resource && (sub == "log" || sub == "exec" || sub == "attach" ||
                                      sub == "portforward" || sub == "proxy");
}

Result<Response> Subresources::handle(Context& context) {
  const std::string& sub = context.info.subresource;
  if (sub == "binding" || sub.empty()) return bind(context);
  if (sub == "eviction") return evict(context);
  if (sub == "scale") return scale(context);
  if (sub == "token") return token(context);
  return unknown_resource_error();  // streams are answered by stream()
}

Result<Response> Subresources::bind(Context& context) {
  DIBS_CHECK(read_write_options(context, "CreateOptions"));
  Expected expected{{"", "v1", "Binding"}, api::builtin_schema("", "v1", "Binding"), nullptr};
  DIBS_TRY(Value binding, decode_body(context, expected));
  ResourcePtr pods = context.resources->find("", "v1", "pods");
  std::string name = context.info.name;
  std::string from_url = name;
  if (name.empty()) name = binding["metadata"]["name"].str();
  context.info.subresource = "binding";
  auto make = [&](const Value* existing) -> Result<Value> {
    auto uid = binding["metadata"]["uid"].as_string();
    if (!uid.empty() && uid != (*existing)["metadata"]["uid"].as_string()) {
      return conflict_error(
          "", "pods", name,
          cat("StorageError: invalid object, Code: 4, Key: ",
              pods->key(context.info.name_space, name),
              ", ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
              "precondition: ",
              uid, ", UID in object meta: ", (*existing)["metadata"]["uid"].as_string()));
    }
    DIBS_TRY(Value pod, api::bind_pod(*existing, binding, from_url, context.now));
    copy_topology(pod, binding["target"]["name"].as_string());
    return pod;
  };
  context.may_defer = context.can_defer && !from_url.empty();
  DIBS_TRY(Written written, objects_.update(context, *pods, context.info.name_space, name,
                                            UpdateKind::put, false, make));
  (void)written;
  if (context.deferred) {
    context.deferred->answer = [&context] { return present_value(context, 201, created_status()); };
    return Response();
  }
  return present_value(context, 201, created_status());
}

void Subresources::copy_topology(Value& pod, std::string_view node_name) const {
  auto nodes = resources_.get()->find("", "v1", "nodes");
  auto node = objects_.get(*nodes, "", node_name);
  if (!node.ok()) return;
  for (std::string_view label : {"topology.kubernetes.io/zone", "topology.kubernetes.io/region"}) {
    if (const Value* value = (*node)["metadata"]["labels"].find(label)) {
      pod.mut("metadata").mut("labels").set(label, *value);
    }
  }
}

Result<Response> Subresources::scale(Context& context) {
  const Resource& resource = *context.resource;
  const api::SubresourceInfo& sub = *resource.subresource("scale");
  const api::ScalePaths* paths =
      resource.custom_kind ? scale_paths(*resource.custom_kind, resource.version) : nullptr;
  auto scale_for = [&](const Value& object, bool update) -> Result<Value> {
    if (paths) return api::scale_of_custom(to_served(resource, object), *paths, update);
    return api::scale_of(to_served(resource, object));
  };
  if (context.info.verb == "get") {
    DIBS_TRY(Value object, objects_.get(resource, context.info.name_space, context.info.name));
    DIBS_TRY(Value scale, scale_for(object, false));
    return present_scale(context, scale);
  }
  Expected expected = expected_body(sub);
  DIBS_CHECK(
      read_write_options(context, context.info.verb == "patch" ? "PatchOptions" : "UpdateOptions"));
  std::optional<Value> given;
  if (context.info.verb == "update") {
    DIBS_TRY(given, decode_body(context, expected));
    auto name = (*given)["metadata"]["name"].as_string();
    if (name.empty()) {
      return Error::bad_request(cat("the name of the object (", context.info.name,
                                    " based on URL) was undeterminable: name must be provided"));
    }
    if (name != context.info.name) {
      return Error::bad_request(cat("the name of the object (", name,
                                    ") does not match the name on the URL (", context.info.name,
                                    ")"));
    }
    auto name_space = (*given)["metadata"]["namespace"].as_string();
    if (!name_space.empty() && name_space != context.info.name_space) {
      return Error::bad_request(
          "the namespace of the provided object does not match the namespace sent on the request");
    }
  }
  Resource plain = resource;
  plain.custom = false;  // a Scale takes every patch type
  auto make = [&](const Value* existing) -> Result<Value> {
    Value scale;
    DIBS_TRY(Value current, scale_for(*existing, true));
    Value entries = api::managed_fields_to_scale((*existing)["metadata"]["managedFields"],
                                                 replicas_path(paths));
    if (!entries.is_null()) current.mut("metadata").set("managedFields", std::move(entries));
    if (given) {
      scale = *given;
    } else {
      DIBS_TRY(scale, patched(context, expected, plain, &current));
    }
    if (!is_apply(context)) {
      Resource as_kind;
      as_kind.hub_group = "autoscaling";
      as_kind.hub_version = "v1";
      as_kind.kind = "Scale";
      as_kind.schema = expected.schema;
      api::KindRules with_status;
      with_status.has_status = true;
      as_kind.rules = &with_status;
      scale = track_write(context, as_kind, &current, std::move(scale));
    }
    Value served = to_served(resource, *existing);
    Result<Value> scaled =
        paths ? api::apply_scale_custom(served, scale, *paths) : api::apply_scale(served, scale);
    if (!scaled.ok()) return scaled;
    {
      Value owners = api::managed_fields_from_scale((*existing)["metadata"]["managedFields"],
                                                    scale["metadata"]["managedFields"],
                                                    replicas_path(paths), resource.api_version());
      if (owners.is_null()) {
        scaled->mut("metadata").erase("managedFields");
      } else {
        scaled->mut("metadata").set("managedFields", std::move(owners));
      }
    }
    return resource.to_storage ? resource.to_storage(*scaled, existing, false) : *scaled;
  };
  // The owners are settled here, as those of a Scale.
  DIBS_TRY(Written written, objects_.update(context, resource, context.info.name_space,
                                            context.info.name, UpdateKind::apply, false, make));
  DIBS_TRY(Value scale, scale_for(written.object, true));
  return present_scale(context, scale);
}

Result<Response> Subresources::token(Context& context) {
  const Resource& resource = *context.resource;
  DIBS_CHECK(read_write_options(context, "CreateOptions"));
  DIBS_TRY(Value request, decode_body(context, expected_body(*resource.subresource("token"))));
  DIBS_TRY(Value account, objects_.get(resource, context.info.name_space, context.info.name));
  DIBS_CHECK(admit_body(objects_.admission(), context, Operation::create, request));
  DIBS_TRY(Value answer, access_.issue_token(context, account, request));
  return present_value(context, 201, answer);
}

}  // namespace dibs::server
