#pragma once
// Sets of field paths: which parts of an object a manager owns.
//
// A path element is a field's name, the keys that tell an item of a keyed list, the value of an
// item of a set, or an index. A FieldSet is a trie of them, and the trie is its own FieldsV1, the
// form in which sets are stored and sent: {"f:data":{".":{},"f:k":{}}}. Reading and writing a set
// costs next to nothing so, and the algebra shares what it does not change, as Values do.
//
// An entry is a key, which spells an element, with what is below it. {} is a member: this path
// itself is in the set. Otherwise "." tells that it is one, and the other keys are entries below:
// owning `labels` is another thing than owning `labels.app`.
//
// Invariants of a trie in hand: "." comes first and never alone; entries are sorted by element,
// each once, each spelled as json::write spells it; the root has no ".". from_json() brings what
// others wrote into this form.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
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
  /// From its spelling; nothing for an element of a form that this version does not know.
  static Result<std::optional<PathElement>> parse(std::string_view spelling);

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

// Spelled elements, for those who walk a trie.

constexpr std::string_view kSelf = ".";

/// "f:name"
Value spelled_field(std::string_view name);
/// The order of the elements that two texts spell; both as a trie has them.
int compare_spelled_items(std::string_view a, std::string_view b);
inline int compare_spelled(std::string_view a, std::string_view b) {
  return a[0] == 'f' && b[0] == 'f' ? a.compare(b) : compare_spelled_items(a, b);
}
/// True for a text that can only be spelled this way and is read without parsing.
bool is_plain_spelling(std::string_view text);
/// Appends to a message what the spelled element is there: .name [port=80]
void append_spelled(std::string& out, std::string_view spelling);

inline bool is_field_spelling(std::string_view text) { return text[0] == 'f'; }
inline std::string_view spelled_name(std::string_view text) { return text.substr(2); }

/// Whether the path of an entry is in the set itself. There is something below unless it is empty.
inline bool is_member(const Value& entry) {
  return entry.empty() || entry.members().begin()->key() == kSelf;
}
/// The members of a trie's level, without ".".
std::span<const json::Member> entries_of(const Value& level);
/// Null when the level has no such entry.
const Value* find_entry(const Value& level, std::string_view spelling);

/// Makes one level out of an old one, which is the result when nothing of it has changed.
class LevelEdit {
 public:
  /// `more`: how many entries may come beside those of the old level.
  explicit LevelEdit(const Value& base, std::size_t more = 0) : base_(base), more_(more) {}
  // The next entry of the old level as it is, gone, or with something else below; null is gone.
  void keep();
  void skip();
  void replace(Value entry);
  /// An entry that is not in the old level, or ".", before the next of the old level.
  void put(const Value& key, Value entry);
  /// The level, once all of the old one is seen. Null when nothing is in it; {} when nothing but
  /// "." is.
  Value finish();

 private:
  const json::Member& next() const { return base_.members().begin()[seen_]; }
  void part();

  const Value& base_;
  std::size_t more_;
  std::size_t seen_ = 0;
  bool parted_ = false;
  Value out_;
};

class FieldSet {
 public:
  FieldSet() : root_(Value::object()) {}
  /// A trie as described above, or null for an empty set.
  explicit FieldSet(Value trie) : root_(trie.is_null() ? Value::object() : std::move(trie)) {}
  /// Paths of plain fields: {{"metadata", "name"}, {"status"}}.
  static FieldSet of(std::initializer_list<std::initializer_list<std::string_view>> paths);

  bool empty() const { return root_.empty(); }
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
  const Value& to_json() const { return root_; }
  /// Elements of unknown kinds are left out; anything else that is not FieldsV1 is an error.
  static Result<FieldSet> from_json(const Value& fields);

  /// True when both are one and the same trie, so equal without a look inside.
  bool same(const FieldSet& other) const { return root_.same_node(other.root_); }
  friend bool operator==(const FieldSet& a, const FieldSet& b);

 private:
  Value root_;
};

/// The entry that has the members of both; either may be null, for none.
Value united_entries(const Value& a, const Value& b);

/// The order of values in a set: numbers, strings, booleans, lists, maps, null.
int compare_values(const Value& a, const Value& b);

}  // namespace dibs::api
