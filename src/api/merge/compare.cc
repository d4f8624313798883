// Walks over one or two objects that make field sets: what an object mentions, and what differs.

#include <algorithm>

#include "api/merge/typed.h"

namespace dibs::api {
namespace {

// What is known of one value: whether its own path is in the set, and what is below.
struct Mark {
  bool member = false;
  FieldNodePtr below;

  explicit operator bool() const { return member || below != nullptr; }
};

struct Difference {
  Mark removed;
  Mark modified;
  Mark added;
};

using Entries = std::vector<FieldEntry>;

void add_entry(Entries& entries, const PathElement& element, Mark& mark) {
  if (mark) entries.push_back({element, mark.member, std::move(mark.below)});
}

struct Level {
  Entries removed, modified, added;

  void add(const PathElement& element, Difference& difference) {
    add_entry(removed, element, difference.removed);
    add_entry(modified, element, difference.modified);
    add_entry(added, element, difference.added);
  }
  void finish(Difference& difference) {
    if (!removed.empty()) difference.removed.below = make_node(std::move(removed));
    if (!modified.empty()) difference.modified.below = make_node(std::move(modified));
    if (!added.empty()) difference.added.below = make_node(std::move(added));
  }
};

bool has_members(const Value* value) {
  return value != nullptr && value->is_object() && !value->empty();
}
bool has_items(const Value* value) {
  return value != nullptr && value->is_array() && !value->empty();
}

Mark united(Mark a, const Mark& b) {
  a.member = a.member || b.member;
  a.below = FieldSet(std::move(a.below)).united(FieldSet(b.below)).root();
  return a;
}

class Comparer {
 public:
  // At most one of the two is absent.
  Difference compare(SchemaPtr schema, const Value* before, const Value* after, bool is_root) {
    if (before == nullptr || after == nullptr) {
      const Value& present = before == nullptr ? *after : *before;
      return compare_as(atom_of(schema, present), schema, before, after, is_root);
    }
    if (before->same_node(*after)) return {};
    const Atom left = atom_of(schema, *before);
    const Atom right = atom_of(schema, *after);
    Difference out = compare_as(right, schema, before, after, is_root);
    if (left == right) return out;
    // Without a schema a value may become one of another sort: both views count.
    const Difference other = compare_as(left, schema, before, after, is_root);
    return {united(std::move(out.removed), other.removed),
            united(std::move(out.modified), other.modified),
            united(std::move(out.added), other.added)};
  }

  std::optional<Error> error;

 private:
  Difference compare_as(Atom atom, SchemaPtr schema, const Value* before, const Value* after,
                        bool is_root) {
    // Two empty containers are leaves: so an empty one and null differ.
    const bool leaf = atom == Atom::scalar ||
                      (atom == Atom::list &&
                       (is_atomic_list(schema) || (!has_items(before) && !has_items(after)))) ||
                      (atom == Atom::map &&
                       (is_atomic_map(schema) || (!has_members(before) && !has_members(after))));
    Difference out;
    if (leaf) {
      if (before != nullptr && after != nullptr) out.modified.member = !(*before == *after);
    } else if (atom == Atom::list) {
      compare_lists(schema, before, after, out);
    } else {
      compare_maps(schema, before, after, is_root, out);
    }
    if (before == nullptr) out.added.member = true;
    if (after == nullptr) out.removed.member = true;
    return out;
  }

  void compare_maps(SchemaPtr schema, const Value* before, const Value* after, bool is_root,
                    Difference& out) {
    Level level;
    const Value& left = has_members(before) ? *before : json::null_value();
    const Value& right = has_members(after) ? *after : json::null_value();
    const auto visit = [&](std::string_view key, const Value* l, const Value* r) {
      Difference difference = compare(child_of(schema, key, is_root).schema, l, r, false);
      if (difference.removed || difference.modified || difference.added) {
        level.add(PathElement::field(key), difference);
      }
    };
    for (const auto& [key, value] : left.members()) visit(key, &value, right.find(key));
    for (const auto& [key, value] : right.members()) {
      if (!left.contains(key)) visit(key, nullptr, &value);
    }
    level.finish(out);
  }

  // Sorted by element; items of one element keep their order.
  std::vector<ListItem> sorted_items(SchemaPtr schema, const Value* list) {
    if (!has_items(list)) return {};
    auto items = list_items(schema, *list);
    if (!items.ok()) {
      if (!error) error = items.error();
      return {};
    }
    std::stable_sort(items->begin(), items->end(), [](const ListItem& a, const ListItem& b) {
      return api::compare(a.element, b.element) < 0;
    });
    return std::move(items).value();
  }

  void compare_lists(SchemaPtr schema, const Value* before, const Value* after, Difference& out) {
    const auto left = sorted_items(schema, before);
    const auto right = sorted_items(schema, after);
    Level level;
    std::size_t l = 0;
    std::size_t r = 0;
    while (l < left.size() || r < right.size()) {
      const int c = l == left.size()    ? 1
                    : r == right.size() ? -1
                                        : api::compare(left[l].element, right[r].element);
      const PathElement& element = c <= 0 ? left[l].element : right[r].element;
      std::size_t l_end = l;
      std::size_t r_end = r;
      while (l_end < left.size() && left[l_end].element == element) ++l_end;
      while (r_end < right.size() && right[r_end].element == element) ++r_end;
      Difference difference = compare_items(element_of(schema), {left.data() + l, l_end - l},
                                            {right.data() + r, r_end - r});
      level.add(element, difference);
      l = l_end;
      r = r_end;
    }
    level.finish(out);
  }

  // The items of one element on both sides. Lists that clients wrote may repeat an element; then
  // all its items are owned as one.
  Difference compare_items(SchemaPtr schema, std::span<const ListItem> left,
                           std::span<const ListItem> right) {
    if (left.size() <= 1 && right.size() <= 1) {
      return compare(schema, left.empty() ? nullptr : left[0].value,
                     right.empty() ? nullptr : right[0].value, false);
    }
    Difference out;
    if (left.size() >= 2 && right.size() >= 2) {
      out.modified.member =
          !std::equal(left.begin(), left.end(), right.begin(), right.end(),
                      [](const ListItem& a, const ListItem& b) { return *a.value == *b.value; });
    } else if (left.size() >= 2) {
      if (!right.empty()) out = compare(schema, nullptr, right[0].value, false);
      out.removed.member = true;
    } else {
      if (!left.empty()) out = compare(schema, left[0].value, nullptr, false);
      out.added.member = true;
    }
    return out;
  }
};

class Collector {
 public:
  Mark collect(SchemaPtr schema, const Value& value, bool is_root) {
    switch (atom_of(schema, value)) {
      case Atom::scalar:
        return {true, nullptr};
      case Atom::list:
        return collect_list(schema, value);
      case Atom::map:
        return collect_map(schema, value, is_root);
    }
    return {};
  }

  std::optional<Error> error;

 private:
  Mark collect_map(SchemaPtr schema, const Value& value, bool is_root) {
    if (is_atomic_map(schema)) return {true, nullptr};
    Entries entries;
    for (const auto& [key, item] : value.members()) {
      const ChildSchema child = child_of(schema, key, is_root);
      Mark mark = collect(child.schema, item, false);
      // Entries of a map are owned beside what is in them, fields of a structure only when that is
      // nothing.
      const bool nothing = item.is_null() || (item.is_object() && item.empty());
      mark.member = mark.member || nothing || !child.declared;
      add_entry(entries, PathElement::field(key), mark);
    }
    return {false, make_node(std::move(entries))};
  }

  Mark collect_list(SchemaPtr schema, const Value& value) {
    if (is_atomic_list(schema)) return {true, nullptr};
    if (!value.is_array()) return {};
    auto items = list_items(schema, value);
    if (!items.ok()) {
      if (!error) error = items.error();
      return {};
    }
    std::stable_sort(items->begin(), items->end(), [](const ListItem& a, const ListItem& b) {
      return compare(a.element, b.element) < 0;
    });
    Entries entries;
    for (std::size_t i = 0; i < items->size();) {
      std::size_t end = i + 1;
      while (end < items->size() && (*items)[end].element == (*items)[i].element) ++end;
      Mark mark;
      if (end == i + 1) mark = collect(element_of(schema), *(*items)[i].value, false);
      mark.member = true;
      add_entry(entries, (*items)[i].element, mark);
      i = end;
    }
    return {false, make_node(std::move(entries))};
  }
};

}  // namespace

Result<FieldSet> field_set_of(const Value& object, const Schema& schema) {
  Collector collector;
  Mark mark = collector.collect(&schema, object, true);
  if (collector.error) return *collector.error;
  return FieldSet(std::move(mark.below));
}

Result<Comparison> compare_objects(const Value& before, const Value& after, const Schema& schema) {
  Comparer comparer;
  Difference difference = comparer.compare(&schema, &before, &after, true);
  if (comparer.error) return *comparer.error;
  return Comparison{FieldSet(std::move(difference.removed.below)),
                    FieldSet(std::move(difference.modified.below)),
                    FieldSet(std::move(difference.added.below))};
}

}  // namespace dibs::api
