#include "server/request_info.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/strings.h"
#include "base/time.h"

namespace dibs::server {
namespace {

std::string_view verb_of(std::string_view method) {
  if (method == "POST") return "create";
  if (method == "PUT") return "update";
  if (method == "PATCH") return "patch";
  if (method == "DELETE") return "delete";
  if (method == "GET" || method == "HEAD") return "get";
  return "";
}

}  // namespace

bool query_flag(const net::Target& target, std::string_view name) {
  if (!target.has(name)) return false;
  auto value = target.get(name);
  return value != "0" && to_lower(value) != "false";
}

Result<> check_timeout(const net::Target& target) {
  const auto text = target.get("timeout");
  if (text.empty()) return success();
  if (const auto parsed = parse_duration(text); !parsed.ok()) {
    return Error::bad_request(
        cat("invalid timeout specified in the request URL - ", parsed.error().message()));
  }
  return success();
}

RequestInfo parse_request_info(std::string_view method, const net::Target& target) {
  RequestInfo info;
  info.path = target.path;
  info.verb = to_lower(method);

  std::string_view path = target.path;
  if (!path.empty() && path.front() == '/') path.remove_prefix(1);
  if (!path.empty() && path.back() == '/') path.remove_suffix(1);
  std::vector<std::string_view> parts = split(path, '/');

  std::size_t next = 0;
  if (parts[0] == "api" && parts.size() >= 3) {
    info.core = true;
    info.version = parts[1];
    next = 2;
  } else if (parts[0] == "apis" && parts.size() >= 4) {
    info.group = parts[1];
    info.version = parts[2];
    next = 3;
  } else {
    return info;
  }
  info.is_resource = true;
  if (parts[next] == "watch" && parts.size() > next + 1) {
    info.legacy_watch = true;
    ++next;
  }

  std::span<const std::string_view> rest = std::span(parts).subspan(next);
  if (rest[0] == "namespaces" && rest.size() > 1) {
    info.name_space = rest[1];
    // /namespaces/x and /namespaces/x/status are about the Namespace itself.
    bool of_namespace = rest.size() == 2 || (info.core && rest.size() == 3 &&
                                             (rest[2] == "status" || rest[2] == "finalize"));
    info.in_namespace = !of_namespace || !info.core;
    if (!of_namespace) rest = rest.subspan(2);
  }
  info.resource = rest[0];
  if (rest.size() > 1) info.name = rest[1];
  if (rest.size() > 2) info.subresource = rest[2];
  info.parts_before_rest = parts.size() - rest.size() + std::min<std::size_t>(3, rest.size());
  for (std::size_t i = 3; i < rest.size(); ++i) append(info.rest, i > 3 ? "/" : "", rest[i]);

  if (auto verb = verb_of(method); !verb.empty()) {
    info.verb = verb;
    if (info.verb == "get" && info.name.empty()) {
      info.verb = query_flag(target, "watch") || info.legacy_watch ? "watch" : "list";
    } else if (info.verb == "get" && info.legacy_watch) {
      info.verb = "watch";
    } else if (info.verb == "delete" && info.name.empty()) {
      info.verb = "deletecollection";
    }
  }
  return info;
}

}  // namespace dibs::server
