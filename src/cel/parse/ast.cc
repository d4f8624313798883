#include "cel/parse/ast.h"

#include <algorithm>

#include "base/strings.h"
#include "cel/operations.h"

namespace dibs::cel {

std::uint32_t Ast::intern(std::string_view name) {
  const auto [it, added] =
      name_index_.emplace(std::string(name), static_cast<std::uint32_t>(names_.size()));
  if (added) names_.emplace_back(name);
  return it->second;
}

NodeId Ast::add(AstNode node, const std::vector<NodeId>& children) {
  node.first = static_cast<std::uint32_t>(children_.size());
  node.count = static_cast<std::uint32_t>(children.size());
  std::uint16_t highest = 0;
  for (const NodeId child : children) {
    if ((child & kNoNode) == kNoNode) continue;
    highest = std::max(highest, nodes_[child & kNoNode].height);
    node.nesting = std::max(node.nesting, nodes_[child & kNoNode].nesting);
  }
  if (nests(node)) ++node.nesting;
  if (highest >= kMaxHeight) too_high_ = true;
  node.height = static_cast<std::uint16_t>(highest + 1);
  children_.insert(children_.end(), children.begin(), children.end());
  nodes_.push_back(node);
  return static_cast<NodeId>(nodes_.size() - 1);
}

/// Whether the reference implementation counts the node against its limit of recursion: global
/// calls, literals, signs and chains of && and || are not.
bool Ast::nests(const AstNode& node) const {
  switch (node.kind) {
    case NodeKind::select:
    case NodeKind::fold:
    case NodeKind::bind:
    case NodeKind::opt_map:
      return true;
    case NodeKind::call:
      return node.receiver || name(node) == "@in" ||
             (name(node).starts_with('_') && name(node) != "_&&_" && name(node) != "_||_");
    default:
      return false;
  }
}

NodeId Ast::add_constant(Value value, std::uint32_t position) {
  AstNode node;
  node.kind = NodeKind::constant;
  node.position = position;
  node.name = static_cast<std::uint32_t>(constants_.size());
  constants_.push_back(std::move(value));
  return add(node, {});
}

namespace {

constexpr std::size_t kMostIssues = 100;
constexpr std::size_t kLongestLine = 16384;

struct Place {
  std::size_t line = 1;
  std::size_t column = 1;
  std::string_view text;  // of the line
};

Place place_of(std::string_view source, std::uint32_t position) {
  Place place;
  std::size_t line_begin = 0;
  std::size_t offset = 0;
  for (std::uint32_t i = 0; i < position && offset < source.size(); ++i) {
    if (next_code_point(source, offset) == '\n') {
      ++place.line;
      place.column = 1;
      line_begin = offset;
    } else {
      ++place.column;
    }
  }
  place.text = source.substr(line_begin, source.find('\n', line_begin) - line_begin);
  return place;
}

}  // namespace

void sort_issues(std::vector<Issue>& issues) {
  std::stable_sort(issues.begin(), issues.end(), [](const Issue& a, const Issue& b) {
    // The one behind the largest is the smallest.
    return a.position + 1 < b.position + 1;
  });
}

std::string format_issues(std::string_view source, const std::vector<Issue>& issues) {
  std::string out;
  std::size_t shown = 0;
  for (const Issue& issue : issues) {
    if (shown++ == kMostIssues) {
      append(out, "\n", issues.size() - kMostIssues, " more errors were truncated");
      break;
    }
    append(out, out.empty() ? "" : "\n", "ERROR: <input>:");
    if (issue.position == kNoPosition) {
      append(out, "-1:0: ", issue.message);
      continue;
    }
    if (source.empty()) {
      append(out, "1:0: ", issue.message);
      continue;
    }
    const Place place = place_of(source, issue.position);
    append(out, place.line, ":", place.column, ": ", issue.message);
    if (place.text.size() > kLongestLine) continue;
    out += "\n | ";
    std::string mark;
    std::size_t offset = 0;
    for (std::size_t column = 1; column < place.column && offset < place.text.size(); ++column)
      mark += next_code_point(place.text, offset) < 0x80 ? "." : "．";
    const bool wide = offset < place.text.size() && (place.text[offset] & 0x80) != 0;
    std::string line(place.text);
    std::replace(line.begin(), line.end(), '\t', ' ');
    append(out, line, "\n | ", mark, wide ? "＾" : "^");
  }
  return out;
}

}  // namespace dibs::cel
