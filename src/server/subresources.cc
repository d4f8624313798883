#include "server/subresources.h"

#include "api/kinds/pod/pod.h"
#include "api/kinds/workload/scale.h"
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

/// What a binding expects of its pod is not so.
Error precondition_error(const Resource& pods, std::string_view name, std::string_view key,
                         std::string_view what, std::string_view wanted, std::string_view actual) {
  return conflict_error(pods.group, pods.plural, name,
                        cat("StorageError: invalid object, Code: 4, Key: ", key,
                            ", ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: ", what,
                            " in precondition: ", wanted, ", ", what, " in object meta: ", actual));
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

/// The door of an object that shows and takes a Scale of it. Lives no longer than the context.
class ScaleOf {
 public:
  explicit ScaleOf(Context& context) : context_(&context), resource_(context.resource.get()) {
    if (resource_->custom_kind) paths_ = scale_paths(*resource_->custom_kind, resource_->version);
  }

  Expected expected() const { return expected_body(*resource_->subresource("scale")); }

  Result<Value> read(const Value& object, bool update = false) const {
    DIBS_TRY(const Value served, to_served(*resource_, object));
    if (paths_) return api::scale_of_custom(served, *paths_, update);
    return api::scale_of(served);
  }

  /// The object with what was put, or else with the patch.
  Result<Value> write(const Value& existing, const Decoded* given, const Patch* patch) const {
    DIBS_TRY(Value current, read(existing, true));
    DIBS_TRY(const Value served, to_served(*resource_, existing));
    if (paths_) api::mark_without_replicas(current, served, *paths_);
    const Value& owners = existing["metadata"]["managedFields"];
    Value entries = api::managed_fields_to_scale(owners, replicas_path(paths_));
    if (!entries.is_null()) current.mut("metadata").set("managedFields", std::move(entries));
    DIBS_TRY(Value scale, wanted(current, given, patch));
    DIBS_TRY(Value scaled, paths_ ? api::apply_scale_custom(served, scale, *paths_)
                                  : api::apply_scale(served, scale));
    if (!paths_) DIBS_CHECK(check_uid(scale["metadata"], existing["metadata"]));
    Value merged = api::managed_fields_from_scale(owners, scale["metadata"]["managedFields"],
                                                  replicas_path(paths_), resource_->api_version());
    if (merged.is_null()) {
      scaled.mut("metadata").erase("managedFields");
    } else {
      scaled.mut("metadata").set("managedFields", std::move(merged));
    }
    if (!resource_->to_storage) return scaled;
    return resource_->to_storage(scaled, &existing, false);
  }

  Response answer(const Value& object) const {
    auto scale = read(object, true);
    return scale.ok() ? present_scale(*context_, *scale) : status_response(scale.error());
  }

 private:
  /// Unlike a version, an uid that is another is told as one of the Scale.
  Result<> check_uid(const Value& given, const Value& found) const {
    const auto wanted = given["uid"].as_string();
    if (wanted.empty() || wanted == found["uid"].as_string()) return success();
    return conflict_error(resource_->group, cat(resource_->plural, "/scale"),
                          found["name"].as_string(),
                          cat("Precondition failed: UID in precondition: ", wanted,
                              ", UID in object meta: ", found["uid"].as_string()));
  }

  Result<Value> wanted(const Value& current, const Decoded* given, const Patch* patch) const {
    Expected body = expected();
    Decoded scale;
    if (given) {
      scale = *given;
    } else {
      Resource plain = *resource_;
      plain.custom = false;
      DIBS_TRY(scale, patched(*context_, *patch, body, plain, &current));
    }
    if (is_apply(*context_)) return scale.object;
    api::KindRules with_status;
    with_status.has_status = true;
    Resource as_kind;
    as_kind.hub_group = body.kind.group;
    as_kind.hub_version = body.kind.version;
    as_kind.kind = body.kind.kind;
    as_kind.schema = body.schema;
    as_kind.rules = &with_status;
    return track_write(*context_, as_kind, &current, std::move(scale.object),
                       scale.forgets_managers);
  }

  Context* context_;
  const Resource* resource_;
  const api::ScalePaths* paths_ = nullptr;
};

}  // namespace

Reply answered_with_created(std::shared_ptr<Write> write) {
  Reply reply(std::move(write));
  reply.answer = [](const Write& done) { return created_answer(done.context); };
  reply.is_small = true;
  return reply;
}

Response created_answer(const Context& context) {
  return present_value(context, 201, created_status());
}

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

Result<Reply> Subresources::handle(Context& context) {
  const std::string& sub = context.info.subresource;
  if (sub == "binding" || sub.empty()) return bind(context);
  if (sub == "eviction") return evict(context);
  if (sub == "scale") return scale(context);
  if (sub == "token") {
    DIBS_TRY(Response response, token(context));
    return Reply(std::move(response));
  }
  return unknown_resource_error();  // streams are answered by stream()
}

Result<Reply> Subresources::bind(Context& context) {
  DIBS_CHECK(read_write_options(context, "CreateOptions"));
  Expected expected{{"", "v1", "Binding"}, api::builtin_schema("", "v1", "Binding"), nullptr};
  DIBS_TRY(Decoded body, decode_body(context, expected));
  const auto given = body.object["metadata"]["namespace"].as_string();
  if (!given.empty() && given != context.info.name_space) return wrong_namespace_error();
  // A new object has no uid, whatever it says; that of pods/NAME/binding is none.
  if (context.info.name.empty()) body.object.mut("metadata").erase("uid");
  DIBS_CHECK(api::check_binding(body.object, context.info.name));
  ResourcePtr pods = context.resources->find("", "v1", "pods");
  context.info.subresource = "binding";
  auto write = std::make_shared<Write>(context, *pods, Verb::put);
  if (write->name.empty()) write->name = body.object["metadata"]["name"].str();
  if (write->name.empty()) return Error::bad_request("Name parameter required.");
  write->make = [this, &context, pods, key = write->key(), name = write->name,
                 body = std::move(body)](const Value* existing) -> Result<Wanted> {
    const Value& binding = body.object;
    for (auto [member, word] :
         {std::pair("uid", "UID"), std::pair("resourceVersion", "ResourceVersion")}) {
      auto wanted = binding["metadata"][member].as_string();
      auto actual = (*existing)["metadata"][member].as_string();
      if (!wanted.empty() && wanted != actual)
        return precondition_error(*pods, name, key, word, wanted, actual);
    }
    DIBS_TRY(Value pod, api::bind_pod(*existing, binding, context.now));
    copy_topology(pod, binding["target"]["name"].as_string());
    return Wanted{std::move(pod), body.forgets_managers};
  };
  return answered_with_created(std::move(write));
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

Result<Reply> Subresources::scale(Context& context) {
  if (context.info.verb == "get") {
    DIBS_TRY(Value object,
             objects_.get(*context.resource, context.info.name_space, context.info.name));
    DIBS_TRY(Value scale, ScaleOf(context).read(object));
    return Reply(present_scale(context, scale));
  }
  ScaleOf door(context);
  std::optional<Decoded> given;
  std::optional<Patch> patch;
  if (context.info.verb == "patch") {
    DIBS_TRY(patch, read_patch(context, context.resource->custom));
  } else {
    DIBS_CHECK(read_write_options(context, "UpdateOptions"));
    DIBS_TRY(given, decode_body(context, door.expected()));
    DIBS_CHECK(check_place(context, given->object));
  }
  // The owners are settled by the door, as those of a Scale.
  auto write = std::make_shared<Write>(context, *context.resource, Verb::apply);
  write->make = [door, given = std::move(given),
                 patch = std::move(patch)](const Value* existing) -> Result<Wanted> {
    DIBS_TRY(Value object,
             door.write(*existing, given ? &*given : nullptr, patch ? &*patch : nullptr));
    return Wanted{std::move(object)};
  };
  Reply reply(std::move(write));
  reply.answer = [door](const Write& done) { return door.answer(done.written()); };
  return reply;
}

Result<Response> Subresources::token(Context& context) {
  const Resource& resource = *context.resource;
  DIBS_CHECK(read_write_options(context, "CreateOptions"));
  DIBS_TRY(Decoded body, decode_body(context, expected_body(*resource.subresource("token"))));
  Value& request = body.object;
  DIBS_TRY(Value account, objects_.get(resource, context.info.name_space, context.info.name));
  DIBS_CHECK(admit_body(objects_.admission(), context, Operation::create, request));
  DIBS_TRY(Value answer, access_.issue_token(context, account, request));
  return present_value(context, 201, answer);
}

}  // namespace dibs::server
