// Certificate signing requests: they carry who asked, and only those allowed for a signer approve
// or sign.
#include "base/strings.h"
#include "net/x509.h"
#include "server/plugins/plugins.h"

namespace dibs::server {
namespace {

constexpr std::string_view kClientSigner = "kubernetes.io/kube-apiserver-client";

class Certificates : public AdmissionPlugin {
 public:
  explicit Certificates(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "CertificateApproval"; }

  Result<> mutate(Write& write) override {
    if (!write.is("certificates.k8s.io", "certificatesigningrequests")) return success();
    if (write.operation != Operation::create) return success();
    const auth::UserInfo& user = write.context.user;
    Value& spec = write.object.mut("spec");
    for (std::string_view field : {"username", "uid", "groups", "extra"}) spec.erase(field);
    spec.set("username", user.name);
    if (!user.uid.empty()) spec.set("uid", user.uid);
    Value groups = Value::array();
    for (const std::string& group : user.groups) groups.push(group);
    if (!groups.empty()) spec.set("groups", std::move(groups));
    if (!user.extra.empty()) {
      Value extra = Value::object();
      for (const auto& [key, values] : user.extra) {
        Value list = Value::array();
        for (const std::string& value : values) list.push(value);
        extra.set(key, std::move(list));
      }
      spec.set("extra", std::move(extra));
    }
    return success();
  }

  Result<> validate(const Write& write) override {
    if (!write.is("certificates.k8s.io", "certificatesigningrequests")) return success();
    if (write.operation == Operation::create) return check_subject(write);
    if (write.operation != Operation::update) return success();
    std::string signer(write.old["spec"]["signerName"].as_string());
    if (write.subresource == "approval" && !may(write, "approve", signer)) {
      return refuse(write,
                    cat("user not permitted to approve requests with signerName ", quoted(signer)));
    }
    if (write.subresource == "status" && !may(write, "sign", signer) &&
        !(write.old["status"]["certificate"] == write.object["status"]["certificate"])) {
      return refuse(write,
                    cat("user not permitted to sign requests with signerName ", quoted(signer)));
    }
    return success();
  }

 private:
  static Result<> check_subject(const Write& write) {
    const Value& spec = write.object["spec"];
    if (spec["signerName"].as_string() != kClientSigner) return success();
    std::string pem;
    if (!base64_decode(spec["request"].as_string(), pem)) return success();
    auto parsed = net::parse_signing_request(pem);
    if (!parsed.ok()) return success();
    for (const std::string& group : parsed->organizations) {
      if (group == auth::kMasters) {
        return refuse(write, cat("use of ", kClientSigner,
                                 " signer with system:masters group is not allowed"));
      }
    }
    return success();
  }

  bool may(const Write& write, std::string_view verb, std::string_view signer) const {
    auth::RequestAttributes what;
    what.user = write.context.user;
    what.verb = verb;
    what.group = "certificates.k8s.io";
    what.version = "*";
    what.resource = "signers";
    what.name = signer;
    if (sources_.access.authorize(what).allowed) return true;
    what.name = cat(signer.substr(0, signer.find('/')), "/*");
    return sources_.access.authorize(what).allowed;
  }

  PluginSources sources_;
};

}  // namespace

PluginPtr make_certificates(PluginSources sources) {
  return std::make_unique<Certificates>(sources);
}

}  // namespace dibs::server
