#pragma once
// Which requests an admission policy or binding is about: the MatchResources of the API.
//
// All must hold: the selector of namespaces, the selector of objects (for the new or the old one),
// no rule that excludes, and one rule that includes. By the match policy Equivalent a rule that
// names another version of the same objects matches too; expressions then see that version.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/merge/selectors.h"
#include "base/result.h"
#include "json/value.h"

namespace dibs::api {

/// A resource as one version serves it.
struct ServedAs {
  std::string group;
  std::string version;
  std::string resource;
};

/// What rules look at.
struct MatchQuestion {
  std::string_view operation;  // CREATE, UPDATE, DELETE, CONNECT
  ServedAs served;
  std::string_view subresource;
  /// That of the object; of a Namespace its own name.
  std::string_view name_space;
  std::string_view name;
  const Value* object = nullptr;
  const Value* old = nullptr;
  /// Asked when a selector needs them. Errors: of a namespace that cannot be had.
  std::function<Result<Value>()> namespace_labels;
  /// The other versions in which the same objects are served, with that sub-resource.
  std::function<const std::vector<ServedAs>&()> equivalents;
};

class MatchResources {
 public:
  /// Of null: matches everything.
  static MatchResources parse(const Value& resources);

  struct Outcome {
    bool matches = false;
    ServedAs served;  // as the rule that matched names it
  };
  /// Errors: a selector cannot be used, in words for the user.
  Result<Outcome> match(const MatchQuestion& question) const;

 private:
  struct Rule {
    std::vector<std::string> operations, groups, versions, resources, names;
    std::string scope;

    bool concerns(const MatchQuestion& question) const;
    bool covers(const ServedAs& served, std::string_view subresource) const;
    bool in_scope(const ServedAs& served, std::string_view name_space) const;
    bool names_it(std::string_view name) const;
  };
  static std::vector<Rule> parse_rules(const Value& rules);
  /// Null: no rule matches. Else what the rule names.
  const ServedAs* find(const std::vector<Rule>& rules, const MatchQuestion& question) const;

  bool always_ = false;
  bool exact_ = false;
  std::string fault_;  // of a selector
  LabelSelector namespaces_;
  LabelSelector objects_;
  std::vector<Rule> rules_;
  std::vector<Rule> excluded_;
};

}  // namespace dibs::api
