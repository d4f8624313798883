// An Ingress that names no class gets the one that is marked as the default, the youngest of
// several.
#include "server/plugins/plugins.h"

namespace dibs::server {
namespace {

constexpr std::string_view kDefaultAnnotation = "ingressclass.kubernetes.io/is-default-class";
constexpr std::string_view kClassAnnotation = "kubernetes.io/ingress.class";

/// By time of creation, then by name.
bool is_preferred(const Value& candidate, const Value& chosen) {
  const Value& a = candidate["metadata"];
  const Value& b = chosen["metadata"];
  const std::string_view time = a["creationTimestamp"].as_string();
  const std::string_view best = b["creationTimestamp"].as_string();
  return time != best ? time > best : a["name"].as_string() < b["name"].as_string();
}

class DefaultIngressClass : public AdmissionPlugin {
 public:
  explicit DefaultIngressClass(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "DefaultIngressClass"; }

  Result<> mutate(Write& write) override {
    if (write.operation != Operation::create || !write.is("networking.k8s.io", "ingresses") ||
        !write.subresource.empty())
      return success();
    Value& ingress = write.object;
    // The older way to name a class counts, too.
    if (!ingress["spec"]["ingressClassName"].is_null() ||
        ingress["metadata"]["annotations"].contains(kClassAnnotation))
      return success();
    Value chosen;
    for (const Value& candidate : sources_.list("networking.k8s.io", "ingressclasses", "")) {
      if (candidate["metadata"]["annotations"][kDefaultAnnotation].as_string() != "true") continue;
      if (chosen.is_null() || is_preferred(candidate, chosen)) chosen = candidate;
    }
    if (!chosen.is_null()) ingress.mut("spec").set("ingressClassName", chosen["metadata"]["name"]);
    return success();
  }

 private:
  PluginSources sources_;
};

}  // namespace

PluginPtr make_default_ingress_class(PluginSources sources) {
  return std::make_unique<DefaultIngressClass>(sources);
}

}  // namespace dibs::server
