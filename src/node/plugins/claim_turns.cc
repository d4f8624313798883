#include "node/plugins/claim_turns.h"

#include <algorithm>

#include "base/strings.h"
#include "runtime/blocking.h"

namespace dibs::node {

Result<> ClaimTurns::may_wait(const std::string& claim, const std::string& owner) const {
  const auto line = lines_.find(claim);
  if (line == lines_.end()) return success();
  const auto same = std::find_if(line->second.begin(), line->second.end(),
                                 [&](const Place& place) { return place.owner == owner; });
  if (same != line->second.end()) {
    return Error::conflict(
        cat("ResourceClaim ", claim, " is being worked on for pod ", owner, " already"));
  }
  const Place& holder = line->second.front();
  if (holder.thread == std::this_thread::get_id()) {
    return Error::conflict(
        cat("ResourceClaim ", claim, " is being worked on for pod ", holder.owner));
  }
  return success();
}

const std::string* ClaimTurns::held_by_another(const std::vector<std::string>& claims,
                                               std::uint64_t ticket) const {
  for (const auto& claim : claims) {
    if (lines_.at(claim).front().ticket != ticket) return &claim;
  }
  return nullptr;
}

void ClaimTurns::leave_line(const std::string& claim, std::uint64_t ticket) {
  const auto line = lines_.find(claim);
  std::erase_if(line->second, [&](const Place& place) { return place.ticket == ticket; });
  if (line->second.empty()) lines_.erase(line);
  moved_.notify_all();
}

void ClaimTurns::leave(const std::string& claim, std::uint64_t ticket) {
  const MutexLock lock(mutex_);
  leave_line(claim, ticket);
}

Result<std::vector<ClaimTurns::Turn>> ClaimTurns::take(const std::vector<std::string>& claims,
                                                       const std::string& owner) {
  MutexLock lock(mutex_);
  for (const auto& claim : claims) DIBS_CHECK(may_wait(claim, owner));
  const std::uint64_t ticket = ++last_ticket_;
  for (const auto& claim : claims) {
    lines_[claim].push_back({ticket, owner, std::this_thread::get_id()});
  }
  if (held_by_another(claims, ticket)) {
    const runtime::Blocking blocking;
    const bool first = moved_.wait_for(
        lock, limit_, [&]() DIBS_REQUIRES(mutex_) { return !held_by_another(claims, ticket); });
    if (!first) {
      const std::string& held = *held_by_another(claims, ticket);
      Error late = Error::timeout(cat("ResourceClaim ", held, " is being worked on for pod ",
                                      lines_.at(held).front().owner, " since more than ",
                                      format_duration(limit_)));
      for (const auto& claim : claims) leave_line(claim, ticket);
      return late;
    }
  }
  std::vector<Turn> turns;
  turns.reserve(claims.size());
  for (const auto& claim : claims) turns.push_back(Turn(*this, claim, ticket));
  return turns;
}

}  // namespace dibs::node
