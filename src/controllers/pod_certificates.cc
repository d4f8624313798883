// Requests of pods for certificates go a while after they were made: by then a signer has answered
// and the node has what it wanted, or nobody will.
#include "base/time.h"
#include "controllers/controllers.h"

namespace dibs::controllers {
namespace {

constexpr std::string_view kGroup = "certificates.k8s.io";
constexpr std::string_view kResource = "podcertificaterequests";
constexpr Duration kKept = std::chrono::minutes(15);

class PodCertificateCleaner : public Controller {
 public:
  PodCertificateCleaner(Environment& environment, Gvr requests)
      : environment_(environment),
        gvr_(std::move(requests)),
        requests_(environment.informers.of(gvr_)),
        loop_(
            environment, "pod-certificates",
            [this](const std::string& key) { return reconcile(key); }, 1) {
    loop_.follow(requests_);
  }

  void stop() override { loop_.stop(); }

 private:
  Result<WorkOutcome> reconcile(const std::string& key) {
    const auto request = requests_.get(key);
    if (!request) return done();
    const auto made = parse_rfc3339((*request)["metadata"]["creationTimestamp"].as_string());
    if (!made) return done();
    const Duration left = *made + kKept - environment_.runtime.clock.now();
    if (left > Duration(0)) return WorkOutcome::again_after(left);
    client::DeleteOptions options;
    options.uid = (*request)["metadata"]["uid"].str();
    const auto removed =
        environment_.client.remove(gvr_, namespace_of(*request), name_of(*request), options);
    if (!removed.ok() && !is_gone(removed.error())) return removed.error();
    return done();
  }

  Environment& environment_;
  const Gvr gvr_;
  client::Informer& requests_;
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_pod_certificate_cleaner(Environment& environment) {
  // Releases before 1.37 have it in a beta version alone.
  const auto served = environment.discovery.find(kGroup, kResource);
  if (!served) return nullptr;
  return std::make_unique<PodCertificateCleaner>(environment, served->gvr);
}

}  // namespace dibs::controllers
