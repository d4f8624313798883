#pragma once
// What this machine can do without us, measured in the same run: a figure divided by its baseline
// can be compared between machines and between days, the figure alone cannot.

namespace dibs::bench {

struct Baseline {
  double syncs = 0;      // per second: append 2 KB to a file, fdatasync, one after the other
  double sha256_mb = 0;  // per second, one core
  double echoes = 0;     // per second: 2 KB there and back over TLS on loopback, one connection
};

Baseline measure_baseline();

}  // namespace dibs::bench
