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

#include "base/mutex.h"
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
  void set_version(store::Revision version) const DIBS_REQUIRES(mutex_);

  mutable Mutex mutex_;
  mutable json::Value whole_ DIBS_GUARDED_BY(mutex_);
  mutable json::Value kept_ DIBS_GUARDED_BY(mutex_);             // null until asked for
  mutable store::Revision version_ DIBS_GUARDED_BY(mutex_) = 0;  // in both; 0: not yet known
};

}  // namespace dibs::server
