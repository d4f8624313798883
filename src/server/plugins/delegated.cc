// Plugins that ask Access: escalation of rights, and what nodes may write.
#include "server/plugins/plugins.h"

namespace dibs::server {
namespace {

class RoleEscalation : public AdmissionPlugin {
 public:
  explicit RoleEscalation(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "RoleEscalation"; }
  bool may_be_disabled() const override { return false; }
  Result<> validate(const Write& write) override {
    if (write.resource.group != "rbac.authorization.k8s.io" ||
        write.operation == Operation::remove) {
      return success();
    }
    return sources_.access.check_escalation(write);
  }

 private:
  PluginSources sources_;
};

class NodeRestriction : public AdmissionPlugin {
 public:
  explicit NodeRestriction(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "NodeRestriction"; }
  Result<> mutate(Write& write) override { return check(write); }
  Result<> validate(const Write& write) override {
    // Removals are judged here alone; everything else before it is changed further.
    return write.operation == Operation::remove ? check(write) : success();
  }

 private:
  Result<> check(const Write& write) {
    if (!write.context.user.in_group("system:nodes")) return success();
    return sources_.access.check_node(write);
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
