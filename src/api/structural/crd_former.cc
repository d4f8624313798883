#include "api/structural/crd_former.h"

#include <utility>

namespace dibs::api {
namespace {

using json::Value;

Value with_column_paths(const Value& columns) {
  Value out = Value::array();
  for (const Value& column : columns.items()) {
    Value one = column;
    if (one.contains("JSONPath")) one.set("jsonPath", one["JSONPath"]);
    one.erase("JSONPath");
    out.push(std::move(one));
  }
  return out;
}

/// What stands above the versions counts for those that have none of their own.
Value version_of(const Value& version, const Value& spec) {
  Value out = version;
  const std::pair<const char*, const char*> common[] = {
      {"schema", "validation"},
      {"subresources", "subresources"},
      {"additionalPrinterColumns", "additionalPrinterColumns"},
      {"selectableFields", "selectableFields"}};
  for (const auto& [own, above] : common) {
    if (!out.contains(own) && spec.contains(above)) out.set(own, spec[above]);
  }
  if (out.contains("additionalPrinterColumns")) {
    out.set("additionalPrinterColumns", with_column_paths(out["additionalPrinterColumns"]));
  }
  return out;
}

Value conversion_of(const Value& former) {
  Value out = former;
  Value webhook = Value::object();
  if (former.contains("webhookClientConfig")) {
    webhook.set("clientConfig", former["webhookClientConfig"]);
  }
  if (former.contains("conversionReviewVersions")) {
    webhook.set("conversionReviewVersions", former["conversionReviewVersions"]);
  }
  out.erase("webhookClientConfig");
  out.erase("conversionReviewVersions");
  if (!webhook.empty()) out.set("webhook", std::move(webhook));
  return out;
}

}  // namespace

Value definition_from_former(const Value& former) {
  Value out = former;
  out.set("apiVersion", "apiextensions.k8s.io/v1");
  const Value& spec = former["spec"];
  Value next = spec;
  Value versions = Value::array();
  for (const Value& version : spec["versions"].items()) versions.push(version_of(version, spec));
  if (versions.empty() && spec["version"].is_string()) {
    versions.push(version_of(
        Value::object({{"name", spec["version"]}, {"served", true}, {"storage", true}}), spec));
  }
  next.set("versions", std::move(versions));
  for (const char* gone :
       {"version", "validation", "subresources", "additionalPrinterColumns", "selectableFields"}) {
    next.erase(gone);
  }
  if (!spec["preserveUnknownFields"].as_bool()) next.erase("preserveUnknownFields");
  if (spec.contains("conversion")) next.set("conversion", conversion_of(spec["conversion"]));
  out.set("spec", std::move(next));
  return out;
}

}  // namespace dibs::api
