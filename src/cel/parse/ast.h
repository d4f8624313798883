#pragma once
// The syntax tree: one array of nodes, children by index.
//
// Macros are nodes of their own (fold, bind, opt_map) rather than their expansion into loops with
// accumulators: later phases then know what a loop does. Chains of && and || are one call with many
// arguments. Heights are bounded when a node is added, so that walks over the tree may recurse.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cel/value.h"

namespace dibs::cel {

using NodeId = std::uint32_t;
inline constexpr NodeId kNoNode = 0x7fffffff;
inline constexpr std::uint32_t kNoName = 0xffffffff;

enum class NodeKind : std::uint8_t {
  constant,  // name: index into constants
  ident,     // name; rooted: written with a leading dot
  select,    // child.name; test_only: has(); optional: child.?name
  call,      // name(children); receiver: the first child is the receiver
  list,      // children
  map,       // key, value, key, value, ...
  message,   // name{field: value}: fields as constants, then values, in pairs
  fold,      // range, predicate or kNoNode, transform or kNoNode; name and name2: variables
  bind,      // cel.bind(name, child 0, child 1)
  opt_map,   // child0.optMap(name, child 1), or optFlatMap where flat
};

enum class Fold : std::uint8_t {
  none,
  all,
  exists,
  exists_one,
  map,
  filter,
  transform_map,
  transform_map_entry,
  sort_by
};

struct AstNode {
  NodeKind kind = NodeKind::constant;
  Fold fold = Fold::none;
  bool test_only = false;
  bool optional = false;
  bool receiver = false;
  bool rooted = false;
  bool flat = false;
  std::uint16_t height = 1;
  std::uint16_t nesting = 0;   // of operators, selects, indexes and member calls within each other
  std::uint32_t position = 0;  // in code points
  std::uint32_t name = kNoName;
  std::uint32_t name2 = kNoName;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// Of issues that are about the whole expression.
inline constexpr std::uint32_t kNoPosition = 0xffffffff;

/// Something wrong with an expression, and where.
struct Issue {
  std::uint32_t position = 0;  // in code points
  std::string message;
};

class Ast {
 public:
  /// Deeper trees are refused; the walks over a tree recurse.
  static constexpr std::uint16_t kMaxHeight = 300;

  NodeId root = kNoNode;

  const AstNode& node(NodeId id) const { return nodes_[id]; }
  AstNode& node(NodeId id) { return nodes_[id]; }
  std::size_t size() const { return nodes_.size(); }
  NodeId child(const AstNode& node, std::size_t i) const {
    return children_[node.first + i] & kNoNode;
  }
  /// [?element], {?key: value}: true for the element, or for the key.
  bool child_is_optional(const AstNode& node, std::size_t i) const {
    return (children_[node.first + i] & kOptionalBit) != 0;
  }
  const std::string& name(std::uint32_t index) const { return names_[index]; }
  const std::string& name(const AstNode& node) const { return names_[node.name]; }
  const Value& constant(const AstNode& node) const { return constants_[node.name]; }

  std::uint32_t intern(std::string_view name);
  /// Adds a node with these children; a child with kOptionalBit is an optional element.
  NodeId add(AstNode node, const std::vector<NodeId>& children);
  NodeId add_constant(Value value, std::uint32_t position);
  bool too_high() const { return too_high_; }

  static constexpr NodeId kOptionalBit = 0x80000000;

 private:
  bool nests(const AstNode& node) const;

  std::vector<AstNode> nodes_;
  std::vector<NodeId> children_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> name_index_;
  std::vector<Value> constants_;
  bool too_high_ = false;
};

/// By position, those without one first; otherwise as they are.
void sort_issues(std::vector<Issue>& issues);
/// The issues as users see them: position, message, the line and a mark below it; a hundred of
/// them at most.
std::string format_issues(std::string_view source, const std::vector<Issue>& issues);

}  // namespace dibs::cel
