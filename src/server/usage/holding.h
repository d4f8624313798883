#pragma once
// What a claim holds, as a line of the records of usage has it (docs/formats/usage.md): its uid,
// who uses it, its devices with class and share.
//
// No I/O, no state.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "server/usage/shares.h"

namespace dibs::server {

struct HeldDevice {
  std::string_view id;  // "driver/pool/device"
  std::string_view device_class;
  double share = 1;
};

/// Views into the text that it was read from.
struct Holding {
  std::string_view uid;
  std::vector<std::string_view> users;  // pods by name, others as "podgroups/name"
  std::vector<HeldDevice> devices;
};

/// "" of a claim that holds nothing. A device that is not published any more has the share that it
/// had in `before`, what the claim held last; one that never was counts as a whole.
std::string holding_of(const json::Value& claim, const DeviceShares& shares,
                       std::string_view before = {});
/// Nothing for what is none.
std::optional<Holding> parse_holding(std::string_view text);
std::string_view uid_of(std::string_view holding);

}  // namespace dibs::server
