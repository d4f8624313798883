// Counts what ResourceQuotas limit. Admission charges what is created, together with the object;
// what is deleted or ends is found here: used is counted anew over the objects that are there.
//
// The quota is known before the objects are listed, and written at that version. Had anything been
// charged since, it would have another, so no object is missed in a count that is written.
#include <set>

#include "api/kinds/cluster/quota.h"
#include "base/strings.h"
#include "controllers/controllers.h"

namespace dibs::controllers {
namespace {

const Gvr kQuotas = {"", "v1", "resourcequotas"};
// What is deleted frees its share soon; what is created was charged already, unless the quota was
// so new that it did not say yet what it limits.
constexpr Duration kAfterDeletion = std::chrono::milliseconds(20);
constexpr Duration kAfterCreation = std::chrono::seconds(2);
// For resources that nobody follows.
constexpr Duration kRecount = std::chrono::seconds(30);

using GroupResource = std::pair<std::string, std::string>;

/// Resources whose objects count for a name in spec.hard.
GroupResource counted_by(std::string_view name) {
  if (name.starts_with("count/")) {
    name.remove_prefix(6);
    const auto dot = name.find('.');
    if (dot == std::string_view::npos) return {"", std::string(name)};
    return {std::string(name.substr(dot + 1)), std::string(name.substr(0, dot))};
  }
  if (name.ends_with(".deviceclass.resource.k8s.io/devices")) {
    return {"resource.k8s.io", "resourceclaims"};
  }
  if (name == "services" || name.starts_with("services.")) return {"", "services"};
  if (name == "requests.storage" || name.find(".storageclass.storage.k8s.io/") != name.npos ||
      name == "persistentvolumeclaims") {
    return {"", "persistentvolumeclaims"};
  }
  for (const char* plain : {"configmaps", "secrets", "replicationcontrollers", "resourcequotas"}) {
    if (name == plain) return {"", plain};
  }
  return {"", "pods"};
}

class Quotas : public Controller {
 public:
  explicit Quotas(Environment& environment)
      : environment_(environment),
        quotas_(environment.informers.of(kQuotas, kByNamespace, client::index_by_namespace)),
        pods_(environment.informers.of(kPods)),
        loop_(environment, "resource-quota",
              [this](const std::string& key) { return reconcile(key); }) {
    quotas_.add_handler(
        {.added = [this](const Value& quota, bool) { loop_.add(client::key_of(quota)); },
         .updated =
             [this](const Value& before, const Value& after) {
               const bool limits_changed = !(before["spec"] == after["spec"]) ||
                                           !(after["spec"]["hard"] == after["status"]["hard"]);
               if (limits_changed) {
                 loop_.add(client::key_of(after));
               } else if (!(before["status"]["used"] == after["status"]["used"])) {
                 // Somebody's wrong word, or a charge of a server of another kind, whose object may
                 // never come: nothing else would tell of that.
                 loop_.add_after(client::key_of(after), kAfterCreation);
               }
             }});
    for (const GroupResource& what :
         {GroupResource{"", "pods"}, GroupResource{"", "services"}, GroupResource{"", "configmaps"},
          GroupResource{"", "secrets"}, GroupResource{"", "persistentvolumeclaims"},
          GroupResource{"resource.k8s.io", "resourceclaims"}}) {
      const auto resource = environment.discovery.find(what.first, what.second);
      if (!resource) continue;
      followed_.insert(what);
      client::Informer& informer = environment.informers.of(resource->gvr);
      informer.add_handler(
          {.added = [this](const Value& object, bool) { recount(object, kAfterCreation); },
           .updated =
               [this](const Value& before, const Value& after) {
                 // A pod that ends no longer counts.
                 const bool ended = !is_pod_terminal(before) && is_pod_terminal(after);
                 const bool changed = !(before["spec"] == after["spec"]);
                 if (ended || changed) recount(after, kAfterDeletion);
               },
           .removed = [this](const Value& object) { recount(object, kAfterDeletion); }});
    }
    if (const auto classes = environment.discovery.find("resource.k8s.io", "deviceclasses")) {
      classes_ = &environment.informers.of(classes->gvr);
    }
  }

  void stop() override { loop_.stop(); }

 private:
  void recount(const Value& object, Duration delay) {
    for (const auto& quota : quotas_.by_index(kByNamespace, std::string(namespace_of(object)))) {
      loop_.add_after(client::key_of(quota), delay);
    }
  }

  Result<WorkOutcome> reconcile(const std::string& key) {
    const auto [name_space, name] = client::split_key(key);
    auto known = quotas_.get(key);
    if (!known) return done();
    Value quota = std::move(*known);
    std::set<GroupResource> resources;
    for (const auto& [hard, amount] : quota["spec"]["hard"].members()) {
      resources.insert(counted_by(hard));
      // Devices count under the names by which pods may ask for them, too.
      const std::string_view limited = hard;
      if (limited.starts_with("requests.") && limited.find('/') != std::string_view::npos) {
        resources.insert({"resource.k8s.io", "resourceclaims"});
      }
    }
    const Time now = environment_.runtime.clock.now();
    api::QuotaSources sources;
    sources.extended = [this](std::string_view device_class) {
      const auto found = classes_ ? classes_->get(std::string(device_class)) : std::nullopt;
      return found ? (*found)["spec"]["extendedResourceName"].str() : std::string();
    };
    sources.pod = [this](std::string_view in, std::string_view called) {
      const auto found = pods_.get(client::key_of(in, called));
      return found ? *found : Value();
    };
    api::Amounts total;
    bool all_followed = true;
    for (const auto& [group, plural] : resources) {
      all_followed = all_followed && followed_.contains({group, plural});
      const auto resource = environment_.discovery.find(group, plural);
      if (!resource || !resource->namespaced) continue;
      DIBS_TRY(const auto objects, environment_.client.list(resource->gvr, name_space));
      // Those that are counted are all that there are.
      if (plural == "resourceclaims") {
        sources.claims = [&objects](std::string_view) { return objects.items; };
      }
      for (const auto& object : objects.items) {
        if (!api::quota_matches(quota, group, plural, object)) continue;
        const api::Amounts usage = api::quota_usage(group, plural, object, now, sources);
        api::add_amounts(total, usage);
      }
    }
    const Value before = quota["status"];
    quota.mut("status").set("hard", quota["spec"]["hard"]);
    quota.mut("status").set("used", api::used_of(quota, total));
    if (!(before == quota["status"])) {
      auto written = environment_.client.update_status(kQuotas, name_space, quota);
      if (!written && !is_gone(written.error())) return written.error();
    }
    return all_followed ? WorkOutcome::done() : WorkOutcome::again_after(kRecount);
  }

  Environment& environment_;
  client::Informer& quotas_;
  client::Informer& pods_;
  client::Informer* classes_ = nullptr;
  std::set<GroupResource> followed_;
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_quota_controller(Environment& environment) {
  return std::make_unique<Quotas>(environment);
}

}  // namespace dibs::controllers
