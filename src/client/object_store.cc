#include "client/object_store.h"

namespace dibs::client {

void ObjectStore::enter(IndexState& index, const std::string& key, const json::Value& object) {
  for (const auto& value : index.function(object)) index.keys[value].insert(key);
}

void ObjectStore::leave(IndexState& index, const std::string& key, const json::Value& object) {
  for (const auto& value : index.function(object)) {
    const auto found = index.keys.find(value);
    if (found == index.keys.end()) continue;
    found->second.erase(key);
    if (found->second.empty()) index.keys.erase(found);
  }
}

void ObjectStore::add_index(const std::string& name, Index function) {
  std::lock_guard lock(mutex_);
  IndexState& index = indexes_[name];
  index = {std::move(function), {}};
  for (const auto& [key, object] : objects_) enter(index, key, object);
}

std::optional<json::Value> ObjectStore::put(const std::string& key, json::Value object) {
  std::lock_guard lock(mutex_);
  std::optional<json::Value> before;
  const auto found = objects_.find(key);
  if (found == objects_.end()) {
    for (auto& [name, index] : indexes_) enter(index, key, object);
    objects_.emplace(key, std::move(object));
    return before;
  }
  before = found->second;
  for (auto& [name, index] : indexes_) {
    // As a rule an update leaves the object where it was.
    if (index.function(*before) == index.function(object)) continue;
    leave(index, key, *before);
    enter(index, key, object);
  }
  found->second = std::move(object);
  return before;
}

std::optional<json::Value> ObjectStore::remove(const std::string& key) {
  std::lock_guard lock(mutex_);
  const auto found = objects_.find(key);
  if (found == objects_.end()) return std::nullopt;
  std::optional<json::Value> before = std::move(found->second);
  objects_.erase(found);
  for (auto& [name, index] : indexes_) leave(index, key, *before);
  return before;
}

std::optional<json::Value> ObjectStore::get(const std::string& key) const {
  std::lock_guard lock(mutex_);
  const auto found = objects_.find(key);
  if (found == objects_.end()) return std::nullopt;
  return found->second;
}

std::vector<json::Value> ObjectStore::list() const {
  std::lock_guard lock(mutex_);
  std::vector<json::Value> out;
  out.reserve(objects_.size());
  for (const auto& [key, object] : objects_) out.push_back(object);
  return out;
}

std::vector<std::string> ObjectStore::keys() const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  out.reserve(objects_.size());
  for (const auto& [key, object] : objects_) out.push_back(key);
  return out;
}

std::vector<json::Value> ObjectStore::by_index(const std::string& name,
                                               const std::string& value) const {
  std::lock_guard lock(mutex_);
  std::vector<json::Value> out;
  const auto index = indexes_.find(name);
  if (index == indexes_.end()) return out;
  const auto found = index->second.keys.find(value);
  if (found == index->second.keys.end()) return out;
  for (const auto& key : found->second) out.push_back(objects_.at(key));
  return out;
}

std::size_t ObjectStore::size() const {
  std::lock_guard lock(mutex_);
  return objects_.size();
}

std::vector<std::string> index_by_namespace(const json::Value& object) {
  return {object["metadata"]["namespace"].str()};
}

}  // namespace dibs::client
