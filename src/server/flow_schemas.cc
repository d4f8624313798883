#include "server/flow_schemas.h"

#include <algorithm>
#include <initializer_list>

#include "api/kinds/flow/flow_defaults.h"

namespace dibs::server {
namespace {

using json::Value;

constexpr std::string_view kAll = "*";
constexpr std::string_view kAccountPrefix = "system:serviceaccount:";

bool has(const std::vector<std::string>& list, std::string_view item) {
  if (list.size() == 1 && list[0] == kAll) return true;
  return std::find(list.begin(), list.end(), item) != list.end();
}

/// "pods" or "pods/log", without making the text.
bool has_resource(const std::vector<std::string>& list, const RequestInfo& info) {
  if (info.subresource.empty()) return has(list, info.resource);
  if (list.size() == 1 && list[0] == kAll) return true;
  return std::any_of(list.begin(), list.end(), [&](std::string_view item) {
    return item.size() == info.resource.size() + 1 + info.subresource.size() &&
           item.starts_with(info.resource) && item[info.resource.size()] == '/' &&
           item.ends_with(info.subresource);
  });
}

/// A rule for "/a" or "/a/*" is one for all below "/a/".
bool has_url(const std::vector<std::string>& list, std::string_view path) {
  return std::any_of(list.begin(), list.end(), [&](std::string_view url) {
    if (url == kAll || url == path) return true;
    if (url.ends_with('*')) url.remove_suffix(1);
    if (url.ends_with('/')) return path.starts_with(url);
    return path.size() > url.size() && path.starts_with(url) && path[url.size()] == '/';
  });
}

bool is_account(std::string_view user, const FlowSchema::Subject& subject) {
  if (!user.starts_with(kAccountPrefix)) return false;
  user.remove_prefix(kAccountPrefix.size());
  if (!user.starts_with(subject.name_space)) return false;
  user.remove_prefix(subject.name_space.size());
  if (!user.starts_with(':')) return false;
  return subject.name == kAll || user.substr(1) == subject.name;
}

bool is_subject(const auth::UserInfo& user, const FlowSchema::Subject& subject) {
  using Kind = FlowSchema::Subject::Kind;
  switch (subject.kind) {
    case Kind::user:
      return subject.name == kAll || subject.name == user.name;
    case Kind::group:
      return subject.name == kAll || user.in_group(subject.name);
    default:
      return is_account(user.name, subject);
  }
}

bool matches_rule(const FlowSchema::Rule& rule, const auth::UserInfo& user,
                  const RequestInfo& info) {
  if (std::none_of(rule.subjects.begin(), rule.subjects.end(),
                   [&](const auto& subject) { return is_subject(user, subject); }))
    return false;
  if (!info.is_resource) {
    return std::any_of(rule.urls.begin(), rule.urls.end(), [&](const auto& url) {
      return has(url.verbs, info.verb) && has_url(url.urls, info.path);
    });
  }
  return std::any_of(rule.resources.begin(), rule.resources.end(), [&](const auto& resource) {
    return has(resource.verbs, info.verb) && has_resource(resource.resources, info) &&
           has(resource.groups, info.group) &&
           (info.name_space.empty() ? resource.cluster : has(resource.namespaces, info.name_space));
  });
}

std::vector<std::string> texts(const Value& list) {
  std::vector<std::string> out;
  for (const Value& item : list.items()) out.push_back(item.str());
  return out;
}

unsigned number(const Value& value) {
  return static_cast<unsigned>(std::max<std::int64_t>(0, value.as_int()));
}

FlowSchema::Subject subject_of(const Value& object) {
  using Kind = FlowSchema::Subject::Kind;
  const std::string_view kind = object["kind"].as_string();
  if (kind == "User") return {Kind::user, object["user"]["name"].str(), {}};
  if (kind == "Group") return {Kind::group, object["group"]["name"].str(), {}};
  const Value& account = object["serviceAccount"];
  return {Kind::account, account["name"].str(), account["namespace"].str()};
}

FlowSchema::Rule rule_of(const Value& object) {
  FlowSchema::Rule rule;
  for (const Value& subject : object["subjects"].items())
    rule.subjects.push_back(subject_of(subject));
  for (const Value& one : object["resourceRules"].items()) {
    rule.resources.push_back({texts(one["verbs"]), texts(one["apiGroups"]), texts(one["resources"]),
                              texts(one["namespaces"]), one["clusterScope"].as_bool()});
  }
  for (const Value& one : object["nonResourceRules"].items())
    rule.urls.push_back({texts(one["verbs"]), texts(one["nonResourceURLs"])});
  return rule;
}

const Value& named(const std::vector<Value>& objects, std::string_view name) {
  return *std::find_if(objects.begin(), objects.end(), [&](const Value& object) {
    return object["metadata"]["name"].as_string() == name;
  });
}

}  // namespace

bool FlowSchema::matches(const auth::UserInfo& user, const RequestInfo& info) const {
  return std::any_of(rules.begin(), rules.end(),
                     [&](const Rule& rule) { return matches_rule(rule, user, info); });
}

std::string_view FlowSchema::distinguisher(const auth::UserInfo& user,
                                           const RequestInfo& info) const {
  if (distinguishes == By::user) return user.name;
  if (distinguishes == By::name_space) return info.name_space;
  return {};
}

void FlowTable::add_level(const Value& object) {
  const Value& spec = object["spec"];
  const Value& limited = spec["limited"];
  const Value& about = spec["type"].as_string() == "Exempt" ? spec["exempt"] : limited;
  const Value& queuing = limited["limitResponse"]["queuing"];
  PriorityLevel level;
  level.name = object["metadata"]["name"].str();
  level.uid = object["metadata"]["uid"].str();
  level.limited = spec["type"].as_string() != "Exempt";
  level.shares = number(about["nominalConcurrencyShares"]);
  level.lendable = std::min(100U, number(about["lendablePercent"]));
  if (const Value& percent = limited["borrowingLimitPercent"]; !percent.is_null())
    level.borrowing = number(percent);
  if (limited["limitResponse"]["type"].as_string() == "Queue") {
    level.queues = number(queuing["queues"]);
    level.hand = number(queuing["handSize"]);
    level.queue_length = number(queuing["queueLengthLimit"]);
  }
  levels_.push_back(std::move(level));
}

void FlowTable::add_schema(const Value& object) {
  const Value& spec = object["spec"];
  const std::string_view wanted = spec["priorityLevelConfiguration"]["name"].as_string();
  const auto level = std::find_if(levels_.begin(), levels_.end(),
                                  [&](const PriorityLevel& one) { return one.name == wanted; });
  if (level == levels_.end()) return;
  FlowSchema schema;
  schema.name = object["metadata"]["name"].str();
  schema.uid = object["metadata"]["uid"].str();
  schema.level = static_cast<std::size_t>(level - levels_.begin());
  schema.precedence = spec["matchingPrecedence"].as_int();
  const std::string_view by = spec["distinguisherMethod"]["type"].as_string();
  if (by == "ByUser") schema.distinguishes = FlowSchema::By::user;
  if (by == "ByNamespace") schema.distinguishes = FlowSchema::By::name_space;
  for (const Value& rule : spec["rules"].items()) schema.rules.push_back(rule_of(rule));
  schemas_.push_back(std::move(schema));
}

FlowTable::FlowTable(const std::vector<Value>& schemas, const std::vector<Value>& levels) {
  for (const Value& level : levels) add_level(level);
  for (const std::string_view name : {"exempt", "catch-all"}) {
    if (!has_level(name)) add_level(named(api::default_priority_levels(), name));
  }
  for (const Value& schema : schemas) add_schema(schema);
  for (const std::string_view name : {"exempt", "catch-all"}) {
    if (std::none_of(schemas_.begin(), schemas_.end(),
                     [&](const FlowSchema& one) { return one.name == name; }))
      add_schema(named(api::default_flow_schemas(), name));
  }
  std::sort(schemas_.begin(), schemas_.end(), [](const FlowSchema& a, const FlowSchema& b) {
    // What is caught last is so whatever else has its precedence.
    const bool last_a = a.name == "catch-all";
    const bool last_b = b.name == "catch-all";
    if (last_a != last_b) return last_b;
    return a.precedence != b.precedence ? a.precedence < b.precedence : a.name < b.name;
  });
}

FlowTable FlowTable::initial() {
  return {api::default_flow_schemas(), api::default_priority_levels()};
}

bool FlowTable::has_level(std::string_view name) const {
  return std::any_of(levels_.begin(), levels_.end(),
                     [&](const PriorityLevel& level) { return level.name == name; });
}

const FlowSchema& FlowTable::find(const auth::UserInfo& user, const RequestInfo& info) const {
  for (const FlowSchema& schema : schemas_) {
    if (schema.matches(user, info)) return schema;
  }
  return schemas_.back();
}

bool is_long_running(const RequestInfo& info) {
  if (!info.is_resource) return false;
  for (const std::string_view name : {"attach", "exec", "log", "proxy", "portforward"}) {
    if (info.subresource == name) return true;
  }
  return false;
}

}  // namespace dibs::server
