// Volumes and claims are held by a finalizer while in use; a claim without a class gets the default
// one.
#include <algorithm>

#include "base/finalizers.h"
#include "server/plugins/plugins.h"

namespace dibs::server {
namespace {

class StorageProtection : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "StorageObjectInUseProtection"; }

  Result<> mutate(Write& write) override {
    if (write.operation != Operation::create) return success();
    if (write.is("", "persistentvolumeclaims")) add(write.object, kVolumeClaimFinalizer);
    if (write.is("", "persistentvolumes")) add(write.object, kVolumeFinalizer);
    return success();
  }

 private:
  static void add(Value& object, std::string_view finalizer) {
    for (const Value& item : object["metadata"]["finalizers"].items()) {
      if (item.as_string() == finalizer) return;
    }
    object.mut("metadata").mut("finalizers").push(finalizer);
  }
};

class DefaultStorageClass : public AdmissionPlugin {
 public:
  explicit DefaultStorageClass(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "DefaultStorageClass"; }

  Result<> mutate(Write& write) override {
    if (write.operation != Operation::create || !write.is("", "persistentvolumeclaims"))
      return success();
    Value& claim = write.object;
    const Value* own = claim["spec"].find("storageClassName");
    if ((own && !own->is_null()) ||
        claim["metadata"]["annotations"].contains("volume.beta.kubernetes.io/storage-class")) {
      return success();
    }
    Value chosen;
    for (const Value& candidate : sources_.list("storage.k8s.io", "storageclasses", "")) {
      const Value& annotations = candidate["metadata"]["annotations"];
      if (annotations["storageclass.kubernetes.io/is-default-class"].as_string() != "true")
        continue;
      // Of several the youngest, then the first by name.
      if (chosen.is_null() || chosen["metadata"]["creationTimestamp"].as_string() <
                                  candidate["metadata"]["creationTimestamp"].as_string()) {
        chosen = candidate;
      }
    }
    if (!chosen.is_null()) claim.mut("spec").set("storageClassName", chosen["metadata"]["name"]);
    return success();
  }

 private:
  PluginSources sources_;
};

}  // namespace

PluginPtr make_storage_protection() { return std::make_unique<StorageProtection>(); }
PluginPtr make_default_storage_class(PluginSources sources) {
  return std::make_unique<DefaultStorageClass>(sources);
}

}  // namespace dibs::server
