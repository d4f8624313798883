#pragma once
// Objects seen through their schema, as server-side apply sees them.
//
// Every value is a scalar, a list or a map. Lists are atomic (owned as a whole), sets (items told
// apart by value) or keyed (items told apart by some of their fields, with defaults where the
// schema has them). Maps and structures are granular unless the schema says atomic. A free part of
// a built-in kind (Shape::any) is atomic; where a custom resource preserves what it does not
// declare, and below, maps are granular and lists atomic.
//
// An absent value is not the same as null: null is owned and compared, absent is not.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/merge/field_set.h"
#include "api/schema/schema.h"
#include "base/result.h"
#include "json/value.h"

namespace dibs::api {

/// A schema, or nothing where anything may stand.
using SchemaPtr = const Schema*;

enum class Atom : std::uint8_t { scalar, list, map };

/// What the value is under the schema; without one, what it is in JSON (null counts as a map).
Atom atom_of(SchemaPtr schema, const Value& value);

struct ChildSchema {
  SchemaPtr schema = nullptr;
  bool declared = false;  // a field of a structure, not an entry of a map
  bool known = true;      // false: the structure has no such field
};

/// The schema of a member. The root's metadata is always that of ObjectMeta, whatever a custom
/// resource declares.
ChildSchema child_of(SchemaPtr schema, std::string_view name, bool is_root = false);
SchemaPtr element_of(SchemaPtr schema);
bool is_atomic_list(SchemaPtr schema);
bool is_atomic_map(SchemaPtr schema);

/// An item of a list that is not atomic, with what tells it apart.
struct ListItem {
  Value key;  // its element, spelled
  const Value* value;

  std::string_view spelling() const { return key.as_string(); }
};

/// The items in their order. The error is a text without a path: "element 0: …".
Result<std::vector<ListItem>> list_items(SchemaPtr list, const Value& value);

/// The zero value of a built-in kind: the normal form of an object with nothing set but its kind.
Value zero_object(const Schema& schema, std::string_view api_version, std::string_view kind);

/// Checks that the object is one of the schema's: types, declared fields, no duplicates in sets and
/// keyed lists. The error's message is ".data.k: expected string, got …"; several faults are
/// listed.
Result<> check_typed(const Value& object, const Schema& schema);

/// All that an applied object mentions: leaves, items, entries of maps, and what is empty or null.
Result<FieldSet> field_set_of(const Value& object, const Schema& schema);

/// What makes `after` out of `before`. No path is in two of the sets.
/// metadata.managedFields is not looked at: it tells of fields and is none.
struct Comparison {
  FieldSet removed;
  FieldSet modified;
  FieldSet added;

  bool same() const { return removed.empty() && modified.empty() && added.empty(); }
  /// Takes the paths of `ignored`, and all below them, out.
  void ignore(const FieldSet& ignored);
};

/// `joined`: what is modified counts as added, for a caller who would unite the two.
Result<Comparison> compare_objects(const Value& before, const Value& after, const Schema& schema,
                                   bool joined = false);

/// The object without the paths of the set. A container that loses all it has becomes null.
Value remove_items(const Value& object, const FieldSet& set, const Schema& schema);

/// The set with every structure field on the way to a member as a member too.
FieldSet with_named_fields(const FieldSet& set, const Schema& schema);

/// The set fitted to a schema in which parts have become atomic since it was written: they are
/// owned as a whole.
FieldSet reconciled(const FieldSet& set, const Schema& schema);

}  // namespace dibs::api
