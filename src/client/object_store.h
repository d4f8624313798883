#pragma once
// A cache of objects by key ("namespace/name"), with indexes. Thread-safe; objects are immutable
// values, so readers share them without a copy.

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

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
  struct IndexState {
    Index function;
    std::unordered_map<std::string, std::set<std::string>> keys;  // by value
  };
  void enter(IndexState& index, const std::string& key, const json::Value& object);
  void leave(IndexState& index, const std::string& key, const json::Value& object);

  mutable std::mutex mutex_;
  std::unordered_map<std::string, json::Value> objects_;  // guarded by mutex_
  std::map<std::string, IndexState> indexes_;             // guarded by mutex_
};

/// The common index: by namespace.
std::vector<std::string> index_by_namespace(const json::Value& object);

}  // namespace dibs::client
