#pragma once
// What one user waits for, one request after the other, alone and beside a crowd: somebody with
// hundreds of connections, streams that stay open, pods that do not end, a disk that is full.

#include <cstddef>
#include <string>

#include "load/baseline.h"
#include "load/report.h"

namespace dibs::bench {

struct CrowdSettings {
  std::string binary;
  double seconds = 3;  // for each figure
  std::size_t threads = 2;
  std::size_t crowd = 2000;
};

/// A thousand watches that begin at once with a state of 60,000 objects to look through, and how
/// late an event comes meanwhile to one that has begun.
void measure_watch_openings(const CrowdSettings& settings, const Baseline& baseline,
                            Report& report);
void measure_greedy(const CrowdSettings& settings, Report& report);
/// Logs that are followed, forwarded ports and commands, of a pod in a real container where this
/// machine has those.
void measure_streams(const CrowdSettings& settings, Report& report);
/// Pods of simulated nodes whose containers do not hear that they are to end.
void measure_terminating(const CrowdSettings& settings, Report& report);
/// On a small tmpfs, which only root can mount: nothing is measured without.
void measure_full_disk(const CrowdSettings& settings, Report& report);

}  // namespace dibs::bench
