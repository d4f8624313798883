#pragma once
// ResourceSlices as a big cluster publishes them: one for each node, all of them when the drivers
// come up, and later one at a time, which every scheduler wants to know at once.

#include <cstdint>
#include <string>

#include "load/baseline.h"
#include "load/report.h"

namespace dibs::bench {

struct SliceSettings {
  std::string binary;
  std::uint64_t slices = 5000;
  int devices = 10;
  std::size_t connections = 16;
  std::size_t threads = 2;
};

/// Publishes all, then updates one under a watcher of the stored version and one of an older.
void measure_slices(const SliceSettings& settings, const Baseline& baseline, Report& report);

}  // namespace dibs::bench
