#include "client/object_store.h"

#include "base/mutex.h"

namespace dibs::client {

void ObjectStore::enter(IndexState& index, const Entry& entry, const json::Value& object) {
  for (const auto& value : index.function(object)) {
    Found& found = index.found[value];
    if (found.several != nullptr) {
      found.several->insert(&entry);
    } else if (found.only == nullptr || found.only == &entry) {
      found.only = &entry;
    } else {
      found.several = std::make_unique<std::set<const Entry*, ByKey>>();
      found.several->insert({found.only, &entry});
      found.only = nullptr;
    }
  }
}

void ObjectStore::leave(IndexState& index, const Entry& entry, const json::Value& object) {
  for (const auto& value : index.function(object)) {
    const auto at = index.found.find(value);
    if (at == index.found.end()) continue;
    Found& found = at->second;
    if (found.several != nullptr) {
      found.several->erase(&entry);
      if (found.several->empty()) index.found.erase(at);
    } else if (found.only == &entry) {
      index.found.erase(at);
    }
  }
}

void ObjectStore::add_index(const std::string& name, Index function) {
  const MutexLock lock(mutex_);
  IndexState& index = indexes_[name];
  index = {std::move(function), {}};
  for (const Entry& entry : objects_) enter(index, entry, entry.second);
}

std::optional<json::Value> ObjectStore::put(const std::string& key, json::Value object) {
  const MutexLock lock(mutex_);
  std::optional<json::Value> before;
  const auto [found, fresh] = objects_.try_emplace(key);
  if (fresh) {
    for (auto& [name, index] : indexes_) enter(index, *found, object);
    found->second = std::move(object);
    return before;
  }
  before = found->second;
  for (auto& [name, index] : indexes_) {
    // As a rule an update leaves the object where it was.
    if (index.function(*before) == index.function(object)) continue;
    leave(index, *found, *before);
    enter(index, *found, object);
  }
  found->second = std::move(object);
  return before;
}

std::optional<json::Value> ObjectStore::remove(const std::string& key) {
  const MutexLock lock(mutex_);
  const auto found = objects_.find(key);
  if (found == objects_.end()) return std::nullopt;
  for (auto& [name, index] : indexes_) leave(index, *found, found->second);
  std::optional<json::Value> before = std::move(found->second);
  objects_.erase(found);
  return before;
}

std::optional<json::Value> ObjectStore::get(const std::string& key) const {
  const MutexLock lock(mutex_);
  const auto found = objects_.find(key);
  if (found == objects_.end()) return std::nullopt;
  return found->second;
}

std::vector<json::Value> ObjectStore::list() const {
  const MutexLock lock(mutex_);
  std::vector<json::Value> out;
  out.reserve(objects_.size());
  for (const auto& [key, object] : objects_) out.push_back(object);
  return out;
}

std::vector<std::string> ObjectStore::keys() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> out;
  out.reserve(objects_.size());
  for (const auto& [key, object] : objects_) out.push_back(key);
  return out;
}

std::vector<json::Value> ObjectStore::by_index(const std::string& name,
                                               const std::string& value) const {
  const MutexLock lock(mutex_);
  std::vector<json::Value> out;
  const auto index = indexes_.find(name);
  if (index == indexes_.end()) return out;
  const auto found = index->second.found.find(value);
  if (found == index->second.found.end()) return out;
  if (found->second.several == nullptr) {
    out.push_back(found->second.only->second);
  } else {
    out.reserve(found->second.several->size());
    for (const Entry* entry : *found->second.several) out.push_back(entry->second);
  }
  return out;
}

std::size_t ObjectStore::size() const {
  const MutexLock lock(mutex_);
  return objects_.size();
}

std::vector<std::string> index_by_namespace(const json::Value& object) {
  return {object["metadata"]["namespace"].str()};
}

}  // namespace dibs::client
