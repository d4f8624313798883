#pragma once
// For tests of scores: some nodes, and what one score makes of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/strings.h"
#include "json/parse.h"
#include "scheduler/scores/scores.h"

namespace dibs::scheduler::test {

/// JSON with ' for ".
inline json::Value from_short(std::string text) {
  std::replace(text.begin(), text.end(), '\'', '"');
  return json::parse(text).value();
}

class ScoreWorld {
 public:
  /// Members of the spec and the status; nodes keep the order in which they are added.
  void add_node(const std::string& name, const std::string& labels = "",
                const std::string& spec = "",
                const std::string& status = "'allocatable':{'cpu':'4','memory':'4Gi'}") {
    state.put_node(from_short(cat("{'metadata':{'name':'", name, "','labels':{", labels,
                                  "}},'spec':{", spec, "},'status':{", status, "}}")));
  }
  static PodPtr pod(const std::string& name, const std::string& spec,
                    const std::string& labels = "") {
    return Pod::read(from_short(cat("{'metadata':{'name':'", name, "','namespace':'ns','uid':'",
                                    name, "','labels':{", labels, "}},'spec':{", spec, "}}")));
  }
  void assign(const PodPtr& pod, const std::string& node) { state.add_pod(pod, node); }

  /// What the score gives each node for the pod, without its weight.
  std::vector<std::int64_t> score(std::string_view name, const PodPtr& pod) {
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < state.nodes().size(); ++i) candidates.push_back({i});
    find_score(name)->add({state, *pod, profile, candidates}, 1);
    std::vector<std::int64_t> made;
    for (const Candidate& candidate : candidates) made.push_back(candidate.score);
    return made;
  }

  ClusterState state;
  Profile profile = Profile::standard();
};

inline std::string asking(const std::string& requests) {
  return cat("'containers':[{'name':'c','resources':{'requests':{", requests, "}}}]");
}

}  // namespace dibs::scheduler::test
