#include "controllers/volumes/volume_objects.h"

#include <algorithm>

#include "api/volumes/volumes.h"

namespace dibs::controllers {

const Gvr kVolumes = {"", "v1", "persistentvolumes"};
const Gvr kVolumeClaims = {"", "v1", "persistentvolumeclaims"};
const Gvr kStorageClasses = {"storage.k8s.io", "v1", "storageclasses"};

std::vector<std::string> index_by_volume_claim(const Value& pod) {
  std::vector<std::string> out;
  for (const api::PodVolume& volume : api::pod_volumes(pod))
    out.push_back(client::key_of(namespace_of(pod), volume.claim));
  return out;
}

bool has_finalizer(const Value& object, std::string_view finalizer) {
  const auto all = object["metadata"]["finalizers"].items();
  return std::any_of(all.begin(), all.end(),
                     [finalizer](const Value& one) { return one.as_string() == finalizer; });
}

Value with_finalizer(Value object, std::string_view finalizer) {
  if (!has_finalizer(object, finalizer)) object.mut("metadata").mut("finalizers").push(finalizer);
  return object;
}

Value without_finalizer(Value object, std::string_view finalizer) {
  Value rest = Value::array();
  for (const Value& one : object["metadata"]["finalizers"].items())
    if (one.as_string() != finalizer) rest.push(one);
  object.mut("metadata").set("finalizers", std::move(rest));
  return object;
}

}  // namespace dibs::controllers
