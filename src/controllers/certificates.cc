// CertificateSigningRequests: approves what kubelets ask for themselves, signs what was approved
// for the signers of Kubernetes, and removes requests that are done with.
#include "base/strings.h"
#include "controllers/certificate_rules.h"
#include "controllers/controllers.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

const Gvr kRequests = {"certificates.k8s.io", "v1", "certificatesigningrequests"};
const Gvr kReviews = {"authorization.k8s.io", "v1", "subjectaccessreviews"};

bool has_condition(const Value& request, std::string_view type) {
  return condition_in(request["status"]["conditions"], type)["status"].as_string() == "True";
}

class Certificates : public Controller {
 public:
  explicit Certificates(Environment& environment)
      : environment_(environment),
        requests_(environment.informers.of(kRequests)),
        loop_(environment, "certificates",
              [this](const std::string& name) { return reconcile(name); }) {
    loop_.follow(requests_);
  }

  void stop() override { loop_.stop(); }

 private:
  Result<WorkOutcome> reconcile(const std::string& name) {
    const auto request = requests_.get(name);
    if (!request) return done();
    const auto left = time_left(*request, now());
    if (left && *left <= Duration(0)) {
      auto removed = environment_.client.remove(kRequests, "", name);
      if (!removed.ok() && !is_gone(removed.error())) return std::move(removed).error();
      return done();
    }
    if ((*request)["status"]["certificate"].as_string().empty()) {
      DIBS_TRY(const bool settled, decide(*request));
      // Who asks may be given the right to later.
      if (!settled) return WorkOutcome::retry();
    }
    if (left) return WorkOutcome::again_after(*left);
    return done();
  }

  /// False: it would be approved if who asks were allowed to ask.
  Result<bool> decide(const Value& request) {
    const bool approved = has_condition(request, "Approved");
    if (has_condition(request, "Denied") || has_condition(request, "Failed")) return true;
    const std::string_view signer = request["spec"]["signerName"].as_string();
    if (!is_own_signer(signer) || (!approved && signer != kKubeletClientSigner)) return true;
    std::string pem;
    base64_decode(request["spec"]["request"].as_string(), pem);
    const auto asked = net::parse_signing_request(pem);
    // What cannot be read will not be later: it is told, not tried again.
    const std::string fault = asked.ok() ? signing_fault(request, *asked) : asked.error().message();
    if (!approved) return fault.empty() ? approve(request, *asked) : Result<bool>(true);
    if (environment_.options.signing_ca.key_pem.empty()) return true;
    DIBS_CHECK(fault.empty() ? sign(request, pem) : refuse(request, fault));
    return true;
  }

  Result<bool> approve(const Value& request, const net::SigningRequest& asked) {
    const bool own = request["spec"]["username"].as_string() == asked.common_name;
    for (const char* right : {"selfnodeclient", "nodeclient"}) {
      const bool is_own = std::string_view(right) == "selfnodeclient";
      if (is_own && !own) continue;
      DIBS_TRY(const bool allowed, may(request, right));
      if (!allowed) continue;
      DIBS_CHECK(
          write(with_condition(request, "Approved", "AutoApproved",
                               is_own ? "Auto approving self kubelet client certificate after "
                                        "SubjectAccessReview."
                                      : "Auto approving kubelet client certificate after "
                                        "SubjectAccessReview."),
                "approval"));
      return true;
    }
    return false;
  }

  /// Whether who asks may ask for certificates of nodes.
  Result<bool> may(const Value& request, const char* right) {
    const Value& from = request["spec"];
    Value spec =
        Value::object({{"user", from["username"]},
                       {"resourceAttributes", Value::object({{"group", kRequests.group},
                                                             {"resource", kRequests.resource},
                                                             {"verb", "create"},
                                                             {"subresource", right},
                                                             {"version", "*"}})}});
    for (const char* field : {"uid", "groups", "extra"})
      if (!from[field].is_null()) spec.set(field, from[field]);
    DIBS_TRY(const Value review,
             environment_.client.create(kReviews, "",
                                        Value::object({{"apiVersion", "authorization.k8s.io/v1"},
                                                       {"kind", "SubjectAccessReview"},
                                                       {"spec", std::move(spec)}})));
    return review["status"]["allowed"].as_bool();
  }

  Result<> sign(const Value& request, const std::string& pem) {
    const ControllersOptions& options = environment_.options;
    DIBS_TRY(const net::CertificateInfo authority,
             net::parse_certificate(options.signing_ca.certificate_pem));
    if (authority.not_after <= now())
      return Error::plain(
          cat("the signer has expired: NotAfter=", format_rfc3339(authority.not_after)));
    std::vector<std::string> usages;
    for (const Value& usage : request["spec"]["usages"].items()) usages.push_back(usage.str());
    DIBS_TRY(const std::string certificate,
             net::sign_request(
                 options.signing_ca, pem, usages,
                 validity_for(request, options.signing_duration, authority.not_after, now())));
    Value changed = request;
    changed.mut("status").set("certificate", base64_encode(certificate));
    return write(changed, "status");
  }

  Result<> refuse(const Value& request, const std::string& why) {
    return write(with_condition(request, "Failed", "SignerValidationFailure", why), "status");
  }

  Value with_condition(const Value& request, const char* type, const char* reason,
                       const std::string& message) const {
    Value changed = request;
    changed.mut("status")
        .mut("conditions")
        .push(Value::object({{"type", type},
                             {"status", "True"},
                             {"reason", reason},
                             {"message", message},
                             {"lastUpdateTime", format_rfc3339(now())}}));
    return changed;
  }

  Result<> write(const Value& request, const char* subresource) {
    client::WriteOptions options;
    options.subresource = subresource;
    auto written = environment_.client.update(kRequests, "", request, options);
    if (!written.ok() && !is_gone(written.error())) return std::move(written).error();
    return success();
  }

  Time now() const { return environment_.runtime.clock.now(); }

  Environment& environment_;
  client::Informer& requests_;
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_certificate_controller(Environment& environment) {
  if (!environment.discovery.serves(kRequests.group, kRequests.resource)) return nullptr;
  return std::make_unique<Certificates>(environment);
}

}  // namespace dibs::controllers
