// AdminAccess: devices that others use are shown only to claims in namespaces that an administrator
// has labelled for it.
#include "base/strings.h"
#include "server/plugins/plugins.h"

namespace dibs::server {
namespace {

constexpr std::string_view kGroup = "resource.k8s.io";
constexpr std::string_view kLabel = "resource.kubernetes.io/admin-access";
/// Before this release no label was asked for.
constexpr int kSince = 33;

/// The first entry of a list that says adminAccess, or -1.
int first_admin(const Value& list, bool requests) {
  int i = 0;
  for (const Value& item : list.items()) {
    if ((requests ? item["exactly"] : item)["adminAccess"].as_bool()) return i;
    ++i;
  }
  return -1;
}

const Value& results_of(const Value& claim) {
  return claim["status"]["allocation"]["devices"]["results"];
}

class AdminAccess : public AdmissionPlugin {
 public:
  explicit AdminAccess(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "AdminAccess"; }
  bool may_be_disabled() const override { return false; }

  void judge(const Write& write, api::FieldErrors& errors) override {
    if (write.resource.group != kGroup || write.object.is_null()) return;
    bool is_template = write.resource.plural == "resourceclaimtemplates";
    if (!is_template && write.resource.plural != "resourceclaims") return;
    const auto& features = write.resource.features;
    if (features && (features->minor() < kSince || !features->on("DRAAdminAccess"))) return;
    const Value& object = write.object;
    if (write.operation == Operation::create) {
      const Value& spec = is_template ? object["spec"]["spec"] : object["spec"];
      int at = first_admin(spec["devices"]["requests"], true);
      if (at < 0 || is_allowed(write, at, true, errors)) return;
    } else if (write.subresource == "status" && !write.old.is_null()) {
      // Who has had it keeps it.
      if (first_admin(results_of(write.old), false) >= 0) return;
      int at = first_admin(results_of(object), false);
      if (at >= 0) is_allowed(write, at, false, errors);
    }
  }

 private:
  bool is_allowed(const Write& write, int at, bool spec, api::FieldErrors& errors) {
    Value name_space = sources_.find("", "namespaces", "", write.name_space);
    api::Path status("status");
    api::Path allocation = status.child("allocation");
    api::Path base = spec ? api::Path("spec") : allocation;
    api::Path devices = base.child("devices");
    api::Path list = devices.child(spec ? "requests" : "results");
    api::Path item = list.index(static_cast<std::size_t>(at));
    api::Path path = item.child("adminAccess");
    if (name_space.is_null()) {
      errors.internal(path, cat("could not retrieve namespace to verify admin access: namespace ",
                                quoted(write.name_space), " not found"));
      return false;
    }
    if (name_space["metadata"]["labels"][kLabel].as_string() == "true") return true;
    errors.forbidden(path,
                     "admin access to devices requires the `resource.kubernetes.io/admin-access: "
                     "true` label on the containing namespace");
    return false;
  }

  PluginSources sources_;
};

}  // namespace

PluginPtr make_admin_access(PluginSources sources) {
  return std::make_unique<AdminAccess>(sources);
}

}  // namespace dibs::server
