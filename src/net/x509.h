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
  std::string serial;  // hexadecimal
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

/// A certificate signing request, as kubelets and users send it.
struct SigningRequest {
  std::string common_name = {};
  std::vector<std::string> organizations = {};
  std::vector<std::string> dns_names = {};
  std::vector<std::string> ip_addresses = {};
};
/// Errors: invalid when it is no request or its own signature is wrong.
Result<SigningRequest> parse_signing_request(std::string_view pem);

/// The first certificate of the text.
Result<CertificateInfo> parse_certificate(std::string_view pem);
CertificateInfo describe_certificate(x509_st* certificate);

/// The certificate must be signed by the CA; says nothing about times.
bool is_issued_by(std::string_view certificate_pem, std::string_view ca_pem);

bool is_private_key(std::string_view pem);

/// A new ECDSA P-256 key, PKCS #8.
Result<std::string> make_private_key();

}  // namespace dibs::net
