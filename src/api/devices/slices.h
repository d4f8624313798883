#pragma once
// ResourceSlices as lists of devices, whatever version of the API they are written in.
//
// Every version is brought to the form of resource.k8s.io/v1: before v1beta2 a device's content lay
// below `basic`, in v1alpha3 a capacity was its quantity alone. Checked is what selectors look at,
// by type and shape; the limits of the API are the server's to judge.

#include <string>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace dibs::api {

struct SliceDevice {
  std::string slice;  // name of the ResourceSlice
  std::string node;   // "<all>" or "<selected>" where it is not bound to one
  std::string pool;
  std::int64_t generation = 0;  // of the pool
  std::string driver;
  std::string name;
  json::Value device;  // as in v1
};

/// The devices of a ResourceSlice, or of all slices in a list. Errors: bad_request, which say what
/// is wrong and where: `spec.devices[3].attributes[model].int: must be a whole number`.
Result<std::vector<SliceDevice>> devices_of(const json::Value& object);

/// A ResourceSlice, or a list that can hold some.
bool is_slice_or_list(const json::Value& object);

/// Without devices of slices that a newer generation of their pool has replaced.
std::vector<SliceDevice> newest_generation(std::vector<SliceDevice> devices);

}  // namespace dibs::api
