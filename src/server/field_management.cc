#include "server/field_management.h"

#include "base/strings.h"

namespace dibs::server {

WriterOf::WriterOf(const Context& context, const Resource& resource)
    : api_version_(resource.hub_group.empty()
                       ? resource.hub_version
                       : cat(resource.hub_group, "/", resource.hub_version)) {
  bool status_write =
      context.info.subresource == "status" || context.info.subresource == "approval";
  if (resource.custom) api_version_ = resource.api_version();
  if (status_write && resource.schema) {
    for (const api::Field& field : resource.schema->fields) {
      if (field.name == "status" || field.name == "metadata" || field.name == "kind" ||
          field.name == "apiVersion") {
        continue;
      }
      api::FieldPath path{api::PathElement::field(field.name)};
      reset_.insert(path);
    }
  } else if (resource.kind == "CertificateSigningRequest" &&
             resource.hub_group == "certificates.k8s.io") {
    reset_ = api::FieldSet::of({{"spec"}, {"status"}});
  } else if (resource.rules->has_status) {
    reset_ = api::FieldSet::of({{"status"}});
  }
  writer_.schema = resource.schema;
  writer_.api_version = api_version_;
  writer_.kind = resource.kind;
  writer_.manager = context.field_manager;
  writer_.subresource = context.info.subresource;
  writer_.reset = &reset_;
  writer_.custom = resource.custom;
  writer_.now = context.now;
}

Value track_write(const Context& context, const Resource& resource, const Value* old,
                  Value object) {
  if (!resource.schema) return object;
  WriterOf writer(context, resource);
  return api::track_update(writer.get(), old, std::move(object), context.forget_managers);
}

std::string field_manager_of(const net::Request& request, const net::Target& target) {
  if (auto given = target.get("fieldManager"); !given.empty()) return std::string(given);
  auto agent = request.headers.get("User-Agent");
  std::string manager(agent.substr(0, agent.find('/')));
  if (manager.size() > 128) manager.resize(128);
  return manager;
}

}  // namespace dibs::server
