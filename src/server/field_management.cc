#include "server/field_management.h"

#include "base/strings.h"

namespace dibs::server {
namespace {

/// Built-in kinds that are served in forms of their own. Custom ones only change their name, or are
/// written as they are served.
bool has_own_form(const Resource& resource) { return resource.from_storage && !resource.custom; }

ResourcePtr of_version(const Context& context, const Resource& resource,
                       std::string_view api_version) {
  if (!context.resources) return nullptr;
  auto slash = api_version.find('/');
  if (slash == std::string_view::npos)
    return context.resources->find("", api_version, resource.plural);
  return context.resources->find(api_version.substr(0, slash), api_version.substr(slash + 1),
                                 resource.plural);
}

/// Through the stored form, or by a webhook. Versions that are not served are not known.
api::VersionConverter converter(const Context& context, const Resource& resource) {
  return [&context, &resource](
             const Value& object,
             std::string_view api_version) -> Result<std::optional<api::VersionedObject>> {
    ResourcePtr target = of_version(context, resource, api_version);
    ResourcePtr source = of_version(context, resource, object["apiVersion"].as_string());
    if (!target || !source) return std::optional<api::VersionedObject>();
    Value stored = object;
    if (source->to_storage) {
      DIBS_TRY(stored, source->to_storage(object, nullptr, false));
    }
    if (target->from_storage) {
      DIBS_TRY(stored, target->from_storage(stored));
    }
    return std::optional(api::VersionedObject{std::move(stored), target->schema});
  };
}

}  // namespace

WriterOf::WriterOf(const Context& context, const Resource& resource)
    : api_version_(resource.hub_group.empty()
                       ? resource.hub_version
                       : cat(resource.hub_group, "/", resource.hub_version)) {
  bool status_write =
      context.info.subresource == "status" || context.info.subresource == "approval";
  if (resource.custom || has_own_form(resource)) api_version_ = resource.api_version();
  if (has_own_form(resource) || resource.conversion) convert_ = converter(context, resource);
  static const api::FieldSet spec = api::FieldSet::of({{"spec"}});
  static const api::FieldSet status = api::FieldSet::of({{"status"}});
  static const api::FieldSet both = spec.united(status);
  if (status_write && resource.schema) {
    for (const api::Field& field : resource.schema->fields) {
      if (field.name == "status" || field.name == "metadata" || field.name == "kind" ||
          field.name == "apiVersion") {
        continue;
      }
      reset_ = reset_.united(field.name == "spec" ? spec : api::FieldSet::of({{field.name}}));
    }
  } else if (resource.rules->keeps_spec) {
    reset_ = both;
  } else if (resource.rules->has_status) {
    reset_ = status;
  }
  writer_.schema = resource.schema;
  writer_.api_version = api_version_;
  writer_.kind = resource.kind;
  writer_.manager = context.field_manager;
  writer_.subresource = context.info.subresource;
  writer_.reset = &reset_;
  writer_.custom = resource.custom;
  writer_.now = context.now;
  if (convert_) writer_.convert = &convert_;
}

Value track_write(const Context& context, const Resource& resource, const Value* old, Value object,
                  bool forgets) {
  if (!resource.schema) return object;
  WriterOf writer(context, resource);
  if (!has_own_form(resource))
    return api::track_update(writer.get(), old, std::move(object), forgets);
  std::optional<Value> live;
  // Conversions of built-in kinds do not fail.
  if (old) live = resource.from_storage(*old).value();
  Value tracked = api::track_update(writer.get(), live ? &*live : nullptr,
                                    resource.from_storage(object).value(), forgets);
  if (const Value* entries = tracked["metadata"].find("managedFields")) {
    object.mut("metadata").set("managedFields", *entries);
  } else {
    object.mut("metadata").erase("managedFields");
  }
  return object;
}

std::string field_manager_of(const net::Request& request, const net::Target& target) {
  if (auto given = target.get("fieldManager"); !given.empty()) return std::string(given);
  auto agent = request.headers.get("User-Agent");
  std::string manager(agent.substr(0, agent.find('/')));
  if (manager.size() > 128) manager.resize(128);
  return manager;
}

}  // namespace dibs::server
