#include <algorithm>
#include <charconv>
#include <optional>

#include "api/merge/field_set.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

// Clients may write managedFields; no object of theirs is as deep as this.
constexpr int kMaxDepth = 1000;

// One node for all the leaves there are.
const Value& empty_object() {
  static const Value empty = Value::object();
  return empty;
}

Value write_node(const FieldNode& node, bool member) {
  Value out = Value::object();
  if (member) out.set(".", empty_object());
  for (const FieldEntry& entry : node.entries) {
    out.set(entry.element.spelling(),
            entry.below == nullptr ? empty_object() : write_node(*entry.below, entry.member));
  }
  return out;
}

Error malformed(std::string_view key, std::string_view why) {
  return Error::bad_request(cat("parsing key as path element: ", quoted(key), ": ", why));
}

// Nothing for an element of a kind that this version does not know.
Result<std::optional<PathElement>> read_element(std::string_view key) {
  if (key.size() < 2) return malformed(key, "key must be 2 characters long");
  if (key[1] != ':') return malformed(key, "missing colon");
  const std::string_view rest = key.substr(2);
  switch (key[0]) {
    case 'f':
      return std::optional(PathElement::field(rest));
    case 'v': {
      DIBS_TRY(auto value, json::parse(rest));
      return std::optional(PathElement::value(std::move(value)));
    }
    case 'k': {
      DIBS_TRY(auto value, json::parse(rest));
      if (!value.is_object()) return malformed(key, "not an object");
      std::vector<std::pair<std::string_view, const Value*>> members;
      for (const auto& member : value.members()) {
        members.emplace_back(member.key(), &member.value());
      }
      const auto less = [](const auto& a, const auto& b) { return a.first < b.first; };
      if (std::is_sorted(members.begin(), members.end(), less)) {
        return std::optional(PathElement::key(std::move(value)));
      }
      std::sort(members.begin(), members.end(), less);
      Value keys = Value::object();
      for (const auto& [name, item] : members) keys.set(name, *item);
      return std::optional(PathElement::key(std::move(keys)));
    }
    case 'i': {
      std::int64_t index = 0;
      const auto [end, fault] = std::from_chars(rest.data(), rest.data() + rest.size(), index);
      if (fault != std::errc() || end != rest.data() + rest.size()) {
        return malformed(key, "not a number");
      }
      return std::optional(PathElement::index(index));
    }
    default:
      return std::optional<PathElement>();
  }
}

// The node, and whether the path that leads to it is a member: by ".", or for want of anything
// below.
Result<FieldNodePtr> read_node(const Value& value, bool& member, int depth) {
  if (depth > kMaxDepth) return Error::bad_request("fieldsV1 is nested too deeply");
  if (!value.is_object() && !value.is_null()) {
    return Error::bad_request("fieldsV1 must be made of objects");
  }
  member = false;
  std::vector<FieldEntry> entries;
  entries.reserve(value.size());
  for (const auto& [key, child] : value.members()) {
    if (key == ".") {
      member = true;
      continue;
    }
    DIBS_TRY(auto element, read_element(key));
    if (!element) continue;
    bool child_member = false;
    DIBS_TRY(auto below, read_node(child, child_member, depth + 1));
    entries.push_back({std::move(*element), child_member, std::move(below)});
  }
  if (entries.empty()) member = true;
  FieldNodePtr node = make_node(std::move(entries));
  // Two spellings of one element, such as k:{"a":1} and k:{"a":1.0}: the later one counts.
  if (node != nullptr) {
    const auto& sorted = node->entries;
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      if (!(sorted[i - 1].element == sorted[i].element)) continue;
      std::vector<FieldEntry> unique;
      for (const FieldEntry& entry : sorted) {
        if (!unique.empty() && unique.back().element == entry.element) unique.pop_back();
        unique.push_back(entry);
      }
      return make_node(std::move(unique));
    }
  }
  return node;
}

}  // namespace

Value FieldSet::to_json() const {
  return root_ == nullptr ? empty_object() : write_node(*root_, false);
}

Result<FieldSet> FieldSet::from_json(const Value& fields) {
  bool member = false;
  DIBS_TRY(auto root, read_node(fields, member, 0));
  return FieldSet(std::move(root));
}

}  // namespace dibs::api
