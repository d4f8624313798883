#include "server/custom_kinds.h"

#include <algorithm>

#include "api/expressions/crd_validator.h"
#include "api/structural/crd_rules.h"
#include "api/structural/custom_rules.h"
#include "api/structural/defaults.h"
#include "api/structural/embedded.h"
#include "api/structural/prune.h"
#include "api/structural/structural.h"
#include "base/strings.h"
#include "server/conversion.h"

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

std::string api_version_of(const CustomKind& kind, std::string_view version) {
  return cat(kind.definition["spec"]["group"].as_string(), "/", version);
}

/// Without a webhook versions differ in their name, which is always set: the storage version may
/// have changed since an object was written. Fields that the other version does not have are
/// dropped, as no conversion keeps them.
Value renamed(const CustomKind& kind, std::string_view version, Value object) {
  object.set("apiVersion", api_version_of(kind, version));
  api::prune(object, version_of(kind, version).schema->root());
  return object;
}

Result<Value> convert_one(const CustomKind& kind, std::string_view version, const Value& object) {
  DIBS_TRY(std::vector<Value> converted, convert_custom(kind, version, {object}));
  return std::move(converted.front());
}

}  // namespace

Result<std::shared_ptr<const CustomKind>> compile_definition(const Value& definition,
                                                             Conversions& conversions) {
  auto kind = std::make_shared<CustomKind>();
  kind->definition = definition;
  const Value& conversion = definition["spec"]["conversion"];
  if (conversion["strategy"].as_string() == "Webhook") {
    kind->conversion = std::make_shared<ConversionWebhook>(
        conversions, definition["metadata"]["name"].str(), conversion["webhook"]);
  }
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
    resource->deprecation = api::deprecation_warning(kind->definition, resource->version);
    if (version["subresources"].contains("status")) {
      resource->subresources.push_back(
          {"status", {group, resource->version, resource->kind}, {"get", "patch", "update"}});
    }
    if (compiled.scale) {
      resource->subresources.push_back(
          {"scale", {"autoscaling", "v1", "Scale"}, {"get", "patch", "update"}});
    }
    resource->from_storage = [kind, name = resource->version](const Value& object) {
      return convert_one(*kind, name, object);
    };
    resource->conversion = kind->conversion;
    if (!kind->conversion) {
      resource->to_storage = [kind, storage](const Value& object, const Value*, bool) {
        return Result<Value>(renamed(*kind, storage, object));
      };
    }
    out.push_back(std::move(resource));
  }
  return out;
}

Result<Value> decode_custom(const CustomKind& kind, std::string_view version, const Value& raw,
                            std::vector<std::string>& strict) {
  const auto known = kind.versions.find(version);
  api::CompiledSchemaPtr schema;
  if (known == kind.versions.end()) {
    DIBS_TRY(schema, api::compile_schema(Value::object({{"type", "object"}})));
  } else {
    schema = known->second->schema;
  }
  std::vector<std::string> unknown;
  DIBS_TRY(Value object, api::decode_custom(raw, schema->root(), unknown));
  for (const std::string& path : unknown) strict.push_back(cat("unknown field ", quoted(path)));
  return object;
}

Result<Value> decode_custom_body(const CustomKind& kind, const Value& raw,
                                 std::vector<std::string>& strict) {
  const Value& spec = kind.definition["spec"];
  const std::string_view api_version = raw["apiVersion"].as_string();
  const auto slash = std::min(api_version.find('/'), api_version.size());
  if (raw["kind"] == spec["names"]["kind"] &&
      api_version.substr(0, slash) == spec["group"].as_string()) {
    const auto version = api_version.substr(std::min(slash + 1, api_version.size()));
    return decode_custom(kind, version, raw, strict);
  }
  Value object = raw;
  std::vector<std::string> unknown;
  if (raw.contains("metadata")) {
    DIBS_TRY(Value metadata, api::decode_metadata(raw["metadata"], "metadata", unknown));
    object.set("metadata", std::move(metadata));
  }
  for (const std::string& path : unknown) strict.push_back(cat("unknown field ", quoted(path)));
  return object;
}

Result<std::vector<Value>> convert_custom(const CustomKind& kind, std::string_view version,
                                          std::vector<Value> objects) {
  if (kind.conversion) {
    // The webhook is shown what a client of the other version would be.
    for (Value& object : objects) {
      const std::string_view from = object["apiVersion"].as_string();
      const auto known = kind.versions.find(from.substr(from.find('/') + 1));
      if (known == kind.versions.end() || known->first == version) continue;
      api::prune(object, known->second->schema->root());
      api::apply_custom_defaults(object, known->second->schema->root());
    }
    DIBS_TRY(objects, kind.conversion->convert(std::move(objects), api_version_of(kind, version)));
  }
  for (Value& object : objects) {
    object = renamed(kind, version, std::move(object));
    apply_custom_defaults(kind, version, object);
  }
  return objects;
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
