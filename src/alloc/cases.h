#pragma once
// Recorded cases: a node, slices, claims, what is in use, and what the allocator of Kubernetes
// answered. Tests and `dibs bench allocator` put them to ours.
//
// A case is {name, features, node, classes, slices, claims, allocatedDevices,
// allocatedSharedDevices, allocatedCapacity, error, results, timeout}; see the README of the
// conformance data.

#include <memory>
#include <string>
#include <vector>

#include "alloc/search.h"
#include "json/value.h"

namespace dibs::alloc {

/// A case with its inventory filled, ready to be asked.
class Case {
 public:
  explicit Case(const json::Value& source);

  const std::string& name() const { return name_; }
  /// Kubernetes gave no answer in time.
  bool timeout() const { return source_["timeout"].as_bool(); }

  Inventory& inventory() { return *inventory_; }
  const Node& node() const { return node_; }
  const Demand& demand() const { return demand_; }

  Outcome run(const Limits& limits = {});

  /// How the outcome differs from the recorded one; empty: it does not. For faults this wants the
  /// same words, but for two things that are not the allocator's: what a lister says about a class
  /// that is not there, and which of several faulty devices is met first where the recording itself
  /// does not show what tells them apart (an empty list is not written).
  std::string difference(const Outcome& outcome) const;

 private:
  json::Value source_;
  std::string name_;
  Node node_;
  std::vector<std::shared_ptr<const DeviceClass>> classes_;
  std::unique_ptr<Inventory> inventory_;
  Demand demand_;
};

}  // namespace dibs::alloc
