// ClaimStatusAuthorization: who may write a claim's status may not therefore write all of it.
//
// An allocation and its reservations belong to whoever schedules (resourceclaims/binding, in the
// whole cluster); what is said of devices belongs to their drivers (resourceclaims/driver, by the
// driver's name), each for claims of its own node unless it is trusted with any.
#include <map>

#include "base/strings.h"
#include "server/auth/authorizer.h"
#include "server/plugins/plugins.h"

namespace dibs::server {
namespace {

constexpr std::string_view kGroup = "resource.k8s.io";
constexpr std::string_view kGate = "DRAResourceClaimGranularStatusAuthorization";
constexpr std::string_view kNodeName = "authentication.kubernetes.io/node-name";
constexpr std::string_view kAccount = "system:serviceaccount:";

/// The one node that an allocation is for, or "".
std::string node_of(const Value& allocation) {
  const Value& terms = allocation["nodeSelector"]["nodeSelectorTerms"];
  if (terms.size() != 1 || !terms[0]["matchExpressions"].empty()) return "";
  const Value& fields = terms[0]["matchFields"];
  if (fields.size() != 1 || fields[0]["key"].as_string() != "metadata.name" ||
      fields[0]["operator"].as_string() != "In" || fields[0]["values"].size() != 1) {
    return "";
  }
  return fields[0]["values"][0].str();
}

std::string device_key(const Value& device) {
  return cat(device["pool"].as_string(), "/", device["device"].as_string(), "/",
             device["shareID"].as_string());
}

/// What is said of devices, by driver.
std::map<std::string, std::map<std::string, Value>> by_driver(const Value& devices) {
  std::map<std::string, std::map<std::string, Value>> drivers;
  for (const Value& device : devices.items()) {
    drivers[device["driver"].str()][device_key(device)] = device;
  }
  return drivers;
}

std::vector<std::string> changed_drivers(const Value& devices, const Value& old) {
  auto now = by_driver(devices);
  auto before = by_driver(old);
  std::vector<std::string> changed;
  for (const auto& [driver, entries] : now) {
    auto found = before.find(driver);
    if (found == before.end() || !(found->second == entries)) changed.push_back(driver);
  }
  for (const auto& [driver, entries] : before) {
    if (now.count(driver) == 0) changed.push_back(driver);
  }
  std::sort(changed.begin(), changed.end());
  return changed;
}

bool same_list(const Value& a, const Value& b) { return (a.empty() && b.empty()) || a == b; }

class ClaimStatusAuthorization : public AdmissionPlugin {
 public:
  explicit ClaimStatusAuthorization(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "ClaimStatusAuthorization"; }
  bool may_be_disabled() const override { return false; }

  void judge(const Write& write, api::FieldErrors& errors) override {
    if (!write.is(kGroup, "resourceclaims") || write.subresource != "status" ||
        write.object.is_null() || write.old.is_null()) {
      return;
    }
    if (!write.resource.features || !write.resource.features->on(kGate)) return;
    const Value& status = write.object["status"];
    const Value& old = write.old["status"];
    if (!(status["allocation"] == old["allocation"]) ||
        !same_list(status["reservedFor"], old["reservedFor"])) {
      check_binding(write, errors);
    }
    if (status["allocation"].is_null() || same_list(status["devices"], old["devices"])) return;
    for (const std::string& driver : changed_drivers(status["devices"], old["devices"])) {
      check_driver(write, driver, node_of(status["allocation"]), errors);
    }
  }

 private:
  static std::string verb_of(const Write& write) {
    return write.context.info.verb == "patch" ? "patch" : "update";
  }

  auth::RequestAttributes ask(const Write& write, std::string_view part) const {
    auth::RequestAttributes what;
    what.user = write.context.user;
    what.group = kGroup;
    what.version = "*";
    what.resource = "resourceclaims";
    what.subresource = part;
    return what;
  }

  void check_binding(const Write& write, api::FieldErrors& errors) {
    auth::RequestAttributes what = ask(write, "binding");
    what.verb = verb_of(write);
    auth::Decision decision = sources_.access.authorize(what);
    if (decision.allowed) return;
    api::Path status("status");
    errors.forbidden(
        status.child("allocation"),
        cat("changing status.allocation or status.reservedFor requires "
            "resource=\"resourceclaims/binding\", verb=\"",
            what.verb, "\" permission: ", auth::refusal_error(what, decision.reason).message()));
  }

  void check_driver(const Write& write, const std::string& driver, const std::string& node,
                    api::FieldErrors& errors) {
    auth::RequestAttributes what = ask(write, "driver");
    what.name_space = write.name_space;
    what.name = driver;
    std::vector<std::string> verbs;
    if (is_on_node(write.context.user, node)) {
      verbs.push_back(cat("associated-node:", verb_of(write)));
    }
    verbs.push_back(cat("arbitrary-node:", verb_of(write)));
    std::string refusal;
    for (const std::string& verb : verbs) {
      what.verb = verb;
      auth::Decision decision = sources_.access.authorize(what);
      if (decision.allowed) return;
      refusal = auth::refusal_error(what, decision.reason).message();
    }
    api::Path status("status");
    errors.forbidden(status.child("devices"),
                     cat("changing status.devices requires resource=\"resourceclaims/driver\", "
                         "verb=\"[",
                         join(verbs, " "), "]\" permission: ", refusal));
  }

  static bool is_on_node(const auth::UserInfo& user, const std::string& node) {
    if (node.empty() || user.name.substr(0, kAccount.size()) != kAccount) return false;
    auto extra = user.extra.find(std::string(kNodeName));
    return extra != user.extra.end() && extra->second.size() == 1 && extra->second[0] == node;
  }

  PluginSources sources_;
};

}  // namespace

PluginPtr make_claim_status_authorization(PluginSources sources) {
  return std::make_unique<ClaimStatusAuthorization>(sources);
}

}  // namespace dibs::server
