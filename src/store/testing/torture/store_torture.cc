// The embedded store under faults, as long as one likes.
//
//   store_torture --sweeps            a fault at the n-th call, for every n and every kind of fault
//   store_torture --cycles 10000      kills and power losses on the simulated disk, by chance
//   store_torture --kills 10000       a process is killed, with its file in a temporary folder
//   --seed N                          another run of the same
//   --stride N                        of the sweeps every N-th call only
//   --only TEXT                       of the sweeps those whose line begins so
//
// Prints one line for each part. Ends with 1 at the first thing that is wrong, and says how to see
// it again.

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

#include "base/strings.h"
#include "store/test_support.h"
#include "store/testing/kill_loop.h"
#include "store/testing/sweeps.h"

namespace dibs::store::testing {
namespace {

struct Flags {
  bool sweeps = false;
  std::size_t cycles = 0;
  std::size_t kills = 0;
  std::uint64_t seed = 1;
  std::size_t stride = 1;
  std::string only = {};
};

int fail(const std::string& text) {
  std::cout << "WRONG: " << text << std::endl;
  return 1;
}

int run_sweeps(const Flags& flags) {
  Tally all;
  int status = 0;
  for (const Sweep& sweep : all_sweeps(flags.seed, flags.stride)) {
    if (!show(sweep).starts_with(flags.only)) continue;
    const auto tally = run(sweep);
    if (!tally.ok()) {
      status = fail(tally.error().message());
      continue;
    }
    std::cout << show(sweep) << ": " << show(*tally) << std::endl;
    all.add(*tally);
  }
  std::cout << "sweeps: " << show(all) << std::endl;
  return status;
}

int run_cycles(const Flags& flags) {
  Tally all;
  for (std::uint64_t seed = flags.seed; all.kills + all.power_losses < flags.cycles; ++seed) {
    const auto tally = run_random(seed);
    if (!tally.ok()) return fail(tally.error().message());
    all.add(*tally);
  }
  std::cout << "cycles: " << show(all) << std::endl;
  return 0;
}

int run_kill_loop(const Flags& flags) {
  const TemporaryDirectory directory;
  const auto tally = run_kills(directory.path(), flags.kills, flags.seed);
  if (!tally.ok()) return fail(tally.error().message());
  std::cout << "kills: " << show(*tally) << std::endl;
  return 0;
}

int main(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const auto number = [&] { return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0; };
    if (name == "--sweeps") {
      flags.sweeps = true;
    } else if (name == "--cycles") {
      flags.cycles = number();
    } else if (name == "--kills") {
      flags.kills = number();
    } else if (name == "--seed") {
      flags.seed = number();
    } else if (name == "--stride") {
      flags.stride = std::max<std::size_t>(1, number());
    } else if (name == "--only" && i + 1 < argc) {
      flags.only = argv[++i];
    } else {
      std::cerr << "unknown flag " << name << ": see the head of store_torture.cc\n";
      return 2;
    }
  }
  int status = 0;
  if (flags.sweeps) status = run_sweeps(flags);
  if (status == 0 && flags.cycles > 0) status = run_cycles(flags);
  if (status == 0 && flags.kills > 0) status = run_kill_loop(flags);
  return status;
}

}  // namespace
}  // namespace dibs::store::testing

int main(int argc, char** argv) { return dibs::store::testing::main(argc, argv); }
