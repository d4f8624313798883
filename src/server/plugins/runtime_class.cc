// What a RuntimeClass asks of pods: overhead, nodes, tolerations.
#include "base/strings.h"
#include "server/plugins/plugins.h"

namespace dibs::server {
namespace {

class RuntimeClass : public AdmissionPlugin {
 public:
  explicit RuntimeClass(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "RuntimeClass"; }

  Result<> mutate(Write& write) override {
    if (write.operation != Operation::create || !write.is("", "pods") ||
        !write.subresource.empty()) {
      return success();
    }
    Value& pod = write.object;
    std::string class_name(pod["spec"]["runtimeClassName"].as_string());
    if (class_name.empty()) {
      if (!pod["spec"]["overhead"].empty()) {
        return refuse(
            write,
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead");
      }
      return success();
    }
    Value found = sources_.find("node.k8s.io", "runtimeclasses", "", class_name);
    if (found.is_null()) {
      return refuse(write, cat("pod rejected: RuntimeClass ", quoted(class_name), " not found"));
    }
    const Value& overhead = found["overhead"]["podFixed"];
    if (!overhead.empty()) {
      if (const Value* own = pod["spec"].find("overhead");
          own && !own->empty() && !(*own == overhead)) {
        return refuse(write,
                      "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
      }
      pod.mut("spec").set("overhead", overhead);
    }
    for (const auto& [key, value] : found["scheduling"]["nodeSelector"].members()) {
      const Value* own = pod["spec"]["nodeSelector"].find(key);
      if (own && !(*own == value)) {
        return refuse(write, cat("conflict: runtimeClass.scheduling.nodeSelector[", key,
                                 "] = ", value.as_string(), "; pod.spec.nodeSelector[", key,
                                 "] = ", own->as_string()));
      }
      pod.mut("spec").mut("nodeSelector").set(key, value);
    }
    for (const Value& toleration : found["scheduling"]["tolerations"].items()) {
      bool present = false;
      for (const Value& own : pod["spec"]["tolerations"].items())
        present = present || own == toleration;
      if (!present) pod.mut("spec").mut("tolerations").push(toleration);
    }
    return success();
  }

 private:
  PluginSources sources_;
};

}  // namespace

PluginPtr make_runtime_class(PluginSources sources) {
  return std::make_unique<RuntimeClass>(sources);
}

}  // namespace dibs::server
