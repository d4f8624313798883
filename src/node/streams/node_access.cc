#include "node/streams/node_access.h"

#include <algorithm>
#include <functional>

#include "base/mutex.h"
#include "base/strings.h"

namespace dibs::node {
namespace {

constexpr Duration kTokenTime = std::chrono::minutes(2);
constexpr Duration kAllowedTime = std::chrono::minutes(5);
constexpr Duration kDeniedTime = std::chrono::seconds(30);
constexpr std::size_t kMaxKept = 1000;

const Error& unauthorized() {
  static const Error error(Code::unauthorized, "Unauthorized");
  return error;
}

std::string_view bearer(const net::Request& request) {
  const std::string_view header = trim(request.headers.get("Authorization"));
  const auto blank = header.find(' ');
  if (blank == std::string_view::npos) return {};
  if (!equals_ignoring_case(header.substr(0, blank), "bearer")) return {};
  return trim(header.substr(blank + 1));
}

bool is_under(std::string_view path, std::string_view root) {
  return path == root || (path.starts_with(root) && path[root.size()] == '/');
}

json::Value strings(const std::vector<std::string>& all) {
  json::Value out = json::Value::array();
  for (const std::string& one : all) out.push(one);
  return out;
}

template <typename Map>
void make_room(Map& map, Time now) {
  if (map.size() < kMaxKept) return;
  std::erase_if(map, [&](const auto& entry) { return entry.second.until <= now; });
  if (map.size() >= kMaxKept) map.clear();
}

}  // namespace

std::optional<Caller> caller_by_certificate(const net::Request& request) {
  if (!request.peer.certificate || request.peer.common_name.empty()) return std::nullopt;
  return Caller{request.peer.common_name, request.peer.organizations};
}

std::string node_subresource(std::string_view path) {
  if (is_under(path, "/stats")) return "stats";
  if (is_under(path, "/metrics")) return "metrics";
  if (is_under(path, "/logs")) return "log";
  if (is_under(path, "/checkpoint")) return "checkpoint";
  if (path == "/healthz") return "healthz";
  if (path == "/pods" || path == "/runningpods" || path == "/runningpods/") return "pods";
  if (path == "/configz") return "configz";
  return "proxy";
}

std::vector<std::string> sufficient_subresources(const std::string& subresource) {
  if (subresource == "pods" || subresource == "configz" || subresource == "healthz") {
    return {subresource, "proxy"};
  }
  return {subresource};
}

Error node_forbidden(const Caller& caller, const std::string& verb,
                     const std::string& subresource) {
  return Error::forbidden(cat("Forbidden (user=", caller.user, ", verb=", verb,
                              ", resource=nodes, subresource(s)=[",
                              join(sufficient_subresources(subresource), " "), "])"));
}

std::string node_verb(std::string_view method) {
  if (method == "POST") return "create";
  if (method == "PUT") return "update";
  if (method == "PATCH") return "patch";
  if (method == "DELETE") return "delete";
  return "get";
}

NodeAccess::NodeAccess(client::Client& client, runtime::Runtime& runtime, std::string node_name)
    : client_(client), runtime_(runtime), node_name_(std::move(node_name)) {}

Result<Caller> NodeAccess::authenticate(const net::Request& request) {
  if (auto caller = caller_by_certificate(request)) return *caller;
  const std::string token(bearer(request));
  if (token.empty()) return unauthorized();
  const Time now = runtime_.clock.now();
  {
    const MutexLock lock(mutex_);
    if (auto known = tokens_.find(token); known != tokens_.end() && now < known->second.until) {
      if (!known->second.good) return unauthorized();
      return known->second.caller;
    }
  }
  using json::Value;
  auto review = client_.create({"authentication.k8s.io", "v1", "tokenreviews"}, "",
                               Value::object({{"apiVersion", "authentication.k8s.io/v1"},
                                              {"kind", "TokenReview"},
                                              {"spec", Value::object({{"token", token}})}}));
  if (!review.ok()) return review.error().within("token review");
  KnownToken answer;
  answer.until = now + kTokenTime;
  answer.good = (*review)["status"]["authenticated"].as_bool();
  const Value& user = (*review)["status"]["user"];
  answer.caller.user = user["username"].str();
  for (const Value& group : user["groups"].items()) answer.caller.groups.push_back(group.str());
  const MutexLock lock(mutex_);
  make_room(tokens_, now);
  tokens_[token] = answer;
  if (!answer.good) return unauthorized();
  return answer.caller;
}

Result<> NodeAccess::authorize(const Caller& caller, const std::string& verb,
                               const std::string& subresource) {
  const Error denied = node_forbidden(caller, verb, subresource);
  const auto& groups = caller.groups;
  if (std::find(groups.begin(), groups.end(), "system:masters") != groups.end()) return success();
  const Time now = runtime_.clock.now();
  std::string key = cat(caller.user, '\n', verb, '\n', subresource);
  for (const std::string& group : groups) append(key, '\n', group);
  {
    const MutexLock lock(mutex_);
    if (auto known = answers_.find(key); known != answers_.end() && now < known->second.until) {
      if (!known->second.allowed) return denied;
      return success();
    }
  }
  using json::Value;
  bool allowed = false;
  for (const std::string& one : sufficient_subresources(subresource)) {
    auto review = client_.create(
        {"authorization.k8s.io", "v1", "subjectaccessreviews"}, "",
        Value::object({{"apiVersion", "authorization.k8s.io/v1"},
                       {"kind", "SubjectAccessReview"},
                       {"spec", Value::object({{"user", caller.user},
                                               {"groups", strings(groups)},
                                               {"resourceAttributes",
                                                Value::object({{"verb", verb},
                                                               {"version", "v1"},
                                                               {"resource", "nodes"},
                                                               {"subresource", one},
                                                               {"name", node_name_}})}})}}));
    if (!review.ok()) return review.error().within("access review");
    allowed = (*review)["status"]["allowed"].as_bool();
    if (allowed) break;
  }
  const MutexLock lock(mutex_);
  make_room(answers_, now);
  answers_[key] = {allowed, now + (allowed ? kAllowedTime : kDeniedTime)};
  if (!allowed) return denied;
  return success();
}

}  // namespace dibs::node
