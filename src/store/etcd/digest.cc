#include "store/etcd/digest.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "proto/etcd.pb.h"

namespace dibs::store::etcd {

bool ApartNames::contains(const std::string& key) const {
  const MutexLock lock(mutex_);
  return !keys_.empty() && keys_.contains(key);
}

void ApartNames::set(const std::string& key, bool apart) {
  const MutexLock lock(mutex_);
  if (apart) {
    keys_.insert(key);
  } else if (!keys_.empty()) {
    keys_.erase(key);
  }
}

RecordPtr Reader::record(const std::string& key, const etcdserverpb::KeyValue& kv) const {
  const auto made = [&](std::string_view value) {
    return std::make_shared<const Record>(commons_, key, value, kv.create_revision(),
                                          kv.mod_revision());
  };
  if (OwnValue own = own_(key, kv.value(), kv.mod_revision()); own.value) {
    auto record = made(*own.value);
    if (own.attachment) record->attach(std::move(own.attachment));
    return record;
  }
  if (!at_rest_) return made(kv.value());
  const auto opened = at_rest_->open(key, kv.value());
  if (opened.ok()) {
    if (opened->stale && stale_) stale_(key, kv.mod_revision());
    return made(opened->value);
  }
  log::warn("a value on etcd cannot be read", {{"key", key}, {"error", opened.error()}});
  return made(unreadable_value({opened.error().message(), kv.value()}));
}

void Reader::take_hand(const etcdserverpb::KeyValue& kv) const {
  (void)own_(kv.value(), kv.value(), kv.mod_revision());
}

bool Digest::fail(std::string why) {
  fault_ = std::move(why);
  return false;
}

bool Digest::add(const etcdserverpb::WatchResponse& message) {
  if (message.canceled()) {
    expired_ = message.compact_revision() != 0;
    return fail(message.cancel_reason().empty() ? "the watch was canceled"
                                                : message.cancel_reason());
  }
  if (message.created()) {
    created_ = true;
    return true;
  }
  if (message.events().empty()) {
    if (parts_.trusts_progress) reached_ = std::max(reached_, message.header().revision());
    return true;
  }
  for (const auto& event : message.events()) {
    const auto& kv = event.kv();
    const Revision revision = kv.mod_revision();
    if (revision <= from_) continue;
    if (revision < reached_) return fail(cat("revision ", revision, " after ", reached_));
    reached_ = revision;
    if (kv.key() == parts_.keys.hand()) parts_.reader.take_hand(kv);
    auto place = parts_.keys.in_memory(kv.key());
    if (!place) continue;
    const bool removed = event.type() == etcdserverpb::Event::DELETE;
    // It moved to the other place, or is there as well.
    if (removed && parts_.apart.contains(place->key) != place->apart) continue;
    parts_.apart.set(place->key, place->apart && !removed);
    Change change;
    change.revision = revision;
    if (removed) {
      change.removed = std::move(place->key);
    } else {
      change.now = parts_.reader.record(place->key, kv);
    }
    changes_.push_back(std::move(change));
  }
  return true;
}

}  // namespace dibs::store::etcd
