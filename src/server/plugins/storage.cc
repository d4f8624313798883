// Volumes and claims are held by a finalizer while in use; a claim without a class gets the default
// one; a claim grows only where its class says that volumes can.
#include "api/volumes/volumes.h"
#include "base/finalizers.h"
#include "base/quantity.h"
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
    if (api::claim_names_class(claim)) return success();
    const Value chosen = api::default_class(sources_.list("storage.k8s.io", "storageclasses", ""));
    if (!chosen.is_null()) claim.mut("spec").set("storageClassName", chosen["metadata"]["name"]);
    return success();
  }

 private:
  PluginSources sources_;
};

class ClaimResize : public AdmissionPlugin {
 public:
  explicit ClaimResize(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "PersistentVolumeClaimResize"; }

  Result<> validate(const Write& write) override {
    if (write.operation != Operation::update || !write.is("", "persistentvolumeclaims"))
      return success();
    const Value& before = write.old;
    if (size_of(write.object) <= size_of(before)) return success();
    if (before["status"]["phase"].as_string() != "Bound")
      return refuse(write, "Only bound persistent volume claims can be expanded");
    const std::string_view name = api::class_of_claim(write.object);
    const bool allowed =
        !name.empty() && name == api::class_of_claim(before) &&
        sources_.find("storage.k8s.io", "storageclasses", "", name)["allowVolumeExpansion"]
            .as_bool();
    if (allowed) return success();
    return refuse(write,
                  "only dynamically provisioned pvc can be resized and the storageclass that "
                  "provisions the pvc must support resize");
  }

 private:
  static Quantity size_of(const Value& claim) {
    auto read = Quantity::parse(claim["spec"]["resources"]["requests"]["storage"].as_string());
    return read.ok() ? std::move(read).value() : Quantity();
  }

  PluginSources sources_;
};

}  // namespace

PluginPtr make_storage_protection() { return std::make_unique<StorageProtection>(); }
PluginPtr make_default_storage_class(PluginSources sources) {
  return std::make_unique<DefaultStorageClass>(sources);
}
PluginPtr make_claim_resize(PluginSources sources) {
  return std::make_unique<ClaimResize>(sources);
}

}  // namespace dibs::server
