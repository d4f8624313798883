// Plugins that ask Access: escalation of rights, and what nodes may write.
#include "server/plugins/plugins.h"

namespace dibs::server {
namespace {

class RoleEscalation : public AdmissionPlugin {
 public:
  explicit RoleEscalation(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "RoleEscalation"; }
  Result<> validate(AdmissionRequest& request) override {
    if (request.resource.group != "rbac.authorization.k8s.io" ||
        request.operation == Operation::remove) {
      return success();
    }
    return sources_.access.check_escalation(request);
  }

 private:
  PluginSources sources_;
};

class NodeRestriction : public AdmissionPlugin {
 public:
  explicit NodeRestriction(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "NodeRestriction"; }
  Result<> mutate(AdmissionRequest& request) override { return check(request); }
  Result<> validate(AdmissionRequest& request) override {
    // Removals are judged here alone; everything else before it is changed further.
    return request.operation == Operation::remove ? check(request) : success();
  }

 private:
  Result<> check(AdmissionRequest& request) {
    if (!request.context.user.in_group("system:nodes")) return success();
    return sources_.access.check_node(request);
  }
  PluginSources sources_;
};

}  // namespace

PluginPtr make_role_escalation(PluginSources sources) {
  return std::make_unique<RoleEscalation>(sources);
}
PluginPtr make_node_restriction(PluginSources sources) {
  return std::make_unique<NodeRestriction>(sources);
}

}  // namespace dibs::server
