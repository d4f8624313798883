#pragma once
// What the controllers of volumes share: resources, an index, finalizers.

#include <string>
#include <string_view>
#include <vector>

#include "controllers/controller.h"

namespace dibs::controllers {

extern const Gvr kVolumes;
extern const Gvr kVolumeClaims;
extern const Gvr kStorageClasses;

/// For an index of pods: "namespace/name" of the claims that they have as volumes.
std::vector<std::string> index_by_volume_claim(const Value& pod);
inline constexpr const char* kByVolumeClaim = "volume-claim";

bool has_finalizer(const Value& object, std::string_view finalizer);
Value with_finalizer(Value object, std::string_view finalizer);
Value without_finalizer(Value object, std::string_view finalizer);

}  // namespace dibs::controllers
