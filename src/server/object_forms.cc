#include "server/object_forms.h"

#include "base/strings.h"

namespace dibs::server {

using json::Value;

namespace {

Value at_version(Value object, store::Revision version) {
  object.mut("metadata").set("resourceVersion", cat(version));
  return object;
}

}  // namespace

// The writer of an object does not know yet which version it will be.
void ObjectForms::set_version(store::Revision version) const {
  if (version_ != 0) return;
  version_ = version;
  whole_ = at_version(std::move(whole_), version);
}

Value ObjectForms::whole(store::Revision version) const {
  MutexLock lock(mutex_);
  set_version(version);
  return version == version_ ? whole_ : at_version(whole_, version);
}

Value ObjectForms::kept(store::Revision version, json::Pool& trees) const {
  MutexLock lock(mutex_);
  set_version(version);
  if (kept_.is_null()) {
    Value metadata = trees.share_parts(whole_["metadata"], "managedFields");
    whole_.set("metadata", metadata);
    whole_ = trees.share_parts(std::move(whole_), "metadata");
    kept_ = whole_;
    kept_.set("metadata", trees.share_without(metadata, "managedFields"));
    kept_ = trees.share_parts(std::move(kept_));
  }
  return version == version_ ? kept_ : at_version(kept_, version);
}

}  // namespace dibs::server
