#pragma once
// Which requests share the server with which: priority levels and flows, as the objects of
// flowcontrol.apiserver.k8s.io say.
//
// A level has its own part of the server, so that no level starves another. Within it each flow, as
// a rule one user, has its turn, so that no user starves another. A request is of the first schema
// that matches, by precedence and then by name; one whose level is not there matches nothing.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "server/auth/user.h"
#include "server/request_info.h"

namespace dibs::server {

struct PriorityLevel {
  std::string name;
  std::string uid;
  bool limited = true;
  unsigned shares = 0;                // of the seats
  unsigned lendable = 0;              // percent of them, to other levels
  std::optional<unsigned> borrowing;  // percent of them, from other levels; none: any number
  unsigned queues = 0;                // 0: what finds no seat is refused
  unsigned hand = 0;                  // queues that a flow may wait in
  unsigned queue_length = 0;

  friend bool operator==(const PriorityLevel&, const PriorityLevel&) = default;
};

struct FlowSchema {
  enum class By : char { nothing, user, name_space };
  struct Subject {
    enum class Kind : char { user, group, account } kind = Kind::user;
    std::string name;  // "*": all
    std::string name_space;
  };
  struct ResourceRule {
    std::vector<std::string> verbs, groups, resources, namespaces;
    bool cluster = false;
  };
  struct UrlRule {
    std::vector<std::string> verbs, urls;
  };
  struct Rule {
    std::vector<Subject> subjects;
    std::vector<ResourceRule> resources;
    std::vector<UrlRule> urls;
  };

  std::string name;
  std::string uid;
  std::size_t level = 0;  // in FlowTable::levels()
  std::int64_t precedence = 0;
  By distinguishes = By::nothing;
  std::vector<Rule> rules;

  bool matches(const auth::UserInfo& user, const RequestInfo& info) const;
  /// What tells flows of the schema apart: a user, or a namespace.
  std::string_view distinguisher(const auth::UserInfo& user, const RequestInfo& info) const;
};

/// Does not change, so many threads may read it.
class FlowTable {
 public:
  /// Of the objects there are; the mandatory ones are added where they are missing.
  FlowTable(const std::vector<json::Value>& schemas, const std::vector<json::Value>& levels);
  /// Of those that every server begins with.
  static FlowTable initial();

  std::span<const PriorityLevel> levels() const { return levels_; }
  std::span<const FlowSchema> schemas() const { return schemas_; }
  /// The last schema, catch-all, where none matches.
  const FlowSchema& find(const auth::UserInfo& user, const RequestInfo& info) const;
  bool has_level(std::string_view name) const;

 private:
  void add_level(const json::Value& object);
  void add_schema(const json::Value& object);

  std::vector<PriorityLevel> levels_;
  std::vector<FlowSchema> schemas_;
};

/// Streams between a client and a node, which may last for ever: they hold no seat. A watch holds
/// one until it is open.
bool is_long_running(const RequestInfo& info);

}  // namespace dibs::server
