// Nothing is created where there is no namespace or where it goes away; three namespaces stay for
// ever.
//
// Where others write to the store as well, the namespace that was judged may be older than what
// they have made of it: its end may have been seen and all in it deleted by then. So a creation
// expects it in its own transaction to be as it was judged (Op::only_expects); if it is not, the
// write begins again over the newer state. Nothing is put, so creations do not race each other.
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
    if (!is_creation(write)) return success();
    DIBS_CHECK(judge_namespace(write));
    return success();
  }

  Result<TicketPtr> allocate(Write& write) override {
    if (!sources_.store.shared() || !is_creation(write)) return TicketPtr();
    DIBS_TRY(const Value judged, judge_namespace(write));
    store::Op as_judged;
    as_judged.key =
        sources_.resources.get()->find("", "v1", "namespaces")->key("", write.name_space);
    as_judged.expected = std::atoll(judged["metadata"]["resourceVersion"].str().c_str());
    as_judged.only_expects = true;
    write.fences.push_back(std::move(as_judged));
    return TicketPtr();
  }

  Result<> validate(const Write& write) override {
    if (write.operation == Operation::remove && write.is("", "namespaces") &&
        (write.name == "default" || write.name == "kube-system" || write.name == "kube-public")) {
      return refuse(write, "this namespace may not be deleted");
    }
    return success();
  }

 private:
  static bool is_creation(const Write& write) {
    return write.operation == Operation::create && write.resource.namespaced;
  }

  /// The one that something is created in.
  Result<Value> judge_namespace(const Write& write) const {
    Value found = sources_.find("", "namespaces", "", write.name_space);
    if (found.is_null()) return not_found_error("", "namespaces", write.name_space);
    if (!found["metadata"].contains("deletionTimestamp")) return found;
    // What review requests and tokens create is not stored.
    Error error = refuse(write, cat("unable to create new content in namespace ", write.name_space,
                                    " because it is being terminated"));
    ErrorDetails details = *error.details();
    details.causes.push_back({"NamespaceTerminating",
                              cat("namespace ", write.name_space, " is being terminated"),
                              "metadata.namespace"});
    return Error(Code::forbidden, error.message(), std::move(details));
  }

  PluginSources sources_;
};

}  // namespace

PluginPtr make_namespace_lifecycle(PluginSources sources) {
  return std::make_unique<NamespaceLifecycle>(sources);
}

}  // namespace dibs::server
