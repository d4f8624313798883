// The authority of the API server's certificate, as a ClusterTrustBundle that pods can mount. Its
// name tells the content, so one of an older authority is known, and goes when the new one is
// there.
#include <algorithm>

#include "base/sha256.h"
#include "base/strings.h"
#include "controllers/controllers.h"
#include "net/x509.h"

namespace dibs::controllers {
namespace {

const Gvr kBundles = {"certificates.k8s.io", "v1", "clustertrustbundles"};
constexpr std::string_view kSigner = "kubernetes.io/kube-apiserver-serving";
constexpr std::string_view kPrefix = "kubernetes.io:kube-apiserver-serving:";
constexpr std::size_t kDigits = 24;
constexpr const char* kKey = "bundle";

/// The authorities of a text, each once: a bundle holds nothing else. What clients trust may be the
/// server's certificate itself.
std::string authorities_of(std::string_view pem) {
  std::vector<std::string> all;
  for (std::string& one : net::split_certificates(pem)) {
    const auto info = net::parse_certificate(one);
    if (!info.ok() || !info->is_ca || std::find(all.begin(), all.end(), one) != all.end()) continue;
    all.push_back(std::move(one));
  }
  return join(all, "");
}

class TrustBundles : public Controller {
 public:
  TrustBundles(Environment& environment, std::string pem)
      : environment_(environment),
        pem_(std::move(pem)),
        name_(cat(kPrefix, sha256_hex(pem_).substr(0, kDigits))),
        bundles_(environment.informers.of(kBundles)),
        loop_(
            environment, "trust-bundles", [this](const std::string&) { return publish(); }, 1) {
    loop_.follow(bundles_, [this](const Value& bundle) {
      if (bundle["spec"]["signerName"].as_string() == kSigner) loop_.add(kKey);
    });
  }

  void start() override { loop_.add(kKey); }
  void stop() override { loop_.stop(); }

 private:
  Result<WorkOutcome> publish() {
    const auto found = bundles_.get(name_);
    // The others go when this one is there: its event leads back here.
    if (!found) {
      const Value bundle = Value::object(
          {{"apiVersion", "certificates.k8s.io/v1"},
           {"kind", "ClusterTrustBundle"},
           {"metadata", Value::object({{"name", name_}})},
           {"spec", Value::object({{"signerName", kSigner}, {"trustBundle", pem_}})}});
      DIBS_CHECK(settled(environment_.client.create(kBundles, "", bundle)));
      return done();
    }
    if ((*found)["spec"]["trustBundle"].as_string() != pem_) {
      Value bundle = *found;
      bundle.mut("spec").set("trustBundle", pem_);
      DIBS_CHECK(settled(environment_.client.update(kBundles, "", bundle)));
      return done();
    }
    for (const Value& other : bundles_.list()) {
      if (other["spec"]["signerName"].as_string() != kSigner || name_of(other) == name_) continue;
      DIBS_CHECK(settled(environment_.client.remove(kBundles, "", name_of(other))));
    }
    return done();
  }

  /// What somebody else was faster with: the informer tells it.
  static Result<> settled(const Result<Value>& answer) {
    if (answer.ok() || is_gone(answer.error())) return success();
    const Code code = answer.error().code();
    if (code == Code::already_exists || code == Code::conflict) return success();
    return answer.error();
  }

  Environment& environment_;
  const std::string pem_;
  const std::string name_;
  client::Informer& bundles_;
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_trust_bundle_publisher(Environment& environment) {
  // Not any version: before 1.37 a server has others than the one that is used here.
  if (!environment.discovery.find(kBundles)) return nullptr;
  std::string pem = authorities_of(environment.options.ca_pem);
  if (pem.empty()) return nullptr;
  return std::make_unique<TrustBundles>(environment, std::move(pem));
}

}  // namespace dibs::controllers
