#pragma once
// Who holds which device, and what is published of devices: kept object by object from claims and
// slices, so that a write is judged by the devices it names and nothing else.
//
// A write that is on its way to the store holds its devices from the moment it was judged
// (reserve), until the claim is known to be stored or the write has failed (release). Not
// thread-safe: whoever owns an index guards it.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/quantity.h"
#include "json/value.h"

namespace dibs::server {

using json::Value;

/// One device as an allocation holds it.
struct DeviceHold {
  std::string device;  // "driver/pool/device"
  std::string driver;
  std::string share;  // shareID, "" for the whole device
  Value consumed;     // consumedCapacity, of a share
};

/// What a claim's status holds. Access for administration takes no device away from anybody.
std::vector<DeviceHold> holds_of(const Value& claim);

class DeviceIndex {
 public:
  void put_claim(const std::string& key, const Value& claim);
  void remove_claim(const std::string& key);
  void clear_claims();

  void put_slice(const std::string& key, const Value& slice);
  void remove_slice(const std::string& key);
  void clear_slices();

  struct Conflict {
    std::string device;
    std::string holder;  // key of the claim that holds it
    std::string why;
  };
  /// The first device of `holds` that claim `key` cannot have because others hold it.
  std::optional<Conflict> conflict(const std::string& key,
                                   const std::vector<DeviceHold>& holds) const;

  /// `write` tells writes apart; an older reservation of it is replaced.
  void reserve(const void* write, const std::string& key, std::vector<DeviceHold> holds);
  void release(const void* write);

  std::size_t held_devices() const { return holders_.size(); }

 private:
  struct Holder {
    std::string claim;
    const void* write = nullptr;  // null: stored
    std::string share;
    Value consumed;
  };
  struct Published {
    std::int64_t generation = 0;
    bool shared = false;
    Value capacity;
  };

  void hold(const std::string& key, const void* write, const std::vector<DeviceHold>& holds);
  void let_go(const std::string& key, const void* write, const std::vector<DeviceHold>& holds);
  const Published* published(const std::string& device) const;
  std::string over_capacity(const std::string& key, const std::vector<DeviceHold>& holds,
                            const DeviceHold& one, const Published& device) const;

  std::unordered_map<std::string, std::vector<Holder>> holders_;  // by device
  std::unordered_map<std::string, std::vector<DeviceHold>> claims_;
  std::unordered_map<const void*, std::pair<std::string, std::vector<DeviceHold>>> reserved_;
  // By device, then by slice: while a pool is republished a device may be in two.
  std::unordered_map<std::string, std::map<std::string, Published>> published_;
  std::unordered_map<std::string, std::vector<std::string>> slices_;  // devices of each
};

}  // namespace dibs::server
