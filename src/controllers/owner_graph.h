#pragma once
// Who owns whom, by uid, over all objects of a cluster; and what a change of one object means for
// the others. No I/O, no lock: the garbage collector (garbage_collector.cc) has both.
//
// An owner need not be in the graph for its dependents to be known: objects come in any order, and
// an owner that was never seen is to be asked for.

#include <cstddef>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client/client.h"
#include "json/value.h"

namespace dibs::controllers {

struct Owner {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  bool blocks = false;  // blockOwnerDeletion
};

struct OwnedObject {
  client::Gvr gvr;
  std::string kind;
  std::string name_space;
  std::string name;
  std::string uid;
  std::vector<Owner> owners;
  bool deleting = false;
  bool foreground = false;  // has the finalizer of a foreground deletion
  bool orphan = false;      // has the finalizer of an orphaning deletion

  bool deletes_dependents() const { return deleting && foreground; }
  bool orphans_dependents() const { return deleting && orphan; }
  bool owned_by(std::string_view uid) const;
};

/// What is to be looked at after a change.
struct GraphWork {
  std::vector<std::string> check;   // uids: is it still owned, or may it go?
  std::vector<std::string> orphan;  // uids: its dependents are to lose it
};

class OwnerGraph {
 public:
  GraphWork put(OwnedObject object);
  GraphWork remove(const std::string& uid);

  /// Null when not there.
  const OwnedObject* find(const std::string& uid) const;
  /// Those that name it as an owner.
  std::vector<OwnedObject> dependents(const std::string& uid) const;
  /// Those of them that hold up its end.
  std::vector<OwnedObject> blocking(const std::string& uid) const;
  std::size_t size() const { return objects_.size(); }

 private:
  std::unordered_map<std::string, OwnedObject> objects_;
  std::unordered_map<std::string, std::unordered_set<std::string>> dependents_;
};

/// Reads the metadata of an object.
OwnedObject read_owned(const client::Gvr& gvr, const std::string& kind, const json::Value& object);

}  // namespace dibs::controllers
