#pragma once
// Who may work on a claim: one at a time, in the order of asking.
//
// An owner (a pod's uid) asks for all claims it needs at once and gets a Turn for each when it is
// the first in every line; so two that share claims cannot wait for each other. A Turn ends when it
// is destroyed, and by nothing else.
//
// Nobody waits in vain: an owner that is in a line already, one whose own thread has the turn (in a
// simulation everything is one thread), and one that waited for the limit, get an error that names
// the claim and who has it. They try again later; nobody goes on without his turn.
//
// Thread-safe. Turns must not outlive it.

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/time.h"

namespace dibs::node {

class ClaimTurns {
 public:
  class Turn {
   public:
    Turn(Turn&& other) noexcept
        : turns_(std::exchange(other.turns_, nullptr)),
          claim_(std::move(other.claim_)),
          ticket_(other.ticket_) {}
    Turn& operator=(Turn&& other) noexcept {
      std::swap(turns_, other.turns_);
      std::swap(claim_, other.claim_);
      std::swap(ticket_, other.ticket_);
      return *this;
    }
    ~Turn() {
      if (turns_) turns_->leave(claim_, ticket_);
    }

    const std::string& claim() const { return claim_; }

   private:
    friend class ClaimTurns;
    Turn(ClaimTurns& turns, std::string claim, std::uint64_t ticket)
        : turns_(&turns), claim_(std::move(claim)), ticket_(ticket) {}

    ClaimTurns* turns_;
    std::string claim_;
    std::uint64_t ticket_;
  };

  explicit ClaimTurns(Duration limit) : limit_(limit) {}

  /// A turn for each of these claims ("namespace/name", no duplicates). Blocks until the owner has
  /// all of them. Errors: conflict, timeout; then the owner is in no line.
  Result<std::vector<Turn>> take(const std::vector<std::string>& claims, const std::string& owner);

 private:
  struct Place {
    std::uint64_t ticket;
    std::string owner;
    std::thread::id thread;  // only to see that a wait could not end
  };
  using Line = std::deque<Place>;

  /// Why this owner cannot even wait, or success.
  Result<> may_wait(const std::string& claim, const std::string& owner) const DIBS_REQUIRES(mutex_);
  /// The first of these claims whose line others lead; null when there is none.
  const std::string* held_by_another(const std::vector<std::string>& claims,
                                     std::uint64_t ticket) const DIBS_REQUIRES(mutex_);
  void leave_line(const std::string& claim, std::uint64_t ticket) DIBS_REQUIRES(mutex_);
  void leave(const std::string& claim, std::uint64_t ticket) DIBS_EXCLUDES(mutex_);

  const Duration limit_;
  mutable Mutex mutex_;
  CondVar moved_;
  std::uint64_t last_ticket_ DIBS_GUARDED_BY(mutex_) = 0;
  /// Who is first has the turn. An empty line is not kept.
  std::map<std::string, Line> lines_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::node
