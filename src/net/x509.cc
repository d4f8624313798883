#include "net/x509.h"

#include <arpa/inet.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <memory>

#include "base/strings.h"
#include "net/tls_impl.h"

namespace dibs::net {
namespace {

template <auto free_function>
struct Freed {
  template <typename T>
  void operator()(T* pointer) const {
    free_function(pointer);
  }
};
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using SigningReq = std::unique_ptr<X509_REQ, Freed<X509_REQ_free>>;

Error failed(std::string_view doing) { return Error::internal(cat(doing, ": ", openssl_error())); }

Bio reader(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string contents(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<std::size_t>(size));
}

int no_passphrase(char*, int, int, void*) { return 0; }

Certificate read_certificate(std::string_view pem) {
  Certificate out(PEM_read_bio_X509(reader(pem).get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  return out;
}

Key read_key(std::string_view pem) {
  Key out(PEM_read_bio_PrivateKey(reader(pem).get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  return out;
}

Result<std::string> certificate_pem(X509* certificate) {
  Bio bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(bio.get(), certificate) != 1) return failed("write certificate");
  return contents(bio);
}

Result<std::string> key_pem(EVP_PKEY* key) {
  Bio bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return failed("write key");
  }
  return contents(bio);
}

bool is_address(const std::string& name) {
  unsigned char bytes[16];
  return ::inet_pton(AF_INET, name.c_str(), bytes) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), bytes) == 1;
}

bool add_extension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
  if (extension == nullptr) return false;
  const bool added = X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

// Names go in as values, never through OpenSSL's configuration syntax, where a comma would start
// another entry.
bool add_names(X509* certificate, const std::vector<std::string>& names) {
  GENERAL_NAMES* all = GENERAL_NAMES_new();
  bool good = true;
  for (const auto& name : names) {
    GENERAL_NAME* entry = GENERAL_NAME_new();
    if (is_address(name)) {
      ASN1_OCTET_STRING* bytes = a2i_IPADDRESS(name.c_str());
      GENERAL_NAME_set0_value(entry, GEN_IPADD, bytes);
    } else {
      ASN1_IA5STRING* text = ASN1_IA5STRING_new();
      ASN1_STRING_set(text, name.data(), static_cast<int>(name.size()));
      GENERAL_NAME_set0_value(entry, GEN_DNS, text);
    }
    good = good && sk_GENERAL_NAME_push(all, entry) > 0;
  }
  good = good && X509_add1_ext_i2d(certificate, NID_subject_alt_name, all, 0, 0) == 1;
  GENERAL_NAMES_free(all);
  return good;
}

bool add_entry(X509_NAME* name, int nid, std::string_view value) {
  return X509_NAME_add_entry_by_NID(name, nid, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(value.data()),
                                    static_cast<int>(value.size()), -1, 0) == 1;
}

struct Plan {
  std::string_view common_name;
  const std::vector<std::string>* organizations = nullptr;
  const std::vector<std::string>* names = nullptr;
  const char* basic_constraints = "critical,CA:FALSE";
  const char* key_usage = "critical,digitalSignature,keyEncipherment";
  std::string extended_key_usage;
  Validity validity;
};

/// `ca` and `ca_key` are null for a certificate signed by itself.
Result<Certificate> make_certificate(const Plan& plan, EVP_PKEY* key, X509* ca, EVP_PKEY* ca_key) {
  Certificate out(X509_new());
  X509* certificate = out.get();
  X509_set_version(certificate, 2);

  unsigned char serial[16];
  if (RAND_bytes(serial, sizeof serial) != 1) return failed("random serial");
  serial[0] &= 0x7f;
  BIGNUM* number = BN_bin2bn(serial, sizeof serial, nullptr);
  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
  BN_free(number);

  ASN1_TIME_set(X509_getm_notBefore(certificate),
                static_cast<std::time_t>(plan.validity.not_before.seconds()));
  ASN1_TIME_set(X509_getm_notAfter(certificate),
                static_cast<std::time_t>(plan.validity.not_after.seconds()));

  X509_NAME* subject = X509_get_subject_name(certificate);
  bool good = true;
  if (plan.organizations != nullptr) {
    for (const auto& organization : *plan.organizations) {
      good = good && add_entry(subject, NID_organizationName, organization);
    }
  }
  good = good && add_entry(subject, NID_commonName, plan.common_name);
  if (!good) return Error::invalid(cat("certificate subject: ", openssl_error()));

  X509* issuer = ca != nullptr ? ca : certificate;
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
  X509_set_pubkey(certificate, key);

  good = add_extension(certificate, issuer, NID_basic_constraints, plan.basic_constraints) &&
         add_extension(certificate, issuer, NID_key_usage, plan.key_usage) &&
         add_extension(certificate, issuer, NID_subject_key_identifier, "hash");
  if (ca != nullptr) {
    good = good && add_extension(certificate, issuer, NID_authority_key_identifier, "keyid");
  }
  if (!plan.extended_key_usage.empty()) {
    good = good &&
           add_extension(certificate, issuer, NID_ext_key_usage, plan.extended_key_usage.c_str());
  }
  if (plan.names != nullptr && !plan.names->empty()) {
    good = good && add_names(certificate, *plan.names);
  }
  if (!good) return failed("certificate extension");
  if (X509_sign(certificate, ca_key != nullptr ? ca_key : key, EVP_sha256()) == 0) {
    return failed("sign certificate");
  }
  return out;
}

struct Authority {
  Certificate certificate;
  Key key;
};

Result<Authority> read_authority(const Credential& ca) {
  Authority out{read_certificate(ca.certificate_pem), read_key(ca.key_pem)};
  if (out.certificate == nullptr) return Error::invalid("CA: no PEM certificate found");
  if (out.key == nullptr) return Error::invalid("CA: no PEM key found");
  if (X509_check_private_key(out.certificate.get(), out.key.get()) != 1) {
    ERR_clear_error();
    return Error::invalid("CA: the key does not match the certificate");
  }
  return out;
}

Result<Credential> issue(const Credential& ca, const Plan& plan) {
  DIBS_TRY(auto authority, read_authority(ca));
  Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return failed("generate key");
  DIBS_TRY(auto certificate,
           make_certificate(plan, key.get(), authority.certificate.get(), authority.key.get()));
  Credential out;
  DIBS_TRY(out.certificate_pem, certificate_pem(certificate.get()));
  DIBS_TRY(out.key_pem, key_pem(key.get()));
  return out;
}

std::string text_of(const ASN1_STRING* text) {
  unsigned char* utf8 = nullptr;
  const int size = ASN1_STRING_to_UTF8(&utf8, text);
  if (size < 0) {
    ERR_clear_error();
    return {};
  }
  std::string out(reinterpret_cast<char*>(utf8), static_cast<std::size_t>(size));
  OPENSSL_free(utf8);
  return out;
}

std::vector<std::string> entries(const X509_NAME* name, int nid) {
  std::vector<std::string> out;
  for (int i = X509_NAME_get_index_by_NID(name, nid, -1); i >= 0;
       i = X509_NAME_get_index_by_NID(name, nid, i)) {
    out.push_back(text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, i))));
  }
  return out;
}

// The last one counts when there are several, as in Go.
std::string common_name_of(const X509_NAME* name) {
  auto all = entries(name, NID_commonName);
  return all.empty() ? std::string() : std::move(all.back());
}

Time time_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return {};
  return Time::from_seconds(::timegm(&parts));
}

void read_names(GENERAL_NAMES* all, std::vector<std::string>& dns, std::vector<std::string>& ips) {
  for (int i = 0; i < sk_GENERAL_NAME_num(all); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(all, i);
    if (name->type == GEN_DNS) {
      dns.push_back(text_of(name->d.dNSName));
    } else if (name->type == GEN_IPADD) {
      const int size = ASN1_STRING_length(name->d.iPAddress);
      char text[INET6_ADDRSTRLEN] = "";
      ::inet_ntop(size == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(name->d.iPAddress), text,
                  sizeof text);
      if (size == 4 || size == 16) ips.emplace_back(text);
    }
  }
}

Result<SigningReq> read_request(std::string_view pem) {
  SigningReq request(PEM_read_bio_X509_REQ(reader(pem).get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  if (request == nullptr) return Error::invalid("PEM block type must be CERTIFICATE REQUEST");
  EVP_PKEY* key = X509_REQ_get0_pubkey(request.get());
  if (key == nullptr || X509_REQ_verify(request.get(), key) != 1) {
    ERR_clear_error();
    return Error::invalid("the request is not signed by its own key");
  }
  return request;
}

SigningRequest describe_request(X509_REQ* request) {
  SigningRequest out;
  const X509_NAME* subject = X509_REQ_get_subject_name(request);
  out.common_name = common_name_of(subject);
  out.organizations = entries(subject, NID_organizationName);
  STACK_OF(X509_EXTENSION)* extensions = X509_REQ_get_extensions(request);
  if (extensions != nullptr) {
    auto* names = static_cast<GENERAL_NAMES*>(
        X509V3_get_d2i(extensions, NID_subject_alt_name, nullptr, nullptr));
    if (names != nullptr) {
      read_names(names, out.dns_names, out.ip_addresses);
      GENERAL_NAMES_free(names);
    }
    sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
  }
  return out;
}

}  // namespace

bool is_private_key(std::string_view pem) { return read_key(pem) != nullptr; }

Result<std::string> make_private_key() {
  Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return failed("generate key");
  return key_pem(key.get());
}

Result<Credential> make_ca(std::string_view common_name, Validity validity) {
  Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return failed("generate key");
  Plan plan;
  plan.common_name = common_name;
  plan.basic_constraints = "critical,CA:TRUE";
  plan.key_usage = "critical,digitalSignature,keyEncipherment,keyCertSign";
  plan.validity = validity;
  DIBS_TRY(auto certificate, make_certificate(plan, key.get(), nullptr, nullptr));
  Credential out;
  DIBS_TRY(out.certificate_pem, certificate_pem(certificate.get()));
  DIBS_TRY(out.key_pem, key_pem(key.get()));
  return out;
}

Result<Credential> issue_server_certificate(const Credential& ca, std::string_view common_name,
                                            const std::vector<std::string>& names,
                                            Validity validity) {
  Plan plan;
  plan.common_name = common_name;
  plan.names = &names;
  plan.extended_key_usage = "serverAuth";
  plan.validity = validity;
  return issue(ca, plan);
}

Result<Credential> issue_client_certificate(const Credential& ca, std::string_view common_name,
                                            const std::vector<std::string>& organizations,
                                            Validity validity) {
  Plan plan;
  plan.common_name = common_name;
  plan.organizations = &organizations;
  plan.extended_key_usage = "clientAuth";
  plan.validity = validity;
  return issue(ca, plan);
}

Result<SigningRequest> parse_signing_request(std::string_view pem) {
  DIBS_TRY(auto request, read_request(pem));
  return describe_request(request.get());
}

CertificateInfo describe_certificate(X509* certificate) {
  CertificateInfo out;
  const X509_NAME* subject = X509_get_subject_name(certificate);
  out.common_name = common_name_of(subject);
  out.organizations = entries(subject, NID_organizationName);
  out.issuer_common_name = common_name_of(X509_get_issuer_name(certificate));
  out.not_before = time_of(X509_get0_notBefore(certificate));
  out.not_after = time_of(X509_get0_notAfter(certificate));
  out.is_ca = X509_check_ca(certificate) == 1;
  if ((X509_get_extension_flags(certificate) & EXFLAG_XKUSAGE) != 0) {
    const auto usage = X509_get_extended_key_usage(certificate);
    out.for_servers = (usage & XKU_SSL_SERVER) != 0;
    out.for_clients = (usage & XKU_SSL_CLIENT) != 0;
  }
  auto* names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  if (names != nullptr) {
    read_names(names, out.dns_names, out.ip_addresses);
    GENERAL_NAMES_free(names);
  }
  BIGNUM* serial = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr);
  if (serial != nullptr) {
    char* text = BN_bn2hex(serial);
    out.serial = to_lower(text);
    OPENSSL_free(text);
    BN_free(serial);
  }
  ERR_clear_error();
  return out;
}

Result<CertificateInfo> parse_certificate(std::string_view pem) {
  const Certificate certificate = read_certificate(pem);
  if (certificate == nullptr) return Error::invalid("no PEM certificate found");
  return describe_certificate(certificate.get());
}

bool is_issued_by(std::string_view certificate_pem, std::string_view ca_pem) {
  const Certificate certificate = read_certificate(certificate_pem);
  const Certificate ca = read_certificate(ca_pem);
  if (certificate == nullptr || ca == nullptr) return false;
  const bool issued = X509_check_issued(ca.get(), certificate.get()) == X509_V_OK &&
                      X509_verify(certificate.get(), X509_get0_pubkey(ca.get())) == 1;
  ERR_clear_error();
  return issued;
}

}  // namespace dibs::net
