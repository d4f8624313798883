#pragma once
// Faults that somebody gave devices on purpose, to see what becomes of those who use them: what
// they are, and how they are written down.
//
// They stand in an annotation of the device's Node, one for each driver, and so outlive driver,
// agent and server, and go with the node:
//
//   faults.dibs.dev/gpu.example.com: '{"node-1/gpu-0": {"fail": {"effect": "NoExecute", …}}}'
//
// A driver that takes faults (fault_injection.h) copies the text that it has read into an
// annotation of the first slice of each of its pools. So everybody can see whether a driver takes
// faults at all, and which it has taken. Nothing here does I/O.

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "driver/pool.h"
#include "json/value.h"

namespace dibs::driver {

/// Of a ResourceSlice.
inline constexpr const char* kFaultsTaken = "faults.dibs.dev/taken";
/// Of a Node.
std::string faults_annotation(std::string_view driver);

/// No call of a driver takes longer on purpose.
inline constexpr Duration kSlowest = std::chrono::minutes(10);
inline constexpr std::size_t kLongestReason = 256;

/// Unhealthy, and tainted.
struct FailFault {
  std::string reason = {};
  std::string effect = "NoExecute";  // of the taint; None: there is none
  Time since = {};
};
/// Not there any more.
struct VanishFault {
  Time since = {};
};
/// Its claims take this long.
struct SlowFault {
  Duration prepare{0};
  Duration unprepare{0};
  Time since = {};
};

struct DeviceFaults {
  std::optional<FailFault> fail = {};
  std::optional<VanishFault> vanish = {};
  std::optional<SlowFault> slow = {};

  bool none() const { return !fail && !vanish && !slow; }
};

/// By "<pool>/<device>".
using Faults = std::map<std::string, DeviceFaults, std::less<>>;

std::string fault_key(std::string_view pool, std::string_view device);

/// Of the annotation's text. Errors (invalid) say what is wrong where.
Result<Faults> parse_faults(std::string_view text);
/// "" where there are none.
std::string write_faults(const Faults& faults);

/// The key of the taint that a failed device has: "gpu.example.com/unhealthy".
std::string fault_taint_key(std::string_view driver);
/// The pool with its faults: without devices that have vanished, and with taints.
Pool with_faults(const Pool& pool, const Faults& faults, std::string_view driver);

}  // namespace dibs::driver
