#include "server/admission_configuration.h"

#include <utility>

#include "api/schema/builtin.h"
#include "api/schema/decode.h"
#include "base/strings.h"
#include "json/yaml.h"

namespace dibs::server {
namespace {

using json::Value;

Result<Value> read_yaml(runtime::Files& files, const std::string& path) {
  DIBS_TRY(const std::string text, files.read(path));
  std::vector<std::string> duplicates;
  DIBS_TRY(Value value, json::parse_yaml(text, &duplicates));
  if (!duplicates.empty()) {
    return Error::bad_request(cat(path, ": ", join(duplicates, ", ")));
  }
  return value;
}

std::string beside(const std::string& file, const std::string& name) {
  if (name.starts_with('/')) return name;
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? name : cat(file.substr(0, slash + 1), name);
}

/// An empty file means the defaults, as no file does.
Result<api::PodSecurityConfiguration> read_pod_security(runtime::Files& files,
                                                        const std::string& path,
                                                        const Value& plugin) {
  if (!plugin["configuration"].is_null()) {
    return api::read_pod_security_configuration(plugin["configuration"]);
  }
  const std::string name = plugin["path"].str();
  if (name.empty()) return api::PodSecurityConfiguration();
  const std::string own = beside(path, name);
  DIBS_TRY(const Value source, read_yaml(files, own));
  if (source.is_null()) return api::PodSecurityConfiguration();
  auto made = api::read_pod_security_configuration(source);
  if (!made.ok()) return made.error().within(own);
  return made;
}

}  // namespace

Result<api::PodSecurityConfiguration> read_admission_configuration(runtime::Files& files,
                                                                   const std::string& path) {
  DIBS_TRY(const Value source, read_yaml(files, path));
  const std::string_view version = source["apiVersion"].as_string();
  if (source["kind"].as_string() != "AdmissionConfiguration" ||
      (version != "apiserver.config.k8s.io/v1" && version != "apiserver.k8s.io/v1alpha1")) {
    return Error::bad_request(
        cat("no kind ", quoted(source["kind"].as_string()), " is registered for version ",
            quoted(version), ": must be an AdmissionConfiguration of apiserver.config.k8s.io/v1"));
  }
  std::vector<std::string> strict;
  DIBS_TRY(const Value made,
           api::decode(source, *api::builtin_type("apiserver/v1.AdmissionConfiguration"),
                       api::Strictness::strict, strict));
  api::PodSecurityConfiguration out;
  bool given = false;
  for (std::size_t i = 0; i < made["plugins"].size(); ++i) {
    const Value& plugin = made["plugins"][i];
    const std::string place = cat("plugins[", i, "]");
    if (plugin["name"].as_string() != "PodSecurity") {
      return Error::bad_request(
          cat(place, ".name: ", quoted(plugin["name"].as_string()),
              " is no plugin that takes a configuration: only PodSecurity is"));
    }
    if (std::exchange(given, true)) {
      return Error::bad_request(cat(place, ".name: PodSecurity is configured twice"));
    }
    auto read = read_pod_security(files, path, plugin);
    if (!read.ok()) return read.error().within(cat(place, ".configuration"));
    out = std::move(read).value();
  }
  return out;
}

}  // namespace dibs::server
