#include "server/plugins/admission_policies_request.h"

#include "api/kinds/workload/scale.h"
#include "api/merge/selectors.h"
#include "base/strings.h"
#include "server/custom_kinds.h"
#include "server/presenting.h"

namespace dibs::server {
namespace {

Value list_of(const std::vector<std::string>& texts) {
  Value out = Value::array();
  for (const std::string& text : texts) out.push(text);
  return out;
}

Value user_value(const auth::UserInfo& user) {
  Value out = Value::object();
  if (!user.name.empty()) out.set("username", user.name);
  if (!user.uid.empty()) out.set("uid", user.uid);
  if (!user.groups.empty()) out.set("groups", list_of(user.groups));
  if (!user.extra.empty()) {
    Value extra = Value::object();
    for (const auto& [key, values] : user.extra) extra.set(key, list_of(values));
    out.set("extra", std::move(extra));
  }
  return out;
}

Value options_value(const Write& request) {
  const Context& context = request.context;
  std::string_view kind = "UpdateOptions";
  if (request.operation == Operation::create) kind = "CreateOptions";
  if (request.operation == Operation::remove) kind = "DeleteOptions";
  Value out = Value::object({{"kind", kind}, {"apiVersion", "meta.k8s.io/v1"}});
  if (request.operation == Operation::remove) {
    for (const auto& [key, value] : request.removal.raw.members()) {
      if (key != "kind" && key != "apiVersion") out.set(key, value);
    }
    return out;
  }
  if (context.dry_run) out.set("dryRun", Value::array({"All"}));
  for (std::string_view key : {"fieldManager", "fieldValidation"}) {
    if (auto text = context.target.get(key); !text.empty()) out.set(key, text);
  }
  return out;
}

api::GroupVersionKind kind_of(const Resource& resource, std::string_view subresource) {
  if (!subresource.empty()) {
    if (const api::SubresourceInfo* sub = resource.subresource(subresource)) return sub->kind;
  }
  return {resource.group, resource.version, resource.kind};
}

Value kind_value(const api::GroupVersionKind& kind) {
  return Value::object({{"group", kind.group}, {"version", kind.version}, {"kind", kind.kind}});
}

Value resource_value(const api::ServedAs& served) {
  return Value::object(
      {{"group", served.group}, {"version", served.version}, {"resource", served.resource}});
}

cel::Authorize authorizer_of(Access& access, const auth::UserInfo& user) {
  return [&access, user](const cel::AuthorizationQuery& query) {
    auth::RequestAttributes what;
    what.user = user;
    if (query.service_account) {
      const auto& account = *query.service_account;
      what.user = {};
      what.user.name = cat("system:serviceaccount:", account.namespace_name, ":", account.name);
      what.user.groups = {"system:serviceaccounts",
                          cat("system:serviceaccounts:", account.namespace_name)};
    }
    what.verb = query.verb;
    what.is_resource = query.is_resource();
    what.path = query.path;
    what.group = query.group;
    what.version = "*";
    what.resource = query.resource;
    what.subresource = query.subresource;
    what.name_space = query.namespace_name;
    what.name = query.name;
    // A selector that cannot be read restricts nothing.
    if (query.field_selector && api::parse_field_selector(*query.field_selector).ok()) {
      what.field_selector = *query.field_selector;
    }
    if (query.label_selector && api::parse_label_selector(*query.label_selector).ok()) {
      what.label_selector = *query.label_selector;
    }
    auth::Decision decision = access.authorize(what);
    return cel::AuthorizationDecision{decision.allowed, decision.reason, ""};
  };
}

/// What expressions may know of a namespace.
Value visible_namespace(const Value& object) {
  if (object.is_null()) return nullptr;
  Value metadata = Value::object();
  for (std::string_view key :
       {"name", "generateName", "namespace", "uid", "resourceVersion", "generation",
        "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "labels",
        "annotations", "finalizers"}) {
    if (const Value* value = object["metadata"].find(key)) metadata.set(key, *value);
  }
  auto part = [&](std::string_view key) {
    return object[key].is_null() ? Value::object() : object[key];
  };
  return Value::object(
      {{"metadata", std::move(metadata)}, {"spec", part("spec")}, {"status", part("status")}});
}

}  // namespace

std::string_view operation_name(const Write& request) {
  // A pod is bound by creating a Binding, whatever that changes.
  if (request.subresource == "binding") return "CREATE";
  switch (request.operation) {
    case Operation::create:
      return "CREATE";
    case Operation::update:
      return "UPDATE";
    case Operation::remove:
      return "DELETE";
    case Operation::connect:
      return "CONNECT";
  }
  return {};
}

PolicyRequest::PolicyRequest(const Write& request, const PluginSources& sources)
    : request_(request),
      sources_(sources),
      resources_(request.context.resources ? request.context.resources : sources.resources.get()),
      operation_(operation_name(request)),
      name_space_(request.name_space),
      name_(request.name),
      is_namespace_(request.is("", "namespaces")) {
  if (is_namespace_) name_space_ = name_;
  if (request.context.info.verb == "deletecollection") name_.clear();
  question_.operation = operation_;
  question_.served = {request.resource.group, request.resource.version, request.resource.plural};
  question_.subresource = request.subresource;
  question_.name_space = name_space_;
  question_.name = name_;
  question_.object = request.object_if_any();
  question_.old = request.old_if_any();
  if (request.subresource == "binding" && !request.object.is_null()) {
    const Value& pod = request.object;
    binding_ = Value::object(
        {{"kind", "Binding"},
         {"apiVersion", "v1"},
         {"metadata", Value::object({{"name", name_}, {"namespace", name_space_}})},
         {"target", Value::object({{"kind", "Node"}, {"name", pod["spec"]["nodeName"]}})}});
    question_.object = &binding_;
    question_.old = nullptr;
  }
  question_.namespace_labels = [this] { return namespace_labels(); };
  question_.equivalents = [this]() -> const std::vector<api::ServedAs>& { return equivalents(); };
}

Result<Value> PolicyRequest::name_space() {
  if (name_space_.empty() || is_namespace_) return Value();
  if (!looked_) {
    auto resource = resources_->find("", "v1", "namespaces");
    DIBS_TRY(namespace_, sources_.objects.get(*resource, "", name_space_));
    looked_ = true;
  }
  return namespace_;
}

Result<Value> PolicyRequest::namespace_labels() {
  if (is_namespace_ && request_.subresource.empty() && !request_.object.is_null()) {
    return request_.object["metadata"]["labels"];
  }
  if (is_namespace_) {
    return request_.old["metadata"]["labels"];
  }
  DIBS_TRY(Value object, name_space());
  return object["metadata"]["labels"];
}

const std::vector<api::ServedAs>& PolicyRequest::equivalents() {
  if (listed_) return equivalents_;
  listed_ = true;
  const Resource& asked = request_.resource;
  if (asked.storage_prefix.empty()) return equivalents_;
  for (const auto& [path, resource] : resources_->by_path) {
    if (resource->storage_prefix != asked.storage_prefix) continue;
    if (resource->group == asked.group && resource->version == asked.version) continue;
    if (!request_.subresource.empty() && !resource->subresource(request_.subresource)) continue;
    equivalents_.push_back({resource->group, resource->version, resource->plural});
  }
  return equivalents_;
}

Result<Value> PolicyRequest::shown(const Resource& resource, const Value* stored) const {
  if (stored == nullptr) return Value();
  // These come as the body that was sent.
  if (request_.operation == Operation::connect ||
      (request_.operation == Operation::create && !request_.subresource.empty())) {
    return *stored;
  }
  DIBS_TRY(Value served, to_served(resource, *stored));
  if (request_.subresource != "scale") return served;
  if (!resource.custom_kind) return api::scale_of(served);
  const api::ScalePaths* paths = scale_paths(*resource.custom_kind, resource.version);
  if (paths == nullptr) return served;
  auto scale = api::scale_of_custom(served, *paths, true);
  return scale.ok() ? std::move(scale).value() : served;
}

Value PolicyRequest::request_value(const api::ServedAs& served, const Resource& resource) const {
  const std::string& sub = request_.subresource;
  Value out = Value::object({{"uid", ""},
                             {"kind", kind_value(kind_of(resource, sub))},
                             {"resource", resource_value(served)}});
  if (!sub.empty()) out.set("subResource", sub);
  out.set("requestKind", kind_value(kind_of(request_.resource, sub)));
  out.set("requestResource", resource_value(question_.served));
  if (!sub.empty()) out.set("requestSubResource", sub);
  if (!name_.empty()) out.set("name", name_);
  if (!name_space_.empty()) out.set("namespace", name_space_);
  out.set("operation", operation_);
  out.set("userInfo", user_value(request_.context.user));
  out.set("dryRun", request_.is_dry_run());
  if (request_.operation != Operation::connect) out.set("options", options_value(request_));
  return out;
}

Result<api::PolicyInput> PolicyRequest::view(const api::ServedAs& served) const {
  ResourcePtr other = resources_->find(served.group, served.version, served.resource);
  const Resource& resource = other ? *other : request_.resource;
  api::PolicyInput made;
  if (!binding_.is_null()) {
    made.object = binding_;
  } else {
    DIBS_TRY(made.object, shown(resource, request_.object_if_any()));
    DIBS_TRY(made.old_object, shown(resource, request_.old_if_any()));
  }
  made.request = request_value(served, resource);
  return made;
}

Result<api::PolicyInput> PolicyRequest::input(const api::ServedAs& served) {
  std::string key = cat(served.group, "/", served.version, "/", served.resource);
  if (auto found = inputs_.find(key); found != inputs_.end()) return found->second;
  DIBS_TRY(api::PolicyInput made, view(served));
  DIBS_TRY(Value object, name_space());
  made.namespace_object = visible_namespace(object);
  if (!authorize_) {
    authorize_ = std::make_shared<const cel::Authorize>(
        authorizer_of(sources_.access, request_.context.user));
  }
  made.authorize = authorize_;
  made.resource.group = request_.resource.group;
  made.resource.resource = request_.resource.plural;
  made.resource.subresource = request_.subresource;
  made.resource.namespace_name = name_space_;
  made.resource.name = name_;
  inputs_[key] = made;
  return made;
}

}  // namespace dibs::server
