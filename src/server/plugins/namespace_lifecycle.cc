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

  Result<> mutate(AdmissionRequest& request) override {
    if (request.operation != Operation::create || !request.resource.namespaced) return success();
    Value found = sources_.find("", "namespaces", "", request.name_space);
    if (found.is_null()) return not_found_error("", "namespaces", request.name_space);
    if (!found["metadata"].contains("deletionTimestamp")) return success();
    // What review requests and tokens create is not stored.
    Error error = refuse(request, cat("unable to create new content in namespace ",
                                      request.name_space, " because it is being terminated"));
    ErrorDetails details = *error.details();
    details.causes.push_back({"NamespaceTerminating",
                              cat("namespace ", request.name_space, " is being terminated"),
                              "metadata.namespace"});
    return Error(Code::forbidden, error.message(), std::move(details));
  }

  Result<> validate(AdmissionRequest& request) override {
    if (request.operation == Operation::remove && request.is("", "namespaces") &&
        (request.name == "default" || request.name == "kube-system" ||
         request.name == "kube-public")) {
      return refuse(request, "this namespace may not be deleted");
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
