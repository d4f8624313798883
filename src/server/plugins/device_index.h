#pragma once
// Who holds which device, and what is published of devices: kept object by object from claims and
// slices, so that a write is judged by the devices it names and nothing else.
//
// A write that is on its way to the store holds its devices from the moment it was judged
// (reserve), until the claim is known to be stored or the write has failed (release). Not
// thread-safe: whoever owns an index guards it.

#include <cstdint>
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
  std::string device;  // "driver/pool/device", or "named resource driver/node/instance"
  std::string driver;
  std::string share;  // shareID, "" for the whole device
  Value consumed;     // consumedCapacity, of a share
};

/// Capacities of the driver's own domain are named with or without it: the name without.
std::string_view short_name(std::string_view name, std::string_view driver);

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
    std::string holder;  // key of the claim that holds it, or what it is made of
    std::string why;     // "it is allocated to claim …"
  };
  /// The first device of `holds` that claim `key` cannot have: because others hold it, or more of
  /// it or of what it is made of (shared counters) would be given out than there is.
  std::optional<Conflict> conflict(const std::string& key,
                                   const std::vector<DeviceHold>& holds) const;

  /// What these devices are made of, by the names "driver/pool/set".
  std::vector<std::string> counter_sets_of(const std::vector<DeviceHold>& holds) const;
  /// True where it matters what is published: of a device that is not, is shared or made of
  /// counters. Named resources are published nowhere that conflict() looks.
  bool depends_on_slices(const std::vector<DeviceHold>& holds) const;

  using Reservation = std::uint64_t;
  Reservation reserve(const std::string& key, const std::vector<DeviceHold>& holds);
  void release(Reservation reservation);

  std::size_t held_devices() const { return held_; }

 private:
  struct Holder {
    const std::string* claim = nullptr;  // its key, where it is kept
    Reservation reservation = 0;         // 0: stored
    Value share;                         // null: the whole device
    Value consumed;
  };
  struct Published {
    const std::string* slice = nullptr;  // its key, where it is kept
    std::int64_t generation = 0;
    bool shared = false;
    Value capacity;  // of a shared one
    Value consumes;  // consumesCounters
  };
  /// There are many and little happens to most: room for exactly what is there.
  struct Device {
    std::vector<Holder> holders;
    std::vector<Published> published;  // while a pool is republished it may be in two slices
  };
  using DeviceEntry = std::unordered_map<std::string, Device>::value_type;  // by its name
  using DeviceList = std::vector<DeviceEntry*>;
  /// What several devices of a pool are made of.
  struct CounterSet {
    struct Published {
      const std::string* slice = nullptr;
      std::int64_t generation = 0;
      Value counters;
    };
    std::vector<Published> published;
    std::unordered_map<const DeviceEntry*, int> consumers;  // in how many slices
  };
  struct Slice {
    std::string pool;  // "driver/pool/"
    DeviceList devices;
    std::vector<std::string> counter_sets;
  };

  DeviceList hold(const std::string& key, Reservation reservation,
                  const std::vector<DeviceHold>& holds);
  void let_go(const std::string& key, Reservation reservation, const DeviceList& devices);
  void forget_if_unused(DeviceEntry& device);
  void put_counters(const std::string& key, Slice& slice, const Value& spec);
  void withdraw(const std::string& key, const Slice& slice);
  void forget_if_unused(const std::string& counter_set);
  static const Published* newest(const Device& device);
  std::string over_capacity(const std::string& key, const std::vector<DeviceHold>& holds,
                            const DeviceHold& one, const Device& device) const;
  std::optional<Conflict> over_counters(const std::string& key,
                                        const std::vector<DeviceHold>& holds, const DeviceHold& one,
                                        const Published& published) const;

  std::unordered_map<std::string, Device> devices_;
  std::unordered_map<std::string, DeviceList> claims_;
  std::unordered_map<Reservation, std::pair<std::string, DeviceList>> reserved_;
  Reservation last_reservation_ = 0;
  std::unordered_map<std::string, Slice> slices_;
  std::unordered_map<std::string, CounterSet> counters_;  // by "driver/pool/set"
  std::size_t held_ = 0;
};

}  // namespace dibs::server
