#pragma once
// Many runs of Torture: a fault at the first call, at the second, and so on until a run ends before
// its fault; and runs with everything left to chance.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "store/testing/torture.h"

namespace dibs::store::testing {

struct Tally {
  std::size_t runs = 0;
  std::size_t faults = 0;  // I/O errors and full disks
  std::size_t kills = 0;
  std::size_t power_losses = 0;
  std::size_t acknowledged = 0;

  void add(const Tally& other);
};
/// "5 runs, 3 faults, 1 kill, 0 power losses, 70 acknowledged writes"
std::string show(const Tally& tally);

/// The n-th call of one kind (unset: of any) fails, for n = first, first + stride, and so on.
/// `fresh`: in a process that makes the file; else in one that finds it as a killed one left it.
struct Sweep {
  Fault fault = Fault::io_error;
  std::optional<Call> call = {};
  bool lasts = false;
  bool fresh = false;
  TortureOptions options = {};
  std::size_t first = 1;
  std::size_t stride = 1;
};
std::string show(const Sweep& sweep);

/// Errors: what was wrong, and at which call.
Result<Tally> run(const Sweep& sweep);

/// Every fault of every kind of call, once and lasting, in a new store and in one that was there.
std::vector<Sweep> all_sweeps(std::uint64_t seed, std::size_t stride);

/// A run in which chance picks disk, faults and ends: up to four lives.
Result<Tally> run_random(std::uint64_t seed);

}  // namespace dibs::store::testing
