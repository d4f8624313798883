#pragma once
// What readers make of one stored object, made once and shared by all of them: the whole object
// with its resourceVersion, and the same without metadata.managedFields for those in this process
// who keep it. Both are made when somebody asks first.
//
// The second is made of parts shared through a pool (json/share.h), so the copies that many
// informers keep are one tree, and most of that tree is shared with other objects. From then on the
// first has the same parts: an update that starts with it has little to share anew.
//
// Thread-safe.

#include <mutex>

#include "json/share.h"
#include "json/value.h"
#include "store/store.h"

namespace dibs::server {

class ObjectForms {
 public:
  /// Requires an object.
  explicit ObjectForms(json::Value object) : whole_(std::move(object)) {}

  json::Value whole(store::Revision version) const;
  json::Value kept(store::Revision version, json::Pool& trees) const;

 private:
  void set_version(store::Revision version) const;

  mutable std::mutex mutex_;
  mutable json::Value whole_;            // guarded by mutex_
  mutable json::Value kept_;             // null until asked for; guarded by mutex_
  mutable store::Revision version_ = 0;  // in both; 0: not yet known; guarded by mutex_
};

}  // namespace dibs::server
