#pragma once
// The node that an attempt is about, and which devices can be reached from it.

#include <string>
#include <vector>

#include "api/merge/selectors.h"
#include "base/result.h"
#include "json/value.h"

namespace dibs::alloc {

struct Node {
  std::string name;
  json::Value labels;
  /// The node can do without preparation by the driver (DRAOptionalNodeOperations declared).
  bool optional_node_operations = false;

  /// From a core/v1 Node.
  static Node read(const json::Value& node);
};

/// A core/v1 NodeSelector: terms of which one must hold.
struct NodeSelector {
  struct Term {
    std::vector<api::LabelRequirement> expressions;
    std::vector<api::LabelRequirement> fields;
  };
  std::vector<Term> terms;
  std::string error;  // what the first unreadable requirement is about; empty: none
  json::Value source;

  static NodeSelector read(const json::Value& selector);
  bool matches(const Node& node) const;
};

/// Where a slice or a device says it can be used from.
struct NodeSelection {
  std::string node_name;
  bool all_nodes = false;
  bool has_selector = false;
  NodeSelector selector;

  static NodeSelection read(const json::Value& spec);
  bool stated() const { return !node_name.empty() || all_nodes || has_selector; }
  /// Errors: bad_request, a selector that cannot be read.
  Result<bool> matches(const Node& node) const;
};

}  // namespace dibs::alloc
