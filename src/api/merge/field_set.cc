#include "api/merge/field_set.h"

#include <algorithm>

#include "api/merge/go_print.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using json::Kind;

int rank(const Value& value) {
  switch (value.kind()) {
    case Kind::integer:
    case Kind::number:
      return 0;
    case Kind::string:
      return 1;
    case Kind::boolean:
      return 2;
    case Kind::array:
      return 3;
    case Kind::object:
      return 4;
    case Kind::null:
      return 5;
  }
  return 6;
}

template <typename T>
int order(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

// Objects in the order of their keys; those of path elements are sorted already.
int compare_objects(const Value& a, const Value& b) {
  const auto* left = a.members().begin();
  const auto* right = b.members().begin();
  for (; left != a.members().end() && right != b.members().end(); ++left, ++right) {
    if (const int c = left->key().compare(right->key()); c != 0) return c;
    if (const int c = compare_values(left->value(), right->value()); c != 0) return c;
  }
  return order(a.size(), b.size());
}

void append_item(std::string& out, const Value& value) {
  if (value.is_string()) {
    out.append(quoted(value.as_string()));
  } else if (value.is_null()) {
    out.append("null");
  } else {
    append_go_value(out, value);
  }
}

bool same_nodes(const FieldNode* a, const FieldNode* b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr || a->entries.size() != b->entries.size()) return false;
  for (std::size_t i = 0; i < a->entries.size(); ++i) {
    const FieldEntry& left = a->entries[i];
    const FieldEntry& right = b->entries[i];
    if (left.member != right.member || !(left.element == right.element) ||
        !same_nodes(left.below.get(), right.below.get())) {
      return false;
    }
  }
  return true;
}

FieldNodePtr made(std::vector<FieldEntry>&& sorted) {
  if (sorted.empty()) return nullptr;
  auto node = std::make_shared<FieldNode>();
  node->entries = std::move(sorted);
  return node;
}

FieldNodePtr unite(const FieldNodePtr& a, const FieldNodePtr& b) {
  if (b == nullptr || a == b) return a;
  if (a == nullptr) return b;
  std::vector<FieldEntry> out;
  out.reserve(std::max(a->entries.size(), b->entries.size()));
  bool is_a = true;
  auto left = a->entries.begin();
  auto right = b->entries.begin();
  while (left != a->entries.end() || right != b->entries.end()) {
    const int c = left == a->entries.end()    ? 1
                  : right == b->entries.end() ? -1
                                              : compare(left->element, right->element);
    if (c < 0) {
      out.push_back(*left++);
    } else if (c > 0) {
      is_a = false;
      out.push_back(*right++);
    } else {
      FieldNodePtr below = unite(left->below, right->below);
      is_a = is_a && below == left->below && (left->member || !right->member);
      out.push_back({left->element, left->member || right->member, std::move(below)});
      ++left;
      ++right;
    }
  }
  return is_a ? a : made(std::move(out));
}

FieldNodePtr intersect(const FieldNodePtr& a, const FieldNodePtr& b) {
  if (a == b) return a;
  if (a == nullptr || b == nullptr) return nullptr;
  std::vector<FieldEntry> out;
  auto left = a->entries.begin();
  auto right = b->entries.begin();
  while (left != a->entries.end() && right != b->entries.end()) {
    const int c = compare(left->element, right->element);
    if (c == 0) {
      FieldNodePtr below = intersect(left->below, right->below);
      const bool member = left->member && right->member;
      if (member || below != nullptr) out.push_back({left->element, member, std::move(below)});
    }
    if (c <= 0) ++left;
    if (c >= 0) ++right;
  }
  return made(std::move(out));
}

FieldNodePtr subtract(const FieldNodePtr& a, const FieldNodePtr& b, bool all_below) {
  if (a == nullptr || b == nullptr) return a;
  std::vector<FieldEntry> out;
  bool is_a = true;
  auto right = b->entries.begin();
  for (const FieldEntry& left : a->entries) {
    while (right != b->entries.end() && compare(right->element, left.element) < 0) ++right;
    if (right == b->entries.end() || !(right->element == left.element)) {
      out.push_back(left);
      continue;
    }
    FieldNodePtr below =
        all_below && right->member ? nullptr : subtract(left.below, right->below, all_below);
    const bool member = left.member && !right->member;
    is_a = is_a && member == left.member && below == left.below;
    if (member || below != nullptr) out.push_back({left.element, member, std::move(below)});
  }
  return is_a ? a : made(std::move(out));
}

std::size_t count(const FieldNode* node) {
  if (node == nullptr) return 0;
  std::size_t members = 0;
  for (const FieldEntry& entry : node->entries) {
    members += (entry.member ? 1 : 0) + count(entry.below.get());
  }
  return members;
}

FieldNodePtr with(const FieldNode* node, std::span<const PathElement> path) {
  std::vector<FieldEntry> entries;
  if (node != nullptr) entries = node->entries;
  const auto at = std::lower_bound(
      entries.begin(), entries.end(), path.front(),
      [](const FieldEntry& entry, const PathElement& e) { return compare(entry.element, e) < 0; });
  auto entry = at != entries.end() && at->element == path.front()
                   ? at
                   : entries.insert(at, FieldEntry{path.front(), false, nullptr});
  if (path.size() == 1) {
    entry->member = true;
  } else {
    entry->below = with(entry->below.get(), path.subspan(1));
  }
  return made(std::move(entries));
}

void visit_node(const FieldNode* node, FieldPath& path,
                const std::function<void(const FieldPath&)>& visit) {
  if (node == nullptr) return;
  for (const FieldEntry& entry : node->entries) {
    if (!entry.member) continue;
    path.push_back(entry.element);
    visit(path);
    path.pop_back();
  }
  for (const FieldEntry& entry : node->entries) {
    if (entry.below == nullptr) continue;
    path.push_back(entry.element);
    visit_node(entry.below.get(), path, visit);
    path.pop_back();
  }
}

}  // namespace

int compare_values(const Value& a, const Value& b) {
  const int left = rank(a);
  const int right = rank(b);
  if (left != right) return left - right;
  switch (a.kind()) {
    case Kind::integer:
      if (b.is_integer()) return order(a.as_int(), b.as_int());
      [[fallthrough]];
    case Kind::number:
      return order(a.as_double(), b.as_double());
    case Kind::string:
      return a.as_string().compare(b.as_string());
    case Kind::boolean:
      return order(a.as_bool(), b.as_bool());
    case Kind::array: {
      const std::size_t shared = std::min(a.size(), b.size());
      for (std::size_t i = 0; i < shared; ++i) {
        if (const int c = compare_values(a[i], b[i]); c != 0) return c;
      }
      return order(a.size(), b.size());
    }
    case Kind::object:
      return compare_objects(a, b);
    case Kind::null:
      return 0;
  }
  return 0;
}

int compare(const PathElement& a, const PathElement& b) {
  if (a.form_ != b.form_) return a.form_ < b.form_ ? -1 : 1;
  if (a.form_ == PathElement::Form::field) return a.data_.as_string().compare(b.data_.as_string());
  return compare_values(a.data_, b.data_);
}

void PathElement::append_to(std::string& out) const {
  switch (form_) {
    case Form::field:
      append(out, '.', name());
      return;
    case Form::key: {
      out.push_back('[');
      bool first = true;
      for (const auto& [name, value] : data_.members()) {
        append(out, first ? "" : ",", name, '=');
        first = false;
        append_item(out, value);
      }
      out.push_back(']');
      return;
    }
    case Form::value:
      out.append("[=");
      append_item(out, data_);
      out.push_back(']');
      return;
    case Form::index:
      append(out, '[', data_.as_int(), ']');
      return;
  }
}

std::string PathElement::spelling() const {
  std::string out;
  switch (form_) {
    case Form::field:
      out.reserve(2 + name().size());
      append(out, "f:", name());
      break;
    case Form::key:
      out = "k:";
      json::write_to(out, data_, true);
      break;
    case Form::value:
      out = "v:";
      json::write_to(out, data_, true);
      break;
    case Form::index:
      out = cat("i:", data_.as_int());
      break;
  }
  return out;
}

std::string to_string(std::span<const PathElement> path) {
  std::string out;
  for (const PathElement& element : path) element.append_to(out);
  return out;
}

const FieldEntry* FieldNode::find(const PathElement& element) const {
  const auto at = std::lower_bound(
      entries.begin(), entries.end(), element,
      [](const FieldEntry& entry, const PathElement& e) { return compare(entry.element, e) < 0; });
  return at != entries.end() && at->element == element ? &*at : nullptr;
}

FieldNodePtr make_node(std::vector<FieldEntry> entries) {
  const auto less = [](const FieldEntry& a, const FieldEntry& b) {
    return compare(a.element, b.element) < 0;
  };
  if (!std::is_sorted(entries.begin(), entries.end(), less)) {
    std::sort(entries.begin(), entries.end(), less);
  }
  return made(std::move(entries));
}

FieldSet FieldSet::of(std::initializer_list<std::initializer_list<std::string_view>> paths) {
  FieldSet set;
  for (const auto& names : paths) {
    FieldPath path;
    for (const std::string_view name : names) path.push_back(PathElement::field(name));
    set.insert(path);
  }
  return set;
}

std::size_t FieldSet::size() const { return count(root_.get()); }

bool FieldSet::has(std::span<const PathElement> path) const {
  const FieldNode* node = root_.get();
  for (std::size_t i = 0; node != nullptr && i < path.size(); ++i) {
    const FieldEntry* entry = node->find(path[i]);
    if (entry == nullptr) return false;
    if (i + 1 == path.size()) return entry->member;
    node = entry->below.get();
  }
  return false;
}

void FieldSet::insert(std::span<const PathElement> path) {
  if (!path.empty()) root_ = with(root_.get(), path);
}

FieldSet FieldSet::united(const FieldSet& other) const {
  return FieldSet(unite(root_, other.root_));
}

FieldSet FieldSet::common(const FieldSet& other) const {
  return FieldSet(intersect(root_, other.root_));
}

FieldSet FieldSet::without(const FieldSet& other) const {
  return FieldSet(subtract(root_, other.root_, false));
}

FieldSet FieldSet::without_all_below(const FieldSet& other) const {
  return FieldSet(subtract(root_, other.root_, true));
}

void FieldSet::for_each(const std::function<void(const FieldPath&)>& visit) const {
  FieldPath path;
  visit_node(root_.get(), path, visit);
}

bool operator==(const FieldSet& a, const FieldSet& b) {
  return same_nodes(a.root_.get(), b.root_.get());
}

}  // namespace dibs::api
