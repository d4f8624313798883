#pragma once
// --drivers of `dibs up`: drivers with options, which are the flags that `dibs driver` has.
//
//   gpu,net                                two drivers as they come
//   gpu:num-devices=4+partitions=2,net     options behind a colon, with + or commas between them
//
// A flag that begins with the driver's name may leave that away: gpu:partitions is
// --gpu-partitions. A list is given by repeating its option.

#include <string>
#include <vector>

#include "base/result.h"
#include "drivers/drivers.h"

namespace dibs::cli {

/// A driver as it was named, before its options are understood: "num-devices=4", "device-metadata".
struct NamedDriver {
  std::string name;
  std::vector<std::string> options = {};
  bool operator==(const NamedDriver&) const = default;
};

struct ChosenDriver {
  std::string name;
  drivers::Tuning tuning = {};
};

/// `words` are what stands between commas.
Result<std::vector<NamedDriver>> name_drivers(const std::vector<std::string>& words);
/// Errors name driver and option.
Result<std::vector<ChosenDriver>> choose_drivers(const std::vector<NamedDriver>& named);
/// Both.
Result<std::vector<ChosenDriver>> parse_drivers(const std::vector<std::string>& words);

}  // namespace dibs::cli
