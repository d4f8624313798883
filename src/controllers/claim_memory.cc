#include "controllers/claim_memory.h"

namespace dibs::controllers {
namespace {

constexpr std::size_t kRemembered = 1000;

}  // namespace

std::string ClaimMemory::made(const std::string& entry) const {
  const MutexLock lock(mutex_);
  const auto found = made_.find(entry);
  return found == made_.end() ? std::string() : found->second;
}

void ClaimMemory::note_made(const std::string& entry, const std::string& claim) {
  const MutexLock lock(mutex_);
  if (made_.insert_or_assign(entry, claim).second) made_order_.push_back(entry);
  while (made_order_.size() > kRemembered) {
    made_.erase(made_order_.front());
    made_order_.pop_front();
  }
}

bool ClaimMemory::is_gone(std::string_view uid) const {
  const MutexLock lock(mutex_);
  return gone_.contains(std::string(uid));
}

void ClaimMemory::note_gone(std::string_view uid) {
  const MutexLock lock(mutex_);
  if (!gone_.emplace(uid).second) return;
  gone_order_.emplace_back(uid);
  if (gone_order_.size() <= kRemembered) return;
  gone_.erase(gone_order_.front());
  gone_order_.pop_front();
}

}  // namespace dibs::controllers
