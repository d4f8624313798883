// Walks over one or two objects that make field sets: what an object mentions, and what differs.

#include <algorithm>

#include "api/merge/typed.h"
#include "json/builder.h"

namespace dibs::api {
namespace {

using json::Builder;

// Entries of tries (field_set.h): null where nothing of a value is in the set.
struct Difference {
  Value removed;
  Value modified;
  Value added;

  bool any() const { return !removed.is_null() || !modified.is_null() || !added.is_null(); }
};

bool has_members(const Value* value) {
  return value != nullptr && value->is_object() && !value->empty();
}
bool has_items(const Value* value) {
  return value != nullptr && value->is_array() && !value->empty();
}
bool is_container(const Value& value) { return value.is_object() || value.is_array(); }

// False also when an item wants a key, for which there may be a default.
bool has_same_keys(const Schema& list, const Value& a, const Value& b) {
  if (!a.is_object() || !b.is_object() || list.map_keys.empty()) return false;
  for (const std::string& name : list.map_keys) {
    const Value& key = a[name];
    if (!key.is_string() && !key.is_integer()) return false;
    if (!(key == b[name])) return false;
  }
  return true;
}

// Sorted by element; items of one element keep their order.
std::vector<ListItem> sorted_items(SchemaPtr schema, const Value& list,
                                   std::optional<Error>& error) {
  auto items = list_items(schema, list);
  if (!items.ok()) {
    if (!error) error = items.error();
    return {};
  }
  const auto less = [](const ListItem& a, const ListItem& b) {
    return compare_spelled(a.spelling(), b.spelling()) < 0;
  };
  if (!std::is_sorted(items->begin(), items->end(), less)) {
    std::stable_sort(items->begin(), items->end(), less);
  }
  return std::move(items).value();
}

// Where in an object a value stands, as far as that matters.
enum class Place : std::uint8_t { root, metadata, other };

Place place_below(Place place, std::string_view key) {
  return place == Place::root && key == "metadata" ? Place::metadata : Place::other;
}

// managedFields tell of fields and are none.
bool is_of_entries(Place place, std::string_view key) {
  return place == Place::metadata && key == "managedFields";
}

// Entries of levels in the making: those of a level lie above those of the levels around it.
class Levels {
 public:
  // Where a new level begins; `is_member`: with ".".
  std::size_t open(bool is_member) {
    const std::size_t first = entries_.size();
    if (is_member) add(Value(kSelf), Value::object());
    return first;
  }

  void add(Value key, Value below) {
    if (entries_.empty()) entries_.reserve(32);
    json::Member& entry = entries_.emplace_back();
    Builder::set_key(entry, std::move(key));
    Builder::value(entry) = std::move(below);
  }

  // The entry that has the level which begins at `first`; null when nothing is in it.
  Value take(std::size_t first) {
    const std::span<json::Member> level = std::span(entries_).subspan(first);
    if (level.empty()) return Value();
    const bool is_member = level.front().key() == kSelf;
    const std::span<json::Member> named = level.subspan(is_member ? 1 : 0);
    const auto less = [](const json::Member& a, const json::Member& b) {
      return compare_spelled(a.key(), b.key()) < 0;
    };
    if (!std::is_sorted(named.begin(), named.end(), less)) {
      std::sort(named.begin(), named.end(), less);
    }
    Value out = named.empty() ? Value::object() : Builder::take(level);
    entries_.resize(first);
    return out;
  }

 private:
  std::vector<json::Member> entries_;
};

std::size_t end_of_equal(const std::vector<ListItem>& items, std::size_t at) {
  std::size_t end = at + 1;
  while (end < items.size() && compare_spelled(items[end].spelling(), items[at].spelling()) == 0) {
    ++end;
  }
  return end;
}

// All of a value that stands on one side only: each path in it, containers too.
class Whole {
 public:
  Value of(SchemaPtr schema, const Value& value, Place place) {
    switch (atom_of(schema, value)) {
      case Atom::scalar:
        break;
      case Atom::list:
        if (!is_atomic_list(schema) && has_items(&value)) return of_list(schema, value);
        break;
      case Atom::map:
        if (!is_atomic_map(schema) && has_members(&value)) return of_map(schema, value, place);
        break;
    }
    return Value::object();
  }

  std::optional<Error> error;

 private:
  Value of_map(SchemaPtr schema, const Value& value, Place place) {
    const std::size_t first = levels_.open(true);
    for (const auto& [key, item] : value.members()) {
      if (is_of_entries(place, key)) continue;
      Value below =
          of(child_of(schema, key, place == Place::root).schema, item, place_below(place, key));
      levels_.add(spelled_field(key), std::move(below));
    }
    return levels_.take(first);
  }

  Value of_list(SchemaPtr schema, const Value& value) {
    auto items = sorted_items(schema, value, error);
    const std::size_t first = levels_.open(true);
    for (std::size_t i = 0; i < items.size();) {
      const std::size_t end = end_of_equal(items, i);
      Value below =
          end == i + 1 ? of(element_of(schema), *items[i].value, Place::other) : Value::object();
      levels_.add(std::move(items[i].key), std::move(below));
      i = end;
    }
    return levels_.take(first);
  }

  Levels levels_;
};

class Comparer {
 public:
  explicit Comparer(bool joined) : joined_(joined) {}

  // At most one of the two is absent.
  Difference compare(SchemaPtr schema, const Value* before, const Value* after, Place place) {
    if (before == nullptr) return {Value(), Value(), whole_.of(schema, *after, place)};
    if (after == nullptr) return {whole_.of(schema, *before, place), Value(), Value()};
    if (before->same_node(*after)) return {};
    const Atom left = atom_of(schema, *before);
    const Atom right = atom_of(schema, *after);
    Difference out = compare_as(right, schema, *before, *after, place);
    if (left == right) return out;
    // Without a schema a value may become one of another sort: both views count.
    const Difference other = compare_as(left, schema, *before, *after, place);
    return {united_entries(out.removed, other.removed),
            united_entries(out.modified, other.modified), united_entries(out.added, other.added)};
  }

  const std::optional<Error>& error() const { return error_ ? error_ : whole_.error; }

 private:
  struct Changed {
    Value key;
    Difference difference;
  };

  Difference compare_as(Atom atom, SchemaPtr schema, const Value& before, const Value& after,
                        Place place) {
    // Two empty containers are leaves: so an empty one and null differ.
    const bool leaf = atom == Atom::scalar ||
                      (atom == Atom::list &&
                       (is_atomic_list(schema) || (!has_items(&before) && !has_items(&after)))) ||
                      (atom == Atom::map &&
                       (is_atomic_map(schema) || (!has_members(&before) && !has_members(&after))));
    if (leaf) return before == after ? Difference{} : modified();
    const std::size_t first = changed_.size();
    if (atom == Atom::list) {
      compare_lists(schema, before, after);
    } else {
      compare_maps(schema, before, after, place);
    }
    return level(first);
  }

  void compare_member(SchemaPtr schema, std::string_view key, const Value* before,
                      const Value* after, Place place) {
    if (is_of_entries(place, key)) return;
    if (before != nullptr && after != nullptr &&
        (before->same_node(*after) || (!is_container(*before) && *before == *after))) {
      return;
    }
    Difference difference = compare(child_of(schema, key, place == Place::root).schema, before,
                                    after, place_below(place, key));
    if (difference.any()) add(spelled_field(key), std::move(difference));
  }

  void compare_maps(SchemaPtr schema, const Value& left, const Value& right, Place place) {
    // Objects in normal form have their members in one order, so most are found where the last was,
    // and short keys are equal bit by bit.
    const auto* next = right.members().begin();
    const auto* end = right.members().end();
    std::size_t shared = 0;
    for (const json::Member& member : left.members()) {
      const std::string_view key = member.key();
      const Value* found = nullptr;
      if (next != end &&
          (Builder::key(*next).same_node(Builder::key(member)) || next->key() == key)) {
        found = &next->value();
        ++next;
      } else {
        found = right.find(key);
      }
      if (found != nullptr) ++shared;
      compare_member(schema, key, &member.value(), found, place);
    }
    if (shared == right.size()) return;
    for (const auto& [key, value] : right.members()) {
      if (!left.contains(key)) compare_member(schema, key, nullptr, &value, place);
    }
  }

  // Most changes leave the items of a list in their places: then elements are spelled for those
  // that differ only. False when there is more to it.
  bool compare_in_place(SchemaPtr schema, const Value& before, const Value& after) {
    constexpr std::size_t kMost = 8;
    const std::size_t size = before.size();
    if (size == 0 || size > kMost || after.size() != size) return false;
    if (schema->list_type == ListType::set) {
      for (std::size_t i = 0; i < size; ++i) {
        if (!before[i].is_string() || !(before[i] == after[i])) return false;
      }
      return true;
    }
    for (std::size_t i = 0; i < size; ++i) {
      if (!has_same_keys(*schema, before[i], after[i])) return false;
      for (std::size_t j = 0; j < i; ++j) {
        if (has_same_keys(*schema, after[i], after[j])) return false;
      }
    }
    std::vector<ListItem> items;
    for (std::size_t i = 0; i < size; ++i) {
      Difference difference = compare(element_of(schema), &before[i], &after[i], Place::other);
      if (!difference.any()) continue;
      if (items.empty()) {
        if (auto spelled = list_items(schema, after); spelled.ok()) items = *std::move(spelled);
      }
      add(items[i].key, std::move(difference));
    }
    return true;
  }

  void compare_lists(SchemaPtr schema, const Value& before, const Value& after) {
    if (before.is_array() && after.is_array() && compare_in_place(schema, before, after)) return;
    std::vector<ListItem> left;
    std::vector<ListItem> right;
    if (has_items(&before)) left = sorted_items(schema, before, error_);
    if (has_items(&after)) right = sorted_items(schema, after, error_);
    std::size_t l = 0;
    std::size_t r = 0;
    while (l < left.size() || r < right.size()) {
      const int c = l == left.size()    ? 1
                    : r == right.size() ? -1
                                        : compare_spelled(left[l].spelling(), right[r].spelling());
      const ListItem& first = c <= 0 ? left[l] : right[r];
      const std::size_t l_end = c <= 0 ? end_of_equal(left, l) : l;
      const std::size_t r_end = c >= 0 ? end_of_equal(right, r) : r;
      Difference difference = compare_items(element_of(schema), {left.data() + l, l_end - l},
                                            {right.data() + r, r_end - r});
      if (difference.any()) add(first.key, std::move(difference));
      l = l_end;
      r = r_end;
    }
  }

  // The items of one element on both sides. Lists that clients wrote may repeat an element; then
  // all its items are owned as one.
  Difference compare_items(SchemaPtr schema, std::span<const ListItem> left,
                           std::span<const ListItem> right) {
    if (left.size() <= 1 && right.size() <= 1) {
      return compare(schema, left.empty() ? nullptr : left[0].value,
                     right.empty() ? nullptr : right[0].value, Place::other);
    }
    Difference out;
    if (left.size() >= 2 && right.size() >= 2) {
      const bool equal =
          std::equal(left.begin(), left.end(), right.begin(), right.end(),
                     [](const ListItem& a, const ListItem& b) { return *a.value == *b.value; });
      if (!equal) out = modified();
    } else if (left.size() >= 2) {
      if (!right.empty()) out = compare(schema, nullptr, right[0].value, Place::other);
      out.removed = united_entries(out.removed, Value::object());
    } else {
      if (!left.empty()) out = compare(schema, left[0].value, nullptr, Place::other);
      out.added = united_entries(out.added, Value::object());
    }
    return out;
  }

  Difference modified() const {
    if (joined_) return {Value(), Value(), Value::object()};
    return {Value(), Value::object(), Value()};
  }

  void add(Value key, Difference difference) {
    if (changed_.empty()) changed_.reserve(16);
    changed_.push_back({std::move(key), std::move(difference)});
  }

  // As Levels::take, for three sets at once.
  Difference level(std::size_t first) {
    const std::span<Changed> mine(changed_.data() + first, changed_.size() - first);
    if (mine.empty()) return {};
    const auto less = [](const Changed& a, const Changed& b) {
      return compare_spelled(a.key.as_string(), b.key.as_string()) < 0;
    };
    if (!std::is_sorted(mine.begin(), mine.end(), less)) std::sort(mine.begin(), mine.end(), less);
    Difference out{collected(mine, &Difference::removed), collected(mine, &Difference::modified),
                   collected(mine, &Difference::added)};
    changed_.erase(changed_.begin() + static_cast<std::ptrdiff_t>(first), changed_.end());
    return out;
  }

  static Value collected(std::span<Changed> changed, Value Difference::*set) {
    std::size_t count = 0;
    for (const Changed& entry : changed) count += (entry.difference.*set).is_null() ? 0 : 1;
    if (count == 0) return Value();
    Value out = Builder::make(json::Kind::object, count);
    for (Changed& entry : changed) {
      Value& below = entry.difference.*set;
      if (!below.is_null()) *Builder::add_new(out, entry.key) = std::move(below);
    }
    return out;
  }

  bool joined_;
  Whole whole_;
  std::vector<Changed> changed_;
  std::optional<Error> error_;
};

class Collector {
 public:
  // The entry of the value, as far as its schema tells; null for a list that is none.
  Value collect(SchemaPtr schema, const Value& value, bool is_root) {
    switch (atom_of(schema, value)) {
      case Atom::scalar:
        return Value::object();
      case Atom::list:
        return collect_list(schema, value);
      case Atom::map:
        return collect_map(schema, value, is_root);
    }
    return Value();
  }

  std::optional<Error> error;

 private:
  Value collect_map(SchemaPtr schema, const Value& value, bool is_root) {
    if (is_atomic_map(schema)) return Value::object();
    const std::size_t first = levels_.open(false);
    for (const auto& [key, item] : value.members()) {
      const ChildSchema child = child_of(schema, key, is_root);
      Value below = collect(child.schema, item, false);
      // Entries of a map are owned beside what is in them, fields of a structure only when that is
      // nothing.
      const bool nothing = item.is_null() || (item.is_object() && item.empty());
      if (nothing || !child.declared) below = united_entries(below, Value::object());
      if (!below.is_null()) levels_.add(spelled_field(key), std::move(below));
    }
    return levels_.take(first);
  }

  Value collect_list(SchemaPtr schema, const Value& value) {
    if (is_atomic_list(schema)) return Value::object();
    if (!value.is_array()) return Value();
    const auto items = sorted_items(schema, value, error);
    const std::size_t first = levels_.open(false);
    for (std::size_t i = 0; i < items.size();) {
      const std::size_t end = end_of_equal(items, i);
      Value below;
      if (end == i + 1) below = collect(element_of(schema), *items[i].value, false);
      levels_.add(items[i].key, united_entries(below, Value::object()));
      i = end;
    }
    return levels_.take(first);
  }

  Levels levels_;
};

}  // namespace

Result<FieldSet> field_set_of(const Value& object, const Schema& schema) {
  Collector collector;
  Value trie = collector.collect(&schema, object, true);
  if (collector.error) return *collector.error;
  return FieldSet(std::move(trie));
}

Result<Comparison> compare_objects(const Value& before, const Value& after, const Schema& schema,
                                   bool joined) {
  Comparer comparer(joined);
  Difference difference = comparer.compare(&schema, &before, &after, Place::root);
  if (comparer.error()) return *comparer.error();
  return Comparison{FieldSet(std::move(difference.removed)),
                    FieldSet(std::move(difference.modified)),
                    FieldSet(std::move(difference.added))};
}

}  // namespace dibs::api
