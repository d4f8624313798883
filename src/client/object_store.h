#pragma once
// A cache of objects by key ("namespace/name"), with indexes. Thread-safe; objects are immutable
// values, so readers share them without a copy.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "json/value.h"

namespace dibs::client {

class ObjectStore {
 public:
  /// The values under which an object is found; must depend on the object alone.
  using Index = std::function<std::vector<std::string>(const json::Value& object)>;

  /// Indexes objects that are here already, too.
  void add_index(const std::string& name, Index index);

  /// The object that was there before.
  std::optional<json::Value> put(const std::string& key, json::Value object);
  std::optional<json::Value> remove(const std::string& key);

  std::optional<json::Value> get(const std::string& key) const;
  /// In no particular order.
  std::vector<json::Value> list() const;
  std::vector<std::string> keys() const;
  std::vector<json::Value> by_index(const std::string& name, const std::string& value) const;
  std::size_t size() const;

 private:
  using Entry = std::unordered_map<std::string, json::Value>::value_type;
  struct ByKey {
    bool operator()(const Entry* a, const Entry* b) const { return a->first < b->first; }
  };
  /// Objects of one value. Most values have one object, which needs no set.
  struct Found {
    const Entry* only = nullptr;
    std::unique_ptr<std::set<const Entry*, ByKey>> several;
  };
  struct IndexState {
    Index function;
    std::unordered_map<std::string, Found> found;  // by value
  };
  static void enter(IndexState& index, const Entry& entry, const json::Value& object);
  static void leave(IndexState& index, const Entry& entry, const json::Value& object);

  mutable Mutex mutex_;
  /// Indexes point to its entries.
  std::unordered_map<std::string, json::Value> objects_ DIBS_GUARDED_BY(mutex_);
  std::map<std::string, IndexState> indexes_ DIBS_GUARDED_BY(mutex_);
};

/// The common index: by namespace.
std::vector<std::string> index_by_namespace(const json::Value& object);

}  // namespace dibs::client
