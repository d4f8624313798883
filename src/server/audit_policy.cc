#include "server/audit_policy.h"

#include <algorithm>

#include "api/schema/field_error.h"
#include "base/strings.h"
#include "json/yaml.h"

namespace dibs::server {
namespace {

using api::Path;
using json::Value;

constexpr std::string_view kLevels[] = {"None", "Metadata", "Request", "RequestResponse"};
constexpr std::string_view kStages[] = {"RequestReceived", "ResponseStarted", "ResponseComplete",
                                        "Panic"};

bool has(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool fits_path(std::string_view path, std::string_view shape) {
  if (shape == "*" || shape == path) return true;
  if (!shape.ends_with('*')) return false;
  return path.starts_with(shape.substr(0, shape.size() - 1));
}

/// Reads fields, and notes what is wrong with them.
class Reader {
 public:
  api::FieldErrors errors;

  /// A misspelt field would leave a rule without the limit that it was meant to have.
  void only(const Path& path, const Value& object, std::initializer_list<std::string_view> fields) {
    for (const auto& [key, value] : object.members()) {
      if (std::find(fields.begin(), fields.end(), key) == fields.end()) {
        errors.forbidden(path.child(key), "unknown field");
      }
    }
  }

  std::vector<std::string> texts(const Path& path, const Value& list) {
    std::vector<std::string> out;
    if (!list.is_null() && !list.is_array()) errors.type_invalid(path, list, "must be a list");
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i].is_string()) errors.type_invalid(path.index(i), list[i], "must be a string");
      out.push_back(list[i].str());
    }
    return out;
  }

  std::uint8_t stages(const Path& path, const Value& list) {
    std::uint8_t bits = 0;
    const auto named = texts(path, list);
    for (std::size_t i = 0; i < named.size(); ++i) {
      const auto* found = std::find(std::begin(kStages), std::end(kStages), named[i]);
      if (found == std::end(kStages)) {
        errors.invalid(path.index(i), named[i],
                       "allowed stages are "
                       "RequestReceived,ResponseStarted,ResponseComplete,Panic");
      } else {
        bits = static_cast<std::uint8_t>(bits | 1U << (found - kStages));
      }
    }
    return bits;
  }

  AuditLevel level(const Path& path, const Value& value) {
    if (value.as_string().empty()) {
      errors.required(path);
      return AuditLevel::none;
    }
    const auto* found = std::find(std::begin(kLevels), std::end(kLevels), value.as_string());
    if (found == std::end(kLevels)) {
      errors.not_supported(path, value, {std::begin(kLevels), std::end(kLevels)});
      return AuditLevel::none;
    }
    return static_cast<AuditLevel>(found - kLevels);
  }

  bool flag(const Path& path, const Value& value, bool fallback) {
    if (!value.is_null() && !value.is_boolean()) {
      errors.type_invalid(path, value, "must be true or false");
    }
    return value.as_bool(fallback);
  }

  void check_urls(const Path& path, const std::vector<std::string>& urls) {
    for (std::size_t i = 0; i < urls.size(); ++i) {
      const std::string& url = urls[i];
      if (url == "*") continue;
      if (!url.starts_with('/')) {
        errors.invalid(path.index(i), url,
                       "non-resource URL rules must begin with a '/' character");
      }
      if (!url.empty() && url.substr(0, url.size() - 1).find('*') != std::string::npos) {
        errors.invalid(path.index(i), url,
                       "non-resource URL wildcards '*' must be the final character of the rule");
      }
    }
  }
};

Error to_error(const api::FieldErrors& found) {
  std::vector<std::string> all;
  for (const auto& one : found.errors()) all.push_back(cat(one.field, ": ", one.text));
  return Error::invalid(all.size() == 1 ? all[0] : cat("[", join(all, ", "), "]"));
}

}  // namespace

std::string_view name_of(AuditLevel level) { return kLevels[static_cast<std::size_t>(level)]; }
std::string_view name_of(AuditStage stage) { return kStages[static_cast<std::size_t>(stage)]; }

Result<AuditPolicy> AuditPolicy::parse(std::string_view text) {
  DIBS_TRY(const Value source, json::parse_yaml(text));
  if (source["apiVersion"].as_string() != "audit.k8s.io/v1" ||
      source["kind"].as_string() != "Policy") {
    return Error::invalid(cat("must be a Policy of audit.k8s.io/v1, not ",
                              quoted(source["kind"].as_string()), " of ",
                              quoted(source["apiVersion"].as_string())));
  }
  Reader read;
  const Path top;
  read.only(top, source,
            {"apiVersion", "kind", "metadata", "rules", "omitStages", "omitManagedFields"});
  const std::uint8_t omitted = read.stages(Path("omitStages"), source["omitStages"]);
  const bool without_managers =
      read.flag(Path("omitManagedFields"), source["omitManagedFields"], false);
  AuditPolicy out;
  const Path rules("rules");
  if (source["rules"].empty()) return Error::invalid("loaded illegal policy with 0 rules");
  for (std::size_t i = 0; i < source["rules"].size(); ++i) {
    const Value& given = source["rules"][i];
    const Path at = rules.index(i);
    read.only(at, given,
              {"level", "users", "userGroups", "verbs", "resources", "namespaces",
               "nonResourceURLs", "omitStages", "omitManagedFields"});
    Rule& rule = out.rules_.emplace_back();
    rule.choice.level = read.level(at.child("level"), given["level"]);
    rule.choice.omitted_stages = static_cast<std::uint8_t>(
        omitted | read.stages(at.child("omitStages"), given["omitStages"]));
    rule.choice.omit_managed_fields =
        read.flag(at.child("omitManagedFields"), given["omitManagedFields"], without_managers);
    rule.users = read.texts(at.child("users"), given["users"]);
    rule.groups = read.texts(at.child("userGroups"), given["userGroups"]);
    rule.verbs = read.texts(at.child("verbs"), given["verbs"]);
    rule.namespaces = read.texts(at.child("namespaces"), given["namespaces"]);
    rule.urls = read.texts(at.child("nonResourceURLs"), given["nonResourceURLs"]);
    read.check_urls(at.child("nonResourceURLs"), rule.urls);
    const Path resources = at.child("resources");
    for (std::size_t j = 0; j < given["resources"].size(); ++j) {
      const Value& one = given["resources"][j];
      const Path here = resources.index(j);
      read.only(here, one, {"group", "resources", "resourceNames"});
      Resources& made = rule.resources.emplace_back();
      made.group = one["group"].str();
      made.resources = read.texts(here.child("resources"), one["resources"]);
      made.names = read.texts(here.child("resourceNames"), one["resourceNames"]);
      // "apps/v1" would never fit anything.
      if (made.group.find('/') != std::string::npos) {
        read.errors.invalid(here.child("group"), made.group,
                            "a group is named without its version");
      }
      if (!made.names.empty() && made.resources.empty()) {
        read.errors.invalid(here.child("resourceNames"), one["resourceNames"],
                            "using resourceNames requires at least one resource");
      }
    }
    if (!rule.urls.empty() && (!rule.resources.empty() || !rule.namespaces.empty())) {
      read.errors.invalid(at.child("nonResourceURLs"), given["nonResourceURLs"],
                          "rules cannot apply to both regular resources and non-resource URLs");
    }
  }
  if (!read.errors.empty()) return to_error(read.errors);
  return out;
}

AuditChoice AuditPolicy::choose(const auth::RequestAttributes& what, bool known) const {
  for (const Rule& rule : rules_) {
    if (fits(rule, what, known)) return rule.choice;
  }
  return {};
}

bool AuditPolicy::fits(const Rule& rule, const auth::RequestAttributes& what, bool known) {
  if (!rule.users.empty() && (!known || !has(rule.users, what.user.name))) return false;
  if (!rule.groups.empty() &&
      (!known || std::none_of(what.user.groups.begin(), what.user.groups.end(),
                              [&](const std::string& group) { return has(rule.groups, group); }))) {
    return false;
  }
  if (!rule.verbs.empty() && !has(rule.verbs, what.verb)) return false;
  if (!rule.namespaces.empty() || !rule.resources.empty()) {
    return what.is_resource && fits_resource(rule, what);
  }
  if (rule.urls.empty()) return true;
  return !what.is_resource &&
         std::any_of(rule.urls.begin(), rule.urls.end(),
                     [&](const std::string& url) { return fits_path(what.path, url); });
}

bool AuditPolicy::fits_resource(const Rule& rule, const auth::RequestAttributes& what) {
  if (!rule.namespaces.empty() && !has(rule.namespaces, what.name_space)) return false;
  if (rule.resources.empty()) return true;
  const std::string full =
      what.subresource.empty() ? what.resource : cat(what.resource, "/", what.subresource);
  for (const Resources& one : rule.resources) {
    if (one.group != "*" && one.group != what.group) continue;
    if (one.resources.empty()) return true;
    if (!one.names.empty() && !has(one.names, what.name)) continue;
    for (const std::string& named : one.resources) {
      if (named == "*" || named == full || named == cat(what.resource, "/*")) return true;
      if (!what.subresource.empty() && named == cat("*/", what.subresource)) return true;
    }
  }
  return false;
}

}  // namespace dibs::server
