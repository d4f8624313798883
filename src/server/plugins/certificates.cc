// Certificate signing requests: they carry who asked, and only those allowed for a signer approve
// or sign. Likewise those allowed for a signer attest its authorities, and decide on the requests
// of pods.
#include "base/strings.h"
#include "net/x509.h"
#include "server/plugins/plugins.h"

namespace dibs::server {
namespace {

constexpr std::string_view kClientSigner = "kubernetes.io/kube-apiserver-client";

bool is_request(const Write& write) {
  return write.is("certificates.k8s.io", "certificatesigningrequests");
}

/// Whether who writes may do this for a signer, by its name or for all of its domain.
bool may(const PluginSources& sources, const Write& write, std::string_view verb,
         std::string_view signer) {
  auth::RequestAttributes what;
  what.user = write.context.user;
  what.verb = verb;
  what.group = "certificates.k8s.io";
  what.version = "*";
  what.resource = "signers";
  what.name = signer;
  if (sources.access.authorize(what).allowed) return true;
  what.name = cat(signer.substr(0, signer.find('/')), "/*");
  return sources.access.authorize(what).allowed;
}

/// Whoever approves and signs goes by who asked, so that is the server's word, never the author's.
class RequestAuthor : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "CertificateRequestAuthor"; }
  bool may_be_disabled() const override { return false; }

  Result<> mutate(Write& write) override {
    if (!is_request(write) || write.operation != Operation::create) return success();
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
};

class Approval : public AdmissionPlugin {
 public:
  explicit Approval(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "CertificateApproval"; }

  Result<> validate(const Write& write) override {
    if (!is_request(write) || write.operation != Operation::update ||
        write.subresource != "approval") {
      return success();
    }
    const std::string signer = write.old["spec"]["signerName"].str();
    if (may(sources_, write, "approve", signer)) return success();
    return refuse(write,
                  cat("user not permitted to approve requests with signerName ", quoted(signer)));
  }

 private:
  PluginSources sources_;
};

class Signing : public AdmissionPlugin {
 public:
  explicit Signing(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "CertificateSigning"; }

  Result<> validate(const Write& write) override {
    if (!is_request(write) || write.operation != Operation::update ||
        write.subresource != "status" || says_the_same(write.old["status"], write.object["status"]))
      return success();
    const std::string signer = write.old["spec"]["signerName"].str();
    if (may(sources_, write, "sign", signer)) return success();
    return refuse(write,
                  cat("user not permitted to sign requests with signerName ", quoted(signer)));
  }

 private:
  /// That a request failed is the signer's to say as well.
  static bool says_the_same(const Value& old, const Value& now) {
    const bool same_conditions = old["conditions"] == now["conditions"] ||
                                 (old["conditions"].empty() && now["conditions"].empty());
    return same_conditions && old["certificate"] == now["certificate"];
  }

  PluginSources sources_;
};

class SubjectRestriction : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "CertificateSubjectRestriction"; }

  Result<> validate(const Write& write) override {
    if (!is_request(write) || write.operation != Operation::create) return success();
    const Value& spec = write.object["spec"];
    if (spec["signerName"].as_string() != kClientSigner) return success();
    std::string pem;
    base64_decode(spec["request"].as_string(), pem);
    auto parsed = net::parse_signing_request(pem);
    if (!parsed.ok()) {
      return refuse(write, cat("failed to parse CSR: ", parsed.error().message()));
    }
    for (const std::string& group : parsed->organizations) {
      if (group == auth::kMasters) {
        return refuse(write, cat("use of ", kClientSigner,
                                 " signer with system:masters group is not allowed"));
      }
    }
    return success();
  }
};

/// Who speaks for a signer must be allowed to.
class Attest : public AdmissionPlugin {
 public:
  explicit Attest(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "ClusterTrustBundleAttest"; }

  Result<> validate(const Write& write) override {
    if (!write.is("certificates.k8s.io", "clustertrustbundles") || write.object.is_null() ||
        (write.operation != Operation::create && write.operation != Operation::update)) {
      return success();
    }
    const std::string signer = write.object["spec"]["signerName"].str();
    // What is only stored anew, or let go by its owners, says nothing new.
    if (signer.empty() || says_the_same(write.object, write.old)) return success();
    if (may(sources_, write, "attest", signer)) return success();
    return refuse(write, cat("user not permitted to attest for signerName ", quoted(signer)));
  }

 private:
  static bool says_the_same(Value object, Value old) {
    if (old.is_null()) return false;
    for (Value* one : {&object, &old}) {
      for (const char* key : {"managedFields", "ownerReferences", "finalizers", "resourceVersion"})
        one->mut("metadata").erase(key);
    }
    return object == old;
  }

  PluginSources sources_;
};

/// Upstream asks this where it stores such a request, so it is no plugin that could be left out,
/// and the refusal is a fault of a field, told when there is no other.
class PodCertificates : public AdmissionPlugin {
 public:
  explicit PodCertificates(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "PodCertificateSigning"; }
  bool may_be_disabled() const override { return false; }

  Result<> validate(const Write& write) override {
    if (!write.is("certificates.k8s.io", "podcertificaterequests") ||
        write.operation != Operation::update || write.subresource != "status" ||
        write.old["status"] == write.object["status"]) {
      return success();
    }
    const std::string signer = write.old["spec"]["signerName"].str();
    if (may(sources_, write, "sign", signer)) return success();
    const api::Path spec("spec");
    api::FieldErrors errors;
    errors.forbidden(spec.child("signerName"),
                     cat("User ", quoted(write.context.user.name),
                         " is not permitted to \"sign\" for signer ", quoted(signer)));
    return errors.to_error(write.resource.kind, write.resource.group, write.name);
  }

 private:
  PluginSources sources_;
};

}  // namespace

PluginPtr make_pod_certificates(PluginSources sources) {
  return std::make_unique<PodCertificates>(sources);
}
PluginPtr make_certificate_request_author() { return std::make_unique<RequestAuthor>(); }
PluginPtr make_certificate_approval(PluginSources sources) {
  return std::make_unique<Approval>(sources);
}
PluginPtr make_certificate_signing(PluginSources sources) {
  return std::make_unique<Signing>(sources);
}
PluginPtr make_certificate_subject_restriction() { return std::make_unique<SubjectRestriction>(); }
PluginPtr make_trust_bundle_attest(PluginSources sources) {
  return std::make_unique<Attest>(sources);
}

}  // namespace dibs::server
