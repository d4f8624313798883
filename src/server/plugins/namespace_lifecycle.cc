// Nothing is created where there is no namespace or where it goes away; three namespaces stay for
// ever.
#include "base/strings.h"
#include "server/plugins/plugins.h"
#include "server/status.h"

namespace dibs::server {
namespace {

class NamespaceLifecycle : public AdmissionPlugin {
 public:
  explicit NamespaceLifecycle(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "NamespaceLifecycle"; }

  Result<> mutate(Write& write) override {
    if (write.operation != Operation::create || !write.resource.namespaced) return success();
    Value found = sources_.find("", "namespaces", "", write.name_space);
    if (found.is_null()) return not_found_error("", "namespaces", write.name_space);
    if (!found["metadata"].contains("deletionTimestamp")) return success();
    // What review requests and tokens create is not stored.
    Error error = refuse(write, cat("unable to create new content in namespace ", write.name_space,
                                    " because it is being terminated"));
    ErrorDetails details = *error.details();
    details.causes.push_back({"NamespaceTerminating",
                              cat("namespace ", write.name_space, " is being terminated"),
                              "metadata.namespace"});
    return Error(Code::forbidden, error.message(), std::move(details));
  }

  Result<> validate(const Write& write) override {
    if (write.operation == Operation::remove && write.is("", "namespaces") &&
        (write.name == "default" || write.name == "kube-system" || write.name == "kube-public")) {
      return refuse(write, "this namespace may not be deleted");
    }
    return success();
  }

 private:
  PluginSources sources_;
};

}  // namespace

PluginPtr make_namespace_lifecycle(PluginSources sources) {
  return std::make_unique<NamespaceLifecycle>(sources);
}

}  // namespace dibs::server
