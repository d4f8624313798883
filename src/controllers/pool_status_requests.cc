// Answers ResourcePoolStatusRequests, once each, and removes them an hour after that; those that
// stay without an answer, after a day.
#include "base/strings.h"
#include "controllers/controllers.h"
#include "controllers/pool_status.h"

namespace dibs::controllers {
namespace {

constexpr const char* kGroup = "resource.k8s.io";
constexpr Duration kKeepAnswered = std::chrono::hours(1);
constexpr Duration kKeepUnanswered = std::chrono::hours(24);

class PoolStatusRequests : public Controller {
 public:
  PoolStatusRequests(Environment& environment, const Gvr& requests, const Gvr& slices,
                     const Gvr& claims, const std::optional<Gvr>& rules)
      : environment_(environment),
        gvr_(requests),
        requests_(environment.informers.of(requests)),
        slices_(environment.informers.of(slices)),
        claims_(environment.informers.of(claims)),
        rules_(rules ? &environment.informers.of(*rules) : nullptr),
        loop_(environment, "resourcepoolstatusrequest",
              [this](const std::string& key) { return reconcile(key); }) {
    loop_.follow(requests_);
    // One that waits for its driver to publish the rest.
    loop_.follow(slices_, [this](const Value& slice) {
      for (const Value& request : requests_.list()) {
        if (request["status"].is_null() && request["spec"]["driver"] == slice["spec"]["driver"]) {
          loop_.add(client::key_of("", name_of(request)));
        }
      }
    });
  }

  void stop() override { loop_.stop(); }

 private:
  Result<WorkOutcome> reconcile(const std::string& key) {
    const auto found = requests_.get(key);
    if (!found || is_deleting(*found)) return done();
    const Value& request = *found;
    const Time now = environment_.runtime.clock.now();
    if (const Duration left = time_left(request, now); left > Duration::zero()) {
      if (!request["status"].is_null()) return WorkOutcome::again_after(left);
    } else {
      return remove(request);
    }
    PoolObjects objects{slices_.list(), claims_.list(), {}};
    if (rules_ != nullptr) objects.taint_rules = rules_->list();
    Value answered = request;
    answered.set("status", pool_status(request, objects, now));
    if (answered["status"].is_null()) return WorkOutcome::again_after(time_left(request, now));
    client::WriteOptions options;
    options.subresource = "status";
    const auto written = environment_.client.update(gvr_, "", answered, options);
    if (!written && !is_gone(written.error())) return written.error();
    return done();
  }

  static Duration time_left(const Value& request, Time now) {
    Value since = request["metadata"]["creationTimestamp"];
    Duration keep = kKeepUnanswered;
    if (!request["status"].is_null()) {
      keep = kKeepAnswered;
      for (const char* type : {"Complete", "Failed"}) {
        const Value& condition = find_condition(request, type);
        if (!condition.is_null()) since = condition["lastTransitionTime"];
      }
    }
    const auto began = parse_rfc3339(since.as_string());
    return began ? keep - (now - *began) : keep;
  }

  Result<WorkOutcome> remove(const Value& request) {
    client::DeleteOptions options;
    options.uid = uid_of(request);
    const auto removed =
        environment_.client.remove(gvr_, "", std::string(name_of(request)), options);
    if (!removed && !is_gone(removed.error())) return removed.error();
    return done();
  }

  Environment& environment_;
  const Gvr gvr_;
  client::Informer& requests_;
  client::Informer& slices_;
  client::Informer& claims_;
  client::Informer* rules_;
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_pool_status_controller(Environment& environment) {
  const auto requests = environment.discovery.find(kGroup, "resourcepoolstatusrequests");
  const auto claims = environment.discovery.find(kGroup, "resourceclaims");
  const auto slices = environment.discovery.find(kGroup, "resourceslices");
  if (!requests || !claims || !slices) return nullptr;
  const auto rules = find_taint_rules(environment);
  return std::make_unique<PoolStatusRequests>(environment, requests->gvr, slices->gvr, claims->gvr,
                                              rules ? std::optional(rules->gvr) : std::nullopt);
}

}  // namespace dibs::controllers
