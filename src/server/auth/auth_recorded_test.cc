// Replays recorded requests of users, nodes and accounts on the level of decisions: who is refused,
// in which words, and what reviews say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "api/schema/recordings_for_test.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/patch.h"
#include "server/auth/authorizer.h"
#include "server/auth/bootstrap_roles.h"
#include "server/auth/escalation.h"
#include "server/auth/node_restriction.h"

namespace dibs::server::auth {
namespace {

struct Request {
  RequestAttributes what;
  bool dry_run = false;
};

Request request_of(std::string_view method, const std::string& full_path) {
  Request request;
  std::size_t mark = full_path.find('?');
  std::string path = full_path.substr(0, mark);
  std::map<std::string, std::string> query;
  if (mark != std::string::npos) {
    for (std::string_view pair : split(std::string_view(full_path).substr(mark + 1), '&')) {
      std::size_t equals = pair.find('=');
      std::string value;
      if (equals != std::string_view::npos) percent_decode(pair.substr(equals + 1), true, value);
      query[std::string(pair.substr(0, equals))] = value;
    }
  }
  RequestAttributes& what = request.what;
  auto parts = split(path, '/');
  std::size_t at = 0;
  what.is_resource = true;
  if (parts.size() > 3 && parts[1] == "api") {
    what.version = parts[2];
    at = 3;
  } else if (parts.size() > 4 && parts[1] == "apis") {
    what.group = parts[2];
    what.version = parts[3];
    at = 4;
  } else {
    what.is_resource = false;
  }
  static const std::map<std::string_view, std::string_view> verbs = {{"GET", "get"},
                                                                     {"POST", "create"},
                                                                     {"PUT", "update"},
                                                                     {"PATCH", "patch"},
                                                                     {"DELETE", "delete"}};
  if (!what.is_resource) {
    what.path = path;
    what.verb = to_lower(method);
    return request;
  }
  if (parts[at] == "namespaces" && parts.size() > at + 1) {
    what.name_space = parts[at + 1];
    if (parts.size() > at + 2) at += 2;
  }
  what.resource = parts[at];
  if (parts.size() > at + 1) what.name = parts[at + 1];
  if (parts.size() > at + 2) what.subresource = parts[at + 2];
  what.verb = verbs.at(method);
  what.field_selector = query["fieldSelector"];
  if (what.name.empty()) {
    if (what.verb == "get") what.verb = query.contains("watch") ? "watch" : "list";
    if (what.verb == "delete") what.verb = "deletecollection";
    constexpr std::string_view kByName = "metadata.name=";
    if (what.field_selector.starts_with(kByName) && what.verb != "create") {
      what.name = what.field_selector.substr(kByName.size());
    }
  }
  request.dry_run = query.contains("dryRun");
  return request;
}

class Replay {
 public:
  Replay() {
    for (const Value& object : bootstrap_roles()) rbac_.upsert(object);
  }

  void step(const std::string& session, std::size_t index, const Value& recorded);
  int judged() const { return judged_; }

 private:
  Result<> judge(const Request& request, const Value& body, const Value* old);
  void review(const std::string& where, const UserInfo& user, const Value& body,
              const Value& answer);
  void store(const Request& request, const std::string& name, const Value& object);
  std::string expand(std::string text) const;

  std::string session_;
  std::map<std::string, std::string> variables_;
  std::map<std::string, Value> stored_;
  Rbac rbac_;
  NodeAuthorizer nodes_;
  Authorizer authorizer_{nodes_, rbac_};
  int judged_ = 0;
};

std::string key_of(std::string_view resource, std::string_view space, std::string_view name) {
  return cat(resource, "/", space, "/", name);
}

std::string Replay::expand(std::string text) const {
  auto replace = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
      text.replace(at, from.size(), to);
    }
  };
  replace("${ns}", session_);
  for (const auto& [name, value] : variables_) replace(cat("${", name, "}"), value);
  return text;
}

Result<> Replay::judge(const Request& request, const Value& body, const Value* old) {
  const RequestAttributes& what = request.what;
  Decision decision = authorizer_.authorize(what);
  if (!decision.allowed) return refusal_error(what, decision.reason);
  auto authorize = [&](const RequestAttributes& other) { return authorizer_.authorize(other); };
  bool writes = what.verb != "get" && what.verb != "list" && what.verb != "watch";
  if (!writes) return success();
  Value object = body;
  if (what.verb == "patch" && old) object = json::apply_merge_patch(*old, body);
  std::string name = what.name.empty() ? object["metadata"]["name"].str() : what.name;
  if (what.group == "rbac.authorization.k8s.io" && what.verb != "delete") {
    return check_role_write(
        rbac_, {what.user, what.resource, what.name_space, what.name, object, old}, authorize);
  }
  NodeOperation operation = what.verb == "create"   ? NodeOperation::create
                            : what.verb == "delete" ? NodeOperation::remove
                                                    : NodeOperation::update;
  NodeLookups lookups;
  lookups.get = [&](std::string_view resource, std::string_view space,
                    std::string_view wanted) -> Result<Value> {
    auto found = stored_.find(key_of(resource, space, wanted));
    if (found == stored_.end()) return Error::not_found("not found");
    return found->second;
  };
  lookups.authorize = authorize;
  return check_node_write({what.user, operation, what.group, what.resource, what.subresource,
                           what.name_space, name, what.verb == "delete" ? nullptr : &object, old},
                          lookups);
}

void Replay::review(const std::string& where, const UserInfo& user, const Value& body,
                    const Value& answer) {
  const Value& spec = body["spec"];
  RequestAttributes what;
  what.user = user;
  if (spec.contains("user") || spec.contains("groups")) {
    what.user = {spec["user"].str(), "", {}, {}};
    for (const Value& group : spec["groups"].items()) what.user.groups.push_back(group.str());
  }
  const Value& resource = spec["resourceAttributes"];
  what.is_resource = resource.is_object();
  what.verb = (what.is_resource ? resource : spec["nonResourceAttributes"])["verb"].str();
  what.path = spec["nonResourceAttributes"]["path"].str();
  what.group = resource["group"].str();
  what.resource = resource["resource"].str();
  what.subresource = resource["subresource"].str();
  what.name_space = resource["namespace"].str();
  what.name = resource["name"].str();
  Decision decision = authorizer_.authorize(what);
  ++judged_;
  EXPECT_EQ(decision.allowed, answer["status"]["allowed"].as_bool()) << where;
  EXPECT_EQ(decision.reason, answer["status"]["reason"].str()) << where;
}

void Replay::store(const Request& request, const std::string& name, const Value& object) {
  const RequestAttributes& what = request.what;
  stored_[key_of(what.resource, what.name_space, name)] = object;
  rbac_.upsert(object);
  nodes_.upsert(object);
}

void Replay::step(const std::string& session, std::size_t index, const Value& recorded) {
  session_ = session;
  std::string method = recorded["method"].str();
  if (method.empty() || recorded["path"].as_string().find("/watch/") != std::string_view::npos) {
    return;
  }
  Request request = request_of(method, expand(recorded["path"].str()));
  RequestAttributes& what = request.what;
  const Value& headers = recorded["headers"];
  if (headers.contains("Authorization") && !headers["Authorization"].as_string().empty()) return;
  for (const auto& [key, value] : headers.members()) {
    if (key.starts_with("Impersonate-")) return;
  }
  if (headers.contains("Authorization")) {
    what.user = {std::string(kAnonymous), "", {std::string(kUnauthenticated)}, {}};
  } else if (recorded.contains("as")) {
    what.user.name = expand(recorded["as"]["user"].str());
    for (const Value& group : recorded["as"]["groups"].items()) {
      what.user.groups.push_back(group.str());
    }
    std::string_view sort = what.user.name == kAnonymous ? kUnauthenticated : kAuthenticated;
    if (!what.user.in_group(sort)) what.user.groups.emplace_back(sort);
  } else {
    what.user = {"admin", "", {std::string(kMasters), std::string(kAuthenticated)}, {}};
  }
  std::string where = cat(session, "[", index, "] ", method, " ", recorded["path"].as_string());
  int code = static_cast<int>(recorded["expect"]["code"].as_int());
  const Value& answer = recorded["expect"]["body"];
  Value body =
      recorded.contains("body") ? *json::parse(expand(json::write(recorded["body"]))) : Value();
  std::string name = what.name.empty() ? body["metadata"]["name"].str() : what.name;
  auto found = stored_.find(key_of(what.resource, what.name_space, name));
  const Value* old = found == stored_.end() || method == "POST" ? nullptr : &found->second;
  Value before = old ? *old : Value();

  Result<> judged = judge(request, body, old ? &before : nullptr);

  bool is_refusal = code == 403 || (code == 404 && !judged.ok());
  // Refused by another plugin of the server.
  if (code == 403 &&
      answer["message"].as_string().find("a mirror pod may not") != std::string_view::npos) {
    return;
  }
  if (is_refusal) {
    ++judged_;
    ASSERT_FALSE(judged.ok()) << where << "\n" << answer["message"].as_string();
    if (answer.is_object()) {
      EXPECT_EQ(judged.error().message(), expand(answer["message"].str())) << where;
    }
    EXPECT_EQ(http_status(judged.error().code()), code) << where;
    return;
  }
  if (code != 401 && code != 400) {
    ++judged_;
    EXPECT_TRUE(judged.ok()) << where << "\n" << judged.error().message();
  }
  if (what.group == "authorization.k8s.io" && code == 201 &&
      what.resource.find("accessreviews") != std::string::npos) {
    review(where, what.user, body, answer);
  }
  if (code / 100 != 2 || request.dry_run ||
      (!what.subresource.empty() && what.subresource != "status")) {
    return;
  }
  if (method == "DELETE") {
    stored_.erase(key_of(what.resource, what.name_space, name));
    for (const char* kind : {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}) {
      if (what.resource == cat(to_lower(kind), "s")) rbac_.remove(kind, what.name_space, name);
    }
    if (what.resource == "pods") nodes_.remove("Pod", what.name_space, name);
  } else if (method != "GET") {
    Value object = answer.is_object() ? answer : body;
    // Marks are of the recording; the next request names what was saved.
    for (const auto& [variable, ignored] : recorded["save"].members()) {
      variables_[std::string(variable)] = cat("saved-", variable);
    }
    object = *json::parse(expand(json::write(object)));
    if (!what.name_space.empty()) object.mut("metadata").set("namespace", what.name_space);
    store(request, name, object);
  }
}

class RecordedDecisions : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(RecordedDecisions, are_as_recorded) {
  const char* file = GetParam().first;
  const std::string session = GetParam().second;
  Replay replay;
  bool found =
      api::for_each_step(file, [&](const std::string& name, std::size_t i, const Value& step) {
        if (name == session) replay.step(name, i, step);
      });
  if (!found) GTEST_SKIP() << "no recordings at hand";
  EXPECT_GT(replay.judged(), 0);
}

INSTANTIATE_TEST_SUITE_P(Sessions, RecordedDecisions,
                         testing::Values(std::pair("cluster", "rbac-escalation"),
                                         std::pair("cluster", "access-reviews"),
                                         std::pair("cluster", "forbidden-messages"),
                                         std::pair("cluster", "impersonation-identity"),
                                         std::pair("cluster", "node-authorizer-graph"),
                                         std::pair("cluster", "node-restriction-node"),
                                         std::pair("cluster", "node-restriction-pods"),
                                         std::pair("reading", "reading-with-a-role"),
                                         std::pair("reading", "forbidden"),
                                         std::pair("resource", "dra-node-reads-claims"),
                                         std::pair("resource", "dra-node-writes-slices")),
                         [](const auto& info) {
                           std::string name = info.param.second;
                           for (char& c : name) {
                             if (c == '-') c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace dibs::server::auth
