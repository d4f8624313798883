#include "node/pods/pull_secrets.h"

#include <fnmatch.h>

#include <algorithm>

#include "base/image_reference.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::node {
namespace {

using json::Value;

/// "https://index.docker.io/v1/", "registry:5000/team" or "*.example.com" against
/// "docker.io/library/busybox".
bool covers(std::string_view key, std::string_view repository) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (key.starts_with(scheme)) key.remove_prefix(scheme.size());
  }
  for (const std::string_view version : {"/", "/v1", "/v2"}) {
    if (key.ends_with(version)) key.remove_suffix(version.size());
  }
  std::string pattern(key.substr(0, key.find('/')));
  if (pattern == "index.docker.io") pattern = "docker.io";
  const std::string host(repository.substr(0, repository.find('/')));
  // A star stands for a part of the name, not for several.
  if (std::count(pattern.begin(), pattern.end(), '.') !=
          std::count(host.begin(), host.end(), '.') ||
      ::fnmatch(pattern.c_str(), host.c_str(), 0) != 0) {
    return false;
  }
  const auto slash = key.find('/');
  if (slash == std::string_view::npos) return true;
  const std::string_view path = key.substr(slash);
  const std::string_view wanted = repository.substr(host.size());
  return wanted.starts_with(path) && (wanted.size() == path.size() || wanted[path.size()] == '/');
}

/// registry: {auth}, or registry: {username, password}.
Value logins_in(const Value& secret) {
  const Value& data = secret["data"];
  const bool old = data.contains(".dockercfg");
  std::string text;
  if (!base64_decode(data[old ? ".dockercfg" : ".dockerconfigjson"].as_string(), text)) return {};
  const auto config = json::parse(text);
  if (!config.ok()) return {};
  return old ? *config : (*config)["auths"];
}

std::string auth_of(const Value& login) {
  if (login["auth"].is_string()) return login["auth"].str();
  if (!login["username"].is_string()) return "";
  return base64_encode(cat(login["username"].as_string(), ":", login["password"].as_string()));
}

}  // namespace

std::vector<PullLogin> pull_logins(const std::string& image, const std::vector<Value>& secrets) {
  const auto reference = parse_image_reference(image);
  if (!reference) return {};
  std::vector<std::pair<std::size_t, PullLogin>> found;
  for (const Value& secret : secrets) {
    const Value logins = logins_in(secret);
    for (const auto& [key, login] : logins.members()) {
      const std::string auth = auth_of(login);
      if (!auth.empty() && covers(key, reference->repository))
        found.push_back({key.size(), {auth}});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<PullLogin> out;
  for (auto& [size, login] : found) out.push_back(std::move(login));
  return out;
}

}  // namespace dibs::node
