#include "server/runtime_config.h"

#include <optional>
#include <vector>

#include "base/strings.h"

namespace dibs::server {
namespace {

constexpr std::string_view kStages[] = {"api/all", "api/ga", "api/beta", "api/alpha"};

std::string_view stage_of(std::string_view version) {
  if (version.find("alpha") != std::string_view::npos) return "api/alpha";
  return version.find("beta") != std::string_view::npos ? "api/beta" : "api/ga";
}

std::string version_key(const api::ResourceInfo& resource) {
  return cat(resource.group.empty() ? "api" : resource.group, "/", resource.version);
}

Result<bool> parse_bool(std::string_view key, std::string_view text) {
  if (text.empty() || text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return Error::bad_request(
      cat("invalid value ", quoted(text), " of ", key, ": must be true or false"));
}

}  // namespace

Result<RuntimeConfig> RuntimeConfig::parse(std::string_view text, const api::Catalog& known) {
  std::vector<std::string> names(std::begin(kStages), std::end(kStages));
  std::vector<std::string> resources;
  for (const api::GroupInfo& group : known.groups) {
    for (const api::VersionInfo& version : group.versions) {
      names.push_back(cat(group.name.empty() ? "api" : group.name, "/", version.version));
      for (const api::ResourceInfo& resource : version.resources)
        resources.push_back(cat(names.back(), "/", resource.plural));
    }
  }
  auto has = [](const std::vector<std::string>& list, std::string_view name) {
    for (const std::string& one : list) {
      if (one == name) return true;
    }
    return false;
  };
  RuntimeConfig config;
  for (std::string_view setting : split(text, ',')) {
    setting = trim(setting);
    if (setting.empty()) continue;
    std::size_t equals = setting.find('=');
    std::string key(trim(setting.substr(0, equals)));
    if (key == "v1") key = "api/v1";
    std::string_view value =
        equals == std::string_view::npos ? std::string_view() : trim(setting.substr(equals + 1));
    if (!has(names, key) && !has(resources, key)) {
      return Error::bad_request(
          cat("unknown api version ", quoted(key), "; known are ", join(names, ", ")));
    }
    DIBS_TRY(config.settings_[key], parse_bool(key, value));
  }
  return config;
}

bool RuntimeConfig::serves(const api::ResourceInfo& resource, bool by_default) const {
  auto said = [&](std::string_view key) -> std::optional<bool> {
    auto it = settings_.find(key);
    return it == settings_.end() ? std::nullopt : std::optional(it->second);
  };
  std::string version = version_key(resource);
  for (const std::string& key : {cat(version, "/", resource.plural), version,
                                 std::string(stage_of(resource.version)), std::string("api/all")}) {
    if (auto on = said(key)) return *on;
  }
  return by_default;
}

}  // namespace dibs::server
