#pragma once
// Consumable capacity: how much of a device's capacities a request takes.
//
// A request names amounts; the device's policy for a capacity may round one up, put a default in
// place of one that is not named, or refuse it. A capacity that is not named and has no default is
// taken whole. Amounts that the policy's arithmetic cannot express are errors, not refusals: the
// request could not work on any device.

#include <cstdint>
#include <string>
#include <vector>

#include "alloc/claims.h"
#include "alloc/slice.h"

namespace dibs::alloc {

struct Intake {
  enum class Kind : std::uint8_t {
    fits,     // as far as the device itself goes
    refused,  // a capacity that the device lacks, or a policy that is not met
    error,
  };
  Kind kind = Kind::fits;
  std::vector<Amount> amounts;  // by capacity of the device, in its order
  std::string error;            // `capacity "memory": …`
};

/// `fractional`: policies compute in thousandths where they can (DRAFractionalCapacityRange).
Intake intake(const Device& device, const DeviceRequest& request, bool fractional);

/// What the result says for one capacity of the device; `amount` is that of the intake.
Quantity consumed_quantity(const Capacity& capacity, const DeviceRequest& request, Amount amount);

}  // namespace dibs::alloc
