#pragma once
// A device as selectors see it: `device.driver`, `device.attributes["domain"].id`, …
//
// Read once from its JSON (the form of resource.k8s.io/v1), then asked by any number of selectors.
// Names are split into domain and id, versions and quantities parsed, and everything sorted, so
// that a lookup compares a few words and allocates nothing. A domain that the device does not have
// is an empty one; only `in` tells the difference.
//
// Immutable and shared by copies; safe to read from many threads. Texts of the values are borrowed
// from the device, so a value must not be used longer than it.

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "api/devices/selector.h"
#include "cel/value.h"
#include "json/value.h"

namespace dibs::api {

/// An attribute or a capacity.
struct DeviceEntry {
  std::string_view domain;
  std::string_view id;
  cel::Value value;
};

class DeviceInput {
 public:
  /// `lists`: attributes may be lists; where they may not, one that is poisons the device. Members
  /// that selectors do not see are not looked at.
  static DeviceInput read(std::string_view driver, const json::Value& device, bool lists);

  /// Not empty: selectors are not evaluated, each ends with this error.
  const std::string& error() const;
  std::string_view driver() const;
  /// Sorted by domain, then by id; empty when there is an error.
  std::span<const DeviceEntry> attributes() const;
  std::span<const DeviceEntry> capacities() const;

  /// For the variable `device`.
  const cel::Value& value() const { return device_; }
  std::span<const cel::Value> variables() const { return {&device_, 1}; }

 private:
  explicit DeviceInput(cel::Value device) : device_(std::move(device)) {}
  cel::Value device_;
};

/// Whether devices may have lists, in the release and with the gates of a selector.
bool lists_are_read(const SelectorEnvironment& environment);

struct DeviceMatch {
  bool matches = false;
  std::string error = {};  // empty: the selector said yes or no
  std::uint64_t cost = 0;
};

/// `cancelled` may become true meanwhile, which ends the evaluation.
DeviceMatch match(const Selector& selector, const DeviceInput& device,
                  const std::atomic<bool>* cancelled = nullptr);

/// The outcome of an evaluation as yes, no or an error; what is neither true nor false is an error.
DeviceMatch match_of(const cel::Evaluation& evaluation);

}  // namespace dibs::api
