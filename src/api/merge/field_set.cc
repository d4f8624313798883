#include "api/merge/field_set.h"

#include <algorithm>

#include "base/strings.h"
#include "json/builder.h"
#include "json/go_print.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using json::Builder;
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

bool has_self(const Value& level) {
  return !level.empty() && level.members().begin()->key() == kSelf;
}

// Walks the entries of two levels side by side: calls with both, or with null for the one that has
// no such entry.
template <typename Visit>
void side_by_side(const Value& a, const Value& b, const Visit& visit) {
  const auto left = entries_of(a);
  const auto right = entries_of(b);
  std::size_t l = 0;
  std::size_t r = 0;
  while (l < left.size() || r < right.size()) {
    const int c = l == left.size()    ? 1
                  : r == right.size() ? -1
                  : Builder::key(left[l]).same_node(Builder::key(right[r]))
                      ? 0
                      : compare_spelled(left[l].key(), right[r].key());
    visit(c <= 0 ? &left[l] : nullptr, c >= 0 ? &right[r] : nullptr);
    if (c <= 0) ++l;
    if (c >= 0) ++r;
  }
}

Value unite_levels(const Value& a, const Value& b) {
  LevelEdit out(a, b.size());
  if (has_self(a)) {
    out.keep();
  } else if (has_self(b)) {
    out.put(Value(kSelf), Value::object());
  }
  side_by_side(a, b, [&](const json::Member* left, const json::Member* right) {
    if (right == nullptr) {
      out.keep();
    } else if (left == nullptr) {
      out.put(Builder::key(*right), right->value());
    } else {
      out.replace(united_entries(left->value(), right->value()));
    }
  });
  return out.finish();
}

Value with_self(const Value& level) {
  LevelEdit out(level, 1);
  out.put(Value(kSelf), Value::object());
  for (std::size_t i = 0; i < level.size(); ++i) out.keep();
  return out.finish();
}

Value intersect_entries(const Value& a, const Value& b);

Value intersect_levels(const Value& a, const Value& b) {
  LevelEdit out(a);
  if (has_self(a)) has_self(b) ? out.keep() : out.skip();
  side_by_side(a, b, [&](const json::Member* left, const json::Member* right) {
    if (left == nullptr) return;
    if (right == nullptr) {
      out.skip();
    } else {
      out.replace(intersect_entries(left->value(), right->value()));
    }
  });
  return out.finish();
}

Value intersect_entries(const Value& a, const Value& b) {
  if (a.same_node(b)) return a;
  if (a.empty() || b.empty()) return is_member(a) && is_member(b) ? Value::object() : Value();
  return intersect_levels(a, b);
}

Value subtract_entries(const Value& a, const Value& b, bool all_below);

Value subtract_levels(const Value& a, const Value& b, bool all_below) {
  LevelEdit out(a);
  if (has_self(a)) has_self(b) ? out.skip() : out.keep();
  side_by_side(a, b, [&](const json::Member* left, const json::Member* right) {
    if (left == nullptr) return;
    if (right == nullptr) {
      out.keep();
    } else {
      out.replace(subtract_entries(left->value(), right->value(), all_below));
    }
  });
  return out.finish();
}

Value subtract_entries(const Value& a, const Value& b, bool all_below) {
  const bool member = is_member(b);
  if (member && all_below) return Value();
  if (a.empty()) return member ? Value() : a;
  if (!b.empty()) return subtract_levels(a, b, all_below);
  if (!has_self(a)) return a;
  LevelEdit out(a);
  out.skip();
  for (std::size_t i = 1; i < a.size(); ++i) out.keep();
  return out.finish();
}

std::size_t count(const Value& level) {
  std::size_t members = 0;
  for (const json::Member& entry : entries_of(level)) {
    members += (is_member(entry.value()) ? 1 : 0) + count(entry.value());
  }
  return members;
}

void visit_level(const Value& level, FieldPath& path,
                 const std::function<void(const FieldPath&)>& visit) {
  const auto enter = [&](const json::Member& entry, const auto& inside) {
    auto element = PathElement::parse(entry.key());
    if (!element.ok() || !*element) return;
    path.push_back(std::move(**element));
    inside();
    path.pop_back();
  };
  for (const json::Member& entry : entries_of(level)) {
    if (is_member(entry.value())) enter(entry, [&] { visit(path); });
  }
  for (const json::Member& entry : entries_of(level)) {
    if (!entry.value().empty()) enter(entry, [&] { visit_level(entry.value(), path, visit); });
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

std::span<const json::Member> entries_of(const Value& level) {
  const auto members = level.members();
  const std::size_t first = has_self(level) ? 1 : 0;
  return {members.begin() + first, members.size() - first};
}

const Value* find_entry(const Value& level, std::string_view spelling) {
  if (const Value* entry = level.find(spelling)) return entry;
  if (is_plain_spelling(spelling)) return nullptr;
  // One amount may have two spellings.
  for (const json::Member& entry : entries_of(level)) {
    if (compare_spelled(entry.key(), spelling) == 0) return &entry.value();
  }
  return nullptr;
}

void LevelEdit::part() {
  if (parted_) return;
  parted_ = true;
  out_ = Builder::make(Kind::object, base_.size() + more_);
  const auto* members = base_.members().begin();
  for (std::size_t i = 0; i < seen_; ++i) {
    *Builder::add_new(out_, Builder::key(members[i])) = members[i].value();
  }
}

void LevelEdit::keep() {
  if (parted_) *Builder::add_new(out_, Builder::key(next())) = next().value();
  ++seen_;
}

void LevelEdit::skip() {
  part();
  ++seen_;
}

void LevelEdit::replace(Value entry) {
  if (entry.is_null()) return skip();
  if (entry.same_node(next().value())) return keep();
  part();
  *Builder::add_new(out_, Builder::key(next())) = std::move(entry);
  ++seen_;
}

void LevelEdit::put(const Value& key, Value entry) {
  part();
  *Builder::add_new(out_, key) = std::move(entry);
}

Value LevelEdit::finish() {
  if (!parted_) return base_;
  if (out_.empty()) return Value();
  if (out_.size() == 1 && has_self(out_)) return Value::object();
  return std::move(out_);
}

Value united_entries(const Value& a, const Value& b) {
  if (a.is_null()) return b;
  if (b.is_null() || a.same_node(b)) return a;
  if (b.empty()) return is_member(a) ? a : with_self(a);
  if (a.empty()) return is_member(b) ? b : with_self(b);
  return unite_levels(a, b);
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

std::size_t FieldSet::size() const { return count(root_); }

bool FieldSet::has(std::span<const PathElement> path) const {
  const Value* at = &root_;
  for (const PathElement& element : path) {
    at = find_entry(*at, element.spelling());
    if (at == nullptr) return false;
  }
  return at != &root_ && is_member(*at);
}

void FieldSet::insert(std::span<const PathElement> path) {
  if (path.empty()) return;
  Value trie = Value::object();
  for (auto element = path.rbegin(); element != path.rend(); ++element) {
    Value level = Value::object();
    level.set(element->spelling(), std::move(trie));
    trie = std::move(level);
  }
  *this = united(FieldSet(std::move(trie)));
}

FieldSet FieldSet::united(const FieldSet& other) const {
  if (other.empty()) return *this;
  return empty() ? other : FieldSet(unite_levels(root_, other.root_));
}

FieldSet FieldSet::common(const FieldSet& other) const {
  if (empty() || other.empty()) return FieldSet();
  return same(other) ? *this : FieldSet(intersect_levels(root_, other.root_));
}

FieldSet FieldSet::without(const FieldSet& other) const {
  if (empty() || other.empty()) return *this;
  return FieldSet(subtract_levels(root_, other.root_, false));
}

FieldSet FieldSet::without_all_below(const FieldSet& other) const {
  if (empty() || other.empty()) return *this;
  return FieldSet(subtract_levels(root_, other.root_, true));
}

void FieldSet::for_each(const std::function<void(const FieldPath&)>& visit) const {
  FieldPath path;
  visit_level(root_, path, visit);
}

bool operator==(const FieldSet& a, const FieldSet& b) { return a.root_ == b.root_; }

}  // namespace dibs::api
