#pragma once
// The history of a StatefulSet's or DaemonSet's template: ControllerRevisions, numbered upwards.
// `kubectl rollout history` and `undo` read them.

#include <optional>
#include <vector>

#include "json/value.h"

namespace dibs::controllers {

/// What a revision remembers of its owner: the pod template, in the form of a patch.
json::Value revision_data(const json::Value& owner);
/// The pod template that a revision remembers.
json::Value revision_template(const json::Value& revision);

struct RevisionPlan {
  /// Of the template as it is now; with a new number when an old template came back.
  json::Value current = {};
  bool create = false;
  bool update = false;
  /// The others, oldest first.
  std::vector<json::Value> past = {};
};

/// `hash_label`: the label that carries the hash on the revision.
RevisionPlan plan_revisions(const json::Value& owner, const std::vector<json::Value>& revisions,
                            std::string_view hash_label);

/// Those that the history has no room for; `in_use` names revisions that stay anyway.
std::vector<json::Value> surplus_revisions(const json::Value& owner,
                                           const std::vector<json::Value>& past,
                                           const std::vector<std::string>& in_use);

}  // namespace dibs::controllers
