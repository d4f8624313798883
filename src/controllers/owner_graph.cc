#include "controllers/owner_graph.h"

#include <algorithm>

#include "base/finalizers.h"

namespace dibs::controllers {

bool OwnedObject::owned_by(std::string_view uid) const {
  return std::any_of(owners.begin(), owners.end(),
                     [&](const Owner& owner) { return owner.uid == uid; });
}

GraphWork OwnerGraph::put(OwnedObject object) {
  GraphWork work;
  const std::string uid = object.uid;
  const auto found = objects_.find(uid);
  const OwnedObject before = found == objects_.end() ? OwnedObject{} : found->second;

  for (const Owner& owner : before.owners) {
    const Owner* now = nullptr;
    for (const Owner& next : object.owners) {
      if (next.uid == owner.uid) now = &next;
    }
    if (now == nullptr) {
      const auto entry = dependents_.find(owner.uid);
      if (entry != dependents_.end()) {
        entry->second.erase(uid);
        if (entry->second.empty()) dependents_.erase(entry);
      }
    }
    // An owner that waited for this object need not wait any longer.
    if (owner.blocks && (now == nullptr || !now->blocks)) {
      const OwnedObject* waiting = find(owner.uid);
      if (waiting != nullptr && waiting->deletes_dependents()) work.check.push_back(owner.uid);
    }
  }
  bool check = false;
  for (const Owner& owner : object.owners) {
    dependents_[owner.uid].insert(uid);
    const OwnedObject* there = find(owner.uid);
    const bool sound = there != nullptr && there->name == owner.name && there->kind == owner.kind &&
                       (there->name_space.empty() || there->name_space == object.name_space);
    if (!sound || there->deletes_dependents()) check = true;
  }
  if (object.deletes_dependents() && !before.deletes_dependents()) {
    check = true;
    const auto entry = dependents_.find(uid);
    if (entry != dependents_.end()) {
      work.check.insert(work.check.end(), entry->second.begin(), entry->second.end());
    }
  }
  if (check) work.check.push_back(uid);
  if (object.orphans_dependents() && !before.orphans_dependents()) work.orphan.push_back(uid);
  objects_[uid] = std::move(object);
  return work;
}

GraphWork OwnerGraph::remove(const std::string& uid) {
  GraphWork work;
  const auto found = objects_.find(uid);
  if (found == objects_.end()) return work;
  const OwnedObject object = std::move(found->second);
  objects_.erase(found);
  for (const Owner& owner : object.owners) {
    const auto entry = dependents_.find(owner.uid);
    if (entry != dependents_.end()) {
      entry->second.erase(uid);
      if (entry->second.empty()) dependents_.erase(entry);
    }
    const OwnedObject* waiting = find(owner.uid);
    if (waiting != nullptr && waiting->deletes_dependents()) work.check.push_back(owner.uid);
  }
  const auto entry = dependents_.find(uid);
  if (entry != dependents_.end()) {
    work.check.insert(work.check.end(), entry->second.begin(), entry->second.end());
  }
  return work;
}

const OwnedObject* OwnerGraph::find(const std::string& uid) const {
  const auto found = objects_.find(uid);
  return found == objects_.end() ? nullptr : &found->second;
}

std::vector<OwnedObject> OwnerGraph::dependents(const std::string& uid) const {
  std::vector<OwnedObject> out;
  const auto entry = dependents_.find(uid);
  if (entry == dependents_.end()) return out;
  for (const auto& dependent : entry->second) {
    const OwnedObject* object = find(dependent);
    if (object != nullptr) out.push_back(*object);
  }
  return out;
}

std::vector<OwnedObject> OwnerGraph::blocking(const std::string& uid) const {
  std::vector<OwnedObject> out = dependents(uid);
  std::erase_if(out, [&](const OwnedObject& object) {
    return std::none_of(object.owners.begin(), object.owners.end(),
                        [&](const Owner& owner) { return owner.uid == uid && owner.blocks; });
  });
  return out;
}

OwnedObject read_owned(const client::Gvr& gvr, const std::string& kind, const json::Value& object) {
  const json::Value& metadata = object["metadata"];
  OwnedObject out;
  out.gvr = gvr;
  out.kind = kind;
  out.name_space = metadata["namespace"].str();
  out.name = metadata["name"].str();
  out.uid = metadata["uid"].str();
  out.deleting = !metadata["deletionTimestamp"].is_null();
  for (const auto& owner : metadata["ownerReferences"].items()) {
    out.owners.push_back({owner["apiVersion"].str(), owner["kind"].str(), owner["name"].str(),
                          owner["uid"].str(), owner["blockOwnerDeletion"].as_bool()});
  }
  for (const auto& finalizer : metadata["finalizers"].items()) {
    if (finalizer.as_string() == kForegroundFinalizer) out.foreground = true;
    if (finalizer.as_string() == kOrphanFinalizer) out.orphan = true;
  }
  return out;
}

}  // namespace dibs::controllers
