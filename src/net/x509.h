#pragma once
// X.509 certificates of a cluster: a CA with an ECDSA P-256 key, server and client certificates
// issued by it, and a look into certificates. Keys are drawn from OpenSSL's generator; times come
// from outside.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

// OpenSSL's certificate, named without its headers.
struct x509_st;

namespace dibs::net {

/// A certificate (or chain) and its private key, as PEM.
struct Credential {
  std::string certificate_pem;
  std::string key_pem;
  bool operator==(const Credential&) const = default;
};

struct Validity {
  Time not_before;
  Time not_after;
};

struct CertificateInfo {
  std::string common_name;
  std::vector<std::string> organizations;
  std::vector<std::string> dns_names;
  std::vector<std::string> ip_addresses;
  Time not_before;
  Time not_after;
  bool is_ca = false;
  bool for_servers = false;  // extended key usage
  bool for_clients = false;
  std::string issuer_common_name;
  std::string serial;                      // hexadecimal
  std::string sha256 = {};                 // of the whole certificate, hexadecimal
  std::vector<std::string> user_ids = {};  // what Kubernetes takes for uids, 1.3.6.1.4.1.57683.2
};

Result<Credential> make_ca(std::string_view common_name, Validity validity);

/// `names`: DNS names and IP addresses in any order; each becomes a SAN of its kind.
Result<Credential> issue_server_certificate(const Credential& ca, std::string_view common_name,
                                            const std::vector<std::string>& names,
                                            Validity validity);

/// The common name is the user, the organizations are the groups.
Result<Credential> issue_client_certificate(const Credential& ca, std::string_view common_name,
                                            const std::vector<std::string>& organizations,
                                            Validity validity);

/// Whether certificates can be signed with it. Errors: invalid when it is no authority, the key is
/// another one's or of a kind that signs none.
Result<> check_authority(const Credential& ca);

/// A certificate signing request, as kubelets and users send it.
struct SigningRequest {
  std::string common_name = {};
  std::vector<std::string> organizations = {};
  std::vector<std::string> dns_names = {};
  std::vector<std::string> ip_addresses = {};
  std::vector<std::string> email_addresses = {};
  std::vector<std::string> uris = {};
};
/// Errors: invalid when it is no request, its own signature is wrong, or it has several common
/// names.
Result<SigningRequest> parse_signing_request(std::string_view pem);

/// What a kubelet sends: a request (PEM) for the key, with these in its subject.
Result<std::string> make_signing_request(std::string_view key_pem, std::string_view common_name,
                                         const std::vector<std::string>& organizations);

/// A certificate for what the request (PEM) asks: its key, the well-known parts of its subject and
/// alternative names, for these usages in the words of the API ("client auth"). Nothing else that
/// it asks for is granted: it is no authority. Errors: invalid.
Result<std::string> sign_request(const Credential& ca, std::string_view request_pem,
                                 const std::vector<std::string>& usages, Validity validity);

/// Each certificate of the text, as PEM without anything around it.
std::vector<std::string> split_certificates(std::string_view pem);

/// The first certificate of the text.
Result<CertificateInfo> parse_certificate(std::string_view pem);
CertificateInfo describe_certificate(x509_st* certificate);
/// "sha256:…", of the public key of the first certificate, as `kubeadm join` is told it. Errors:
/// invalid.
Result<std::string> public_key_hash(std::string_view certificate_pem);

/// The certificate must be signed by the CA; says nothing about times.
bool is_issued_by(std::string_view certificate_pem, std::string_view ca_pem);

bool is_private_key(std::string_view pem);

/// A new ECDSA P-256 key, PKCS #8.
Result<std::string> make_private_key();

}  // namespace dibs::net
