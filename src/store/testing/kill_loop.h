#pragma once
// The embedded store on the machine's own disk, in a process that is killed at a random moment,
// again and again on the same file. Three writers tell through a pipe what was acknowledged; after
// every other kill the file is opened and must have it.
//
// Forks: for programs with one thread.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace dibs::store::testing {

struct KillTally {
  std::size_t kills = 0;
  std::size_t while_opening = 0;  // of these, before the store was open
  std::size_t checks = 0;
  std::size_t acknowledged = 0;
};
std::string show(const KillTally& tally);

/// Errors: what is wrong.
Result<KillTally> run_kills(const std::string& folder, std::size_t cycles, std::uint64_t seed);

}  // namespace dibs::store::testing
