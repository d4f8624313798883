#pragma once
// metadata.managedFields: who owns which fields of an object, and since when.
//
// A manager is known by its name, its operation, the sub-resource it writes through and, for
// Update, the version it writes in. Apply has one entry per name and sub-resource, whatever version
// it wrote last.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/merge/field_set.h"
#include "base/result.h"
#include "base/time.h"
#include "json/value.h"

namespace dibs::api {

struct Manager {
  // Texts; null is as good as "".
  Value name;
  bool applies = false;  // operation Apply, else Update
  Value api_version;
  Value subresource;
  Value time;  // as the API writes it; null when not known
  FieldSet fields;
  /// The entry it was read from, for as long as its fields are the same.
  Value source;
  FieldSet source_fields;

  std::string_view version() const { return api_version.as_string(); }
  bool is(const Manager& other) const;
  /// As messages name it: "kubectl", "x" with subresource "scale" using apps/v1.
  std::string label() const;
  /// A text that orders managers as the API orders them.
  std::string identity() const;
};

/// One entry per manager.
class Managers {
 public:
  /// The error tells what is wrong with an entry; a null value has none.
  static Result<Managers> decode(const Value& entries);
  /// Sorted as the API sorts them; null when there are none.
  Value encode() const;

  bool empty() const { return list_.empty(); }
  std::vector<Manager>& list() { return list_; }
  const std::vector<Manager>& list() const { return list_; }
  Manager* find(const Manager& like);
  /// In place of the entry of the same manager, or new.
  void put(Manager manager);
  /// Drops those that own nothing.
  void drop_empty();
  /// Joins the oldest Update entries of a version into one named ancient-changes, until `limit` are
  /// left.
  void cap_updates(std::size_t limit);

 private:
  std::vector<Manager> list_;
};

/// What nobody owns: names, versions, times and counters that the server keeps.
const FieldSet& unmanaged_fields();

/// True for [] and [{}]: a client wants the list forgotten. Ask before the object is brought to
/// normal form, where [] is gone.
bool resets_managed_fields(const Value& object);

/// The entries of an object as the Scale made of it shows them: those who own the replicas, in
/// autoscaling/v1.
Value managed_fields_to_scale(const Value& entries, const FieldPath& replicas_path);
/// The entries of the object after a write of its Scale. `scale_entries` are those of the Scale
/// then.
Value managed_fields_from_scale(const Value& entries, const Value& scale_entries,
                                const FieldPath& replicas_path, std::string_view api_version);

/// The object with the times of `old` in managedFields when nothing but times differs: such a write
/// is none.
Value keep_times(const Value& old, Value object);

}  // namespace dibs::api
