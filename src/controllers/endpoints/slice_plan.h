#pragma once
// Which slices a Service needs: its pods and the slices that are there in, writes out.
//
// Endpoints whose ports are the same share slices, at most kSliceCapacity in each. A change touches
// as few slices as it can: an endpoint stays in its slice, new ones go first into slices that are
// written anyway, then into the one that they fill best. A Service without endpoints has one empty
// slice, so that who waits for its first slice learns that there is none. Pure functions.

#include <functional>
#include <string>
#include <vector>

#include "controllers/endpoints/slice_keeper.h"

namespace dibs::controllers {

inline constexpr std::size_t kSliceCapacity = 100;
inline constexpr std::string_view kSliceController = "endpointslice-controller.k8s.io";

/// Endpoints that share their ports.
struct EndpointGroup {
  Value ports;
  std::vector<Value> endpoints;
};

struct SlicePlan {
  SliceWrites writes;
  /// Pods left out because their node is not known.
  std::vector<std::string> without_node;
};

using NodeOf = std::function<Value(const Value& pod)>;

/// The endpoint of a pod; without addresses where it has none of that family.
Value endpoint_of(const Value& pod, const Value& node, const Value& service,
                  std::string_view address_type);
/// Labels of a Service's slices.
Value slice_labels(const Value& service);
SlicePlan plan_slices(const Value& service, const std::vector<Value>& pods,
                      const std::vector<Value>& slices, const NodeOf& node_of);

}  // namespace dibs::controllers
