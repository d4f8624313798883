#include "controllers/expectations.h"

#include "base/mutex.h"

namespace dibs::controllers {
namespace {

constexpr Duration kVoidAfter = std::chrono::minutes(5);

}  // namespace

bool Expectations::satisfied(const std::string& owner, Time now) const {
  const MutexLock lock(mutex_);
  const auto found = owners_.find(owner);
  if (found == owners_.end()) return true;
  const Outstanding& outstanding = found->second;
  if (outstanding.creations <= 0 && outstanding.deletions.empty()) return true;
  return now - outstanding.since > kVoidAfter;
}

void Expectations::expect_creations(const std::string& owner, int count, Time now) {
  const MutexLock lock(mutex_);
  Outstanding& outstanding = owners_[owner];
  if (now - outstanding.since > kVoidAfter) outstanding = {};
  outstanding.creations += count;
  outstanding.since = now;
}

void Expectations::creation_seen(const std::string& owner) {
  const MutexLock lock(mutex_);
  const auto found = owners_.find(owner);
  if (found != owners_.end() && found->second.creations > 0) --found->second.creations;
}

void Expectations::expect_deletion(const std::string& owner, const std::string& uid, Time now) {
  const MutexLock lock(mutex_);
  Outstanding& outstanding = owners_[owner];
  if (now - outstanding.since > kVoidAfter) outstanding = {};
  outstanding.deletions.insert(uid);
  outstanding.since = now;
}

void Expectations::deletion_seen(const std::string& owner, const std::string& uid) {
  const MutexLock lock(mutex_);
  const auto found = owners_.find(owner);
  if (found != owners_.end()) found->second.deletions.erase(uid);
}

void Expectations::forget(const std::string& owner) {
  const MutexLock lock(mutex_);
  owners_.erase(owner);
}

}  // namespace dibs::controllers
