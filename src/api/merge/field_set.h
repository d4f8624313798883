#pragma once
// Sets of field paths: which parts of an object a manager owns.
//
// A path element is a field's name, the keys that tell an item of a keyed list, the value of an
// item of a set, or an index. A FieldSet is a trie of them. An entry may be a member (this path
// itself is in the set), have members below it, or both: owning `labels` is another thing than
// owning `labels.app`.
//
// Nodes are immutable and shared: the algebra copies only what differs, and an operation that
// changes nothing returns the same nodes. On the wire a set is FieldsV1:
// {"f:data":{".":{},"f:k":{}}}.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace dibs::api {

using json::Value;

class PathElement {
 public:
  enum class Form : std::uint8_t { field, key, value, index };  // in their order in a set

  static PathElement field(std::string_view name) { return {Form::field, Value(name)}; }
  /// `keys` is an object whose members are sorted by name.
  static PathElement key(Value keys) { return {Form::key, std::move(keys)}; }
  static PathElement value(Value item) { return {Form::value, std::move(item)}; }
  static PathElement index(std::int64_t i) {
    return {Form::index, Value(static_cast<long long>(i))};
  }

  Form form() const { return form_; }
  bool is_field() const { return form_ == Form::field; }
  std::string_view name() const { return data_.as_string(); }
  const Value& data() const { return data_; }

  /// As messages show it: .name [port=80,protocol="TCP"] [="x"] [3]
  void append_to(std::string& out) const;
  /// As FieldsV1 spells it: f:name k:{"port":80} v:"x" i:3
  std::string spelling() const;

  /// Negative, zero, positive; numbers compare by amount.
  friend int compare(const PathElement& a, const PathElement& b);
  friend bool operator==(const PathElement& a, const PathElement& b) { return compare(a, b) == 0; }

 private:
  PathElement(Form form, Value data) : data_(std::move(data)), form_(form) {}
  Value data_;
  Form form_;
};

int compare(const PathElement& a, const PathElement& b);

using FieldPath = std::vector<PathElement>;

/// ".spec.containers[name="c"].image"
std::string to_string(std::span<const PathElement> path);

struct FieldNode;
using FieldNodePtr = std::shared_ptr<const FieldNode>;

struct FieldEntry {
  PathElement element;
  bool member = false;
  FieldNodePtr below;  // null, or a node with entries
};

/// Sorted by element, each once; every entry is a member or has something below.
struct FieldNode {
  std::vector<FieldEntry> entries;

  const FieldEntry* find(const PathElement& element) const;
};

/// Null when there are no entries. Sorts them when they are not; they must differ.
FieldNodePtr make_node(std::vector<FieldEntry> entries);

class FieldSet {
 public:
  FieldSet() = default;
  explicit FieldSet(FieldNodePtr root) : root_(std::move(root)) {}
  /// Paths of plain fields: {{"metadata", "name"}, {"status"}}.
  static FieldSet of(std::initializer_list<std::initializer_list<std::string_view>> paths);

  bool empty() const { return root_ == nullptr; }
  std::size_t size() const;  // members
  bool has(std::span<const PathElement> path) const;
  /// An empty path is ignored: nobody owns the whole.
  void insert(std::span<const PathElement> path);

  FieldSet united(const FieldSet& other) const;
  FieldSet common(const FieldSet& other) const;
  /// The members that `other` has not. A member of `other` does not take away what is below it.
  FieldSet without(const FieldSet& other) const;
  /// As without, but a member of `other` takes away all below it too.
  FieldSet without_all_below(const FieldSet& other) const;

  /// Calls for every member; those of a level come before what is below them.
  void for_each(const std::function<void(const FieldPath&)>& visit) const;

  /// FieldsV1, keys in stable order.
  Value to_json() const;
  /// Elements of unknown kinds are left out; anything else that is not FieldsV1 is an error.
  static Result<FieldSet> from_json(const Value& fields);

  const FieldNodePtr& root() const { return root_; }
  /// True when both are one and the same trie, so equal without a look inside.
  bool same(const FieldSet& other) const { return root_ == other.root_; }
  friend bool operator==(const FieldSet& a, const FieldSet& b);

 private:
  FieldNodePtr root_;
};

/// The order of values in a set: numbers, strings, booleans, lists, maps, null.
int compare_values(const Value& a, const Value& b);

}  // namespace dibs::api
