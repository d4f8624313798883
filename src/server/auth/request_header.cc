#include "server/auth/request_header.h"

#include <algorithm>

#include "base/strings.h"
#include "net/tls.h"

namespace dibs::server::auth {
namespace {

bool has(const std::vector<std::string>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

bool is_one_of(const std::vector<std::string>& names, std::string_view header) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return equals_ignoring_case(name, header); });
}

bool begins_with(std::string_view header, std::string_view prefix) {
  return header.size() >= prefix.size() &&
         equals_ignoring_case(header.substr(0, prefix.size()), prefix);
}

std::string_view first_of(const net::Headers& headers, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (const auto value = headers.get(name); !value.empty()) return value;
  }
  return {};
}

}  // namespace

std::optional<UserInfo> front_proxy_user(const net::Request& request,
                                         const RequestHeaderOptions& options) {
  if (!request.headers.has(net::kFrontProxyField)) return std::nullopt;
  if (!options.allowed_names.empty() &&
      !has(options.allowed_names, request.headers.get(net::kFrontProxyField))) {
    return std::nullopt;
  }
  UserInfo user;
  user.name = first_of(request.headers, options.username_headers);
  if (user.name.empty()) return std::nullopt;
  user.uid = first_of(request.headers, options.uid_headers);
  for (const std::string& name : options.group_headers) {
    for (const std::string_view group : request.headers.all(name)) user.groups.emplace_back(group);
  }
  for (const std::string& prefix : options.extra_prefixes) {
    for (const auto& [name, value] : request.headers.fields()) {
      if (!begins_with(name, prefix)) continue;
      const std::string lower = to_lower(std::string_view(name).substr(prefix.size()));
      std::string key;
      if (!percent_decode(lower, false, key)) key = lower;
      user.extra[key].push_back(value);
    }
  }
  return user;
}

void clear_front_proxy_headers(net::Headers& headers, const RequestHeaderOptions& options) {
  static const RequestHeaderOptions kUsual;
  std::vector<std::string> found;
  for (const auto& [name, value] : headers.fields()) {
    for (const RequestHeaderOptions* one : {&kUsual, &options}) {
      const bool is_ours = name == net::kFrontProxyField;
      const bool is_prefixed =
          std::any_of(one->extra_prefixes.begin(), one->extra_prefixes.end(),
                      [&](const std::string& prefix) { return begins_with(name, prefix); });
      if (is_ours || is_prefixed || is_one_of(one->username_headers, name) ||
          is_one_of(one->uid_headers, name) || is_one_of(one->group_headers, name)) {
        found.push_back(name);
        break;
      }
    }
  }
  for (const std::string& name : found) headers.remove(name);
}

}  // namespace dibs::server::auth
