#include "server/custom_kinds.h"

#include "api/expressions/crd_validator.h"
#include "api/structural/crd_rules.h"
#include "api/structural/custom_rules.h"
#include "api/structural/defaults.h"
#include "api/structural/prune.h"
#include "api/structural/structural.h"
#include "base/strings.h"

namespace dibs::server {

struct CustomKind::Version {
  api::CompiledSchemaPtr schema;
  api::KindRules rules;
  api::CustomPrinter printer;
  std::optional<api::ScalePaths> scale;
};

CustomKind::~CustomKind() = default;

namespace {

const CustomKind::Version& version_of(const CustomKind& kind, std::string_view version) {
  return *kind.versions.find(version)->second;
}

Result<std::shared_ptr<const CustomKind::Version>> compile_version(const Value& version) {
  const Value& subresources = version["subresources"];
  api::CustomVersion parts;
  DIBS_TRY(parts.schema, api::compile_schema(version["schema"]["openAPIV3Schema"]));
  parts.cel = api::make_cel_validator(version["schema"]["openAPIV3Schema"]);
  parts.has_status = subresources.contains("status");
  if (const Value* scale = subresources.find("scale"); scale && scale->is_object()) {
    parts.scale =
        api::ScalePaths{(*scale)["specReplicasPath"].str(), (*scale)["statusReplicasPath"].str(),
                        (*scale)["labelSelectorPath"].str()};
  }
  for (const Value& field : version["selectableFields"].items())
    parts.selectable.push_back(field["jsonPath"].str());
  auto schema = parts.schema;
  auto scale = parts.scale;
  return std::shared_ptr<const CustomKind::Version>(
      new CustomKind::Version{schema, api::make_custom_rules(std::move(parts)),
                              api::CustomPrinter(version["additionalPrinterColumns"]), scale});
}

std::vector<std::string> strings_of(const Value& list) {
  std::vector<std::string> out;
  for (const Value& item : list.items()) out.push_back(item.str());
  return out;
}

/// Objects are stored as they were written, under the version that stores; the others only change
/// the name.
Value with_api_version(const Value& object, const std::string& api_version) {
  Value out = object;
  out.set("apiVersion", api_version);
  return out;
}

}  // namespace

Result<std::shared_ptr<const CustomKind>> compile_definition(const Value& definition) {
  auto kind = std::make_shared<CustomKind>();
  kind->definition = definition;
  for (const Value& version : definition["spec"]["versions"].items()) {
    DIBS_TRY(auto compiled, compile_version(version));
    kind->versions.emplace(version["name"].str(), std::move(compiled));
  }
  return std::shared_ptr<const CustomKind>(std::move(kind));
}

std::vector<ResourcePtr> custom_resources(const std::shared_ptr<const CustomKind>& kind,
                                          bool ending) {
  std::vector<ResourcePtr> out;
  const Value& spec = kind->definition["spec"];
  const Value& names = spec["names"];
  std::string group = spec["group"].str();
  std::string storage;
  for (const Value& version : spec["versions"].items()) {
    if (version["storage"].as_bool()) storage = version["name"].str();
  }
  for (const Value& version : spec["versions"].items()) {
    if (!version["served"].as_bool()) continue;
    auto resource = std::make_shared<Resource>();
    resource->group = group;
    resource->version = version["name"].str();
    resource->plural = names["plural"].str();
    resource->singular = names["singular"].str();
    resource->kind = names["kind"].str();
    resource->list_kind = names["listKind"].str();
    resource->namespaced = spec["scope"].as_string() == "Namespaced";
    resource->short_names = strings_of(names["shortNames"]);
    resource->categories = strings_of(names["categories"]);
    resource->verbs = {"delete", "deletecollection", "get",    "list",
                       "patch",  "create",           "update", "watch"};
    resource->storage_prefix = cat("/registry/", group, "/", resource->plural, "/");
    resource->storage_version = storage;
    resource->hub_group = group;
    resource->hub_version = storage;
    resource->custom = true;
    resource->ending = ending;
    resource->openapi = version["schema"]["openAPIV3Schema"];
    const CustomKind::Version& compiled = version_of(*kind, resource->version);
    resource->schema = &compiled.schema->root();
    resource->rules = &compiled.rules;
    resource->custom_kind = kind;
    std::string api_version = resource->api_version();
    resource->deprecation = api::deprecation_warning(kind->definition, resource->version);
    if (version["subresources"].contains("status")) {
      resource->subresources.push_back(
          {"status", {group, resource->version, resource->kind}, {"get", "patch", "update"}});
    }
    if (compiled.scale) {
      resource->subresources.push_back(
          {"scale", {"autoscaling", "v1", "Scale"}, {"get", "patch", "update"}});
    }
    // A definition's storage version may have changed since an object was written, so the name is
    // always set. Fields that the other version does not have are dropped, as no conversion keeps
    // them.
    std::string stored = cat(group, "/", storage);
    resource->to_storage = [stored, kind, storage](const Value& object, const Value*,
                                                   bool) -> Result<Value> {
      Value out = with_api_version(object, stored);
      api::prune(out, version_of(*kind, storage).schema->root());
      return out;
    };
    resource->from_storage = [api_version, kind, name = resource->version](const Value& object) {
      Value out = with_api_version(object, api_version);
      api::prune(out, version_of(*kind, name).schema->root());
      apply_custom_defaults(*kind, name, out);
      return out;
    };
    out.push_back(std::move(resource));
  }
  return out;
}

Result<Value> decode_custom(const CustomKind& kind, std::string_view version, const Value& raw,
                            std::vector<std::string>& strict) {
  std::vector<std::string> unknown;
  DIBS_TRY(Value object,
           api::decode_custom(raw, version_of(kind, version).schema->root(), unknown));
  for (const std::string& path : unknown) strict.push_back(cat("unknown field ", quoted(path)));
  return object;
}

void apply_custom_defaults(const CustomKind& kind, std::string_view version, Value& object) {
  api::apply_custom_defaults(object, version_of(kind, version).schema->root());
}

const std::vector<api::Column>& custom_columns(const CustomKind& kind, std::string_view version) {
  return version_of(kind, version).printer.columns();
}

Value custom_cells(const CustomKind& kind, std::string_view version, const Value& object,
                   Time now) {
  return version_of(kind, version).printer.cells(object, now);
}

const api::ScalePaths* scale_paths(const CustomKind& kind, std::string_view version) {
  const auto& scale = version_of(kind, version).scale;
  return scale ? &*scale : nullptr;
}

}  // namespace dibs::server
