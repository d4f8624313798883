// A resize of a pod that has a node is refused where that node can never grant it: it has less in
// all, or does not say that it can do what is asked (status.declaredFeatures).
#include "api/kinds/pod/resources.h"
#include "base/strings.h"
#include "server/plugins/plugins.h"

namespace dibs::server {
namespace {

constexpr int kFirstRelease = 36;

bool is_sidecar(const Value& container) {
  return container["restartPolicy"].as_string() == "Always";
}

/// What the node has to declare for the change.
std::vector<std::string> needed_features(const Value& before, const Value& after) {
  std::vector<std::string> out;
  if (!(before["resources"] == after["resources"])) {
    out.emplace_back("InPlacePodLevelResourcesVerticalScaling");
  }
  const Value& old = before["initContainers"];
  for (std::size_t i = 0; i < old.size(); ++i) {
    if (is_sidecar(old[i]) || old[i]["resources"] == after["initContainers"][i]["resources"]) {
      continue;
    }
    out.emplace_back("InPlacePodVerticalScalingInitContainers");
    break;
  }
  return out;
}

std::string too_large(const Value& spec, const Value& node) {
  const api::Amounts wanted = api::pod_requests(spec);
  std::vector<std::string> lacks;
  const auto look = [&](const char* name, auto number) {
    const auto found = wanted.find(std::string_view(name));
    const Quantity has = api::quantity_of(node["status"]["allocatable"][name]);
    if (found == wanted.end() || !(found->second > has)) return;
    lacks.push_back(
        cat(name, ", requested: ", number(found->second), ", allocatable: ", number(has)));
  };
  look("cpu", [](const Quantity& amount) { return amount.milli_value(); });
  look("memory", [](const Quantity& amount) { return amount.value(); });
  if (lacks.empty()) return "";
  return cat("node didn't have enough allocatable resources: ", join(lacks, "; "));
}

class PodResize : public AdmissionPlugin {
 public:
  explicit PodResize(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "PodResize"; }

  Result<> validate(const Write& write) override {
    if (!write.is("", "pods") || write.subresource != "resize") return success();
    const api::Features* features = write.resource.features.get();
    const Value* old = write.old_if_any();
    if (features == nullptr || features->minor() < kFirstRelease || old == nullptr) {
      return success();
    }
    const Value& spec = write.object["spec"];
    const std::string node_name = spec["nodeName"].str();
    if (node_name.empty() || spec == (*old)["spec"]) return success();
    const Value node = sources_.find("", "nodes", "", node_name);
    if (node.is_null()) return refuse(write, cat("node ", quoted(node_name), " not found"));
    const auto os = node["metadata"]["labels"]["kubernetes.io/os"].as_string();
    if (!os.empty() && os != "linux") {
      return refuse(write, cat("pod resize is only supported on linux nodes, node ",
                               quoted(node_name), " is ", quoted(os)));
    }
    if (const std::string why = too_large(spec, node); !why.empty()) return refuse(write, why);
    if (!features->on("NodeDeclaredFeatures")) return success();
    std::vector<std::string> missing;
    for (auto& feature : needed_features((*old)["spec"], spec)) {
      bool declared = false;
      for (const Value& one : node["status"]["declaredFeatures"].items()) {
        declared = declared || one.as_string() == feature;
      }
      if (!declared) missing.push_back(std::move(feature));
    }
    if (missing.empty()) return success();
    return refuse(write, cat("pod update requires features ", join(missing, ", "),
                             " which are not available on node ", quoted(node_name)));
  }

 private:
  PluginSources sources_;
};

}  // namespace

PluginPtr make_pod_resize(PluginSources sources) { return std::make_unique<PodResize>(sources); }

}  // namespace dibs::server
