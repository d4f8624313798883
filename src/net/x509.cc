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

#include <algorithm>
#include <ctime>
#include <limits>
#include <memory>

#include "base/pem.h"
#include "base/strings.h"
#include "net/openssl_objects.h"

namespace dibs::net {
namespace {

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
  if (PEM_write_bio_X509(bio.get(), certificate) != 1) return openssl_failed("write certificate");
  return contents(bio);
}

Result<std::string> key_pem(EVP_PKEY* key) {
  Bio bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return openssl_failed("write key");
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

/// Names of nodes are longer than the table of add_entry() allows.
bool add_long_entry(X509_NAME* name, int nid, std::string_view value) {
  return X509_NAME_add_entry_by_NID(name, nid, V_ASN1_UTF8STRING,
                                    reinterpret_cast<const unsigned char*>(value.data()),
                                    static_cast<int>(value.size()), -1, 0) == 1;
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

std::vector<std::string> entries(const X509_NAME* name, const ASN1_OBJECT* type) {
  std::vector<std::string> out;
  for (int i = X509_NAME_get_index_by_OBJ(name, type, -1); i >= 0;
       i = X509_NAME_get_index_by_OBJ(name, type, i)) {
    out.push_back(text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, i))));
  }
  return out;
}

std::vector<std::string> entries(const X509_NAME* name, int nid) {
  return entries(name, OBJ_nid2obj(nid));
}

std::vector<std::string> user_ids_of(const X509_NAME* name) {
  const Owned<ASN1_OBJECT, ASN1_OBJECT_free> type(OBJ_txt2obj("1.3.6.1.4.1.57683.2", 1));
  return entries(name, type.get());
}

constexpr int kSubjectParts[] = {
    NID_countryName,         NID_organizationName, NID_organizationalUnitName,
    NID_localityName,        NID_streetAddress,    NID_postalCode,
    NID_stateOrProvinceName, NID_serialNumber,     NID_commonName};

/// What a subject says in words that everybody reads the same way: other parts could mean
/// something to somebody else, and nobody has looked at them.
bool add_known_parts(X509_NAME* name, const X509_NAME* subject) {
  for (const int part : kSubjectParts) {
    for (const std::string& value : entries(subject, part)) {
      if (value.empty()) continue;
      if (!add_long_entry(name, part, value)) return false;
    }
  }
  return true;
}

struct Plan {
  const X509_NAME* subject = nullptr;  // in place of the next two
  std::string_view common_name;
  const std::vector<std::string>* organizations = nullptr;
  const std::vector<std::string>* names = nullptr;
  GENERAL_NAMES* alternatives = nullptr;  // the same, as a request has them
  const char* basic_constraints = "critical,CA:FALSE";
  std::string key_usage = "critical,digitalSignature,keyEncipherment";
  std::string extended_key_usage;
  Validity validity;
};

/// `ca` and `ca_key` are null for a certificate signed by itself.
Result<Certificate> make_certificate(const Plan& plan, EVP_PKEY* key, X509* ca, EVP_PKEY* ca_key) {
  Certificate out(X509_new());
  X509* certificate = out.get();
  X509_set_version(certificate, 2);

  unsigned char serial[16];
  if (RAND_bytes(serial, sizeof serial) != 1) return openssl_failed("random serial");
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
  if (plan.subject != nullptr) good = add_known_parts(subject, plan.subject);
  if (plan.organizations != nullptr) {
    for (const auto& organization : *plan.organizations) {
      good = good && add_entry(subject, NID_organizationName, organization);
    }
  }
  if (plan.subject == nullptr) {
    good = good && add_entry(subject, NID_commonName, plan.common_name);
  }
  if (!good) return Error::invalid(cat("certificate subject: ", openssl_error()));

  X509* issuer = ca != nullptr ? ca : certificate;
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
  X509_set_pubkey(certificate, key);

  good = add_extension(certificate, issuer, NID_basic_constraints, plan.basic_constraints) &&
         add_extension(certificate, issuer, NID_subject_key_identifier, "hash");
  if (!plan.key_usage.empty()) {
    good = good && add_extension(certificate, issuer, NID_key_usage, plan.key_usage.c_str());
  }
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
  if (plan.alternatives != nullptr && sk_GENERAL_NAME_num(plan.alternatives) > 0) {
    good =
        good && X509_add1_ext_i2d(certificate, NID_subject_alt_name, plan.alternatives, 0, 0) == 1;
  }
  if (!good) return openssl_failed("certificate extension");
  if (X509_sign(certificate, ca_key != nullptr ? ca_key : key, EVP_sha256()) == 0) {
    return openssl_failed("sign certificate");
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
  if (key == nullptr) return openssl_failed("generate key");
  DIBS_TRY(auto certificate,
           make_certificate(plan, key.get(), authority.certificate.get(), authority.key.get()));
  Credential out;
  DIBS_TRY(out.certificate_pem, certificate_pem(certificate.get()));
  DIBS_TRY(out.key_pem, key_pem(key.get()));
  return out;
}

// The last one counts when there are several, as in Go.
std::string common_name_of(const X509_NAME* name) {
  auto all = entries(name, NID_commonName);
  return all.empty() ? std::string() : std::move(all.back());
}

/// "99991231235959Z" stands for no end at all, and a Time ends before it: as the last one that
/// there is it is still to come. Differences of what comes of this are Durations.
Time time_of(const ASN1_TIME* time) {
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max() / 1'000'000'000;
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return {};
  return Time::from_seconds(std::clamp<std::int64_t>(::timegm(&parts), 0, kLast));
}

/// Bytes of another number are none, whatever the certificate says.
bool is_address(const GENERAL_NAME& name) {
  if (name.type != GEN_IPADD) return false;
  const int size = ASN1_STRING_length(name.d.iPAddress);
  return size == 4 || size == 16;
}

void read_names(GENERAL_NAMES* all, std::vector<std::string>& dns, std::vector<std::string>& ips,
                std::vector<std::string>* emails = nullptr,
                std::vector<std::string>* uris = nullptr) {
  for (int i = 0; i < sk_GENERAL_NAME_num(all); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(all, i);
    if (name->type == GEN_DNS) {
      dns.push_back(text_of(name->d.dNSName));
    } else if (name->type == GEN_EMAIL && emails != nullptr) {
      emails->push_back(text_of(name->d.rfc822Name));
    } else if (name->type == GEN_URI && uris != nullptr) {
      uris->push_back(text_of(name->d.uniformResourceIdentifier));
    } else if (is_address(*name)) {
      const bool is_v4 = ASN1_STRING_length(name->d.iPAddress) == 4;
      char text[INET6_ADDRSTRLEN] = "";
      ::inet_ntop(is_v4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(name->d.iPAddress), text,
                  sizeof text);
      ips.emplace_back(text);
    }
  }
}

using Names = Owned<GENERAL_NAMES, GENERAL_NAMES_free>;

/// The alternative names of a request; null where it has none.
Names names_of(X509_REQ* request) {
  STACK_OF(X509_EXTENSION)* extensions = X509_REQ_get_extensions(request);
  if (extensions == nullptr) return nullptr;
  Names names(static_cast<GENERAL_NAMES*>(
      X509V3_get_d2i(extensions, NID_subject_alt_name, nullptr, nullptr)));
  sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
  return names;
}

/// Those that certificates of a cluster may have.
void drop_other_names(GENERAL_NAMES* names) {
  for (int i = sk_GENERAL_NAME_num(names) - 1; i >= 0; --i) {
    const GENERAL_NAME& name = *sk_GENERAL_NAME_value(names, i);
    if (name.type == GEN_DNS || name.type == GEN_EMAIL || name.type == GEN_URI) continue;
    if (is_address(name)) continue;
    GENERAL_NAME_free(sk_GENERAL_NAME_delete(names, i));
  }
}

struct Usage {
  std::string_view name;
  const char* text;
};
constexpr Usage kKeyUsages[] = {{"signing", "digitalSignature"},
                                {"digital signature", "digitalSignature"},
                                {"content commitment", "nonRepudiation"},
                                {"key encipherment", "keyEncipherment"},
                                {"key agreement", "keyAgreement"},
                                {"data encipherment", "dataEncipherment"},
                                {"cert sign", "keyCertSign"},
                                {"crl sign", "cRLSign"},
                                {"encipher only", "encipherOnly"},
                                {"decipher only", "decipherOnly"}};
constexpr Usage kExtendedUsages[] = {{"any", "anyExtendedKeyUsage"},
                                     {"server auth", "serverAuth"},
                                     {"client auth", "clientAuth"},
                                     {"code signing", "codeSigning"},
                                     {"email protection", "emailProtection"},
                                     {"s/mime", "emailProtection"},
                                     {"ipsec end system", "ipsecEndSystem"},
                                     {"ipsec tunnel", "ipsecTunnel"},
                                     {"ipsec user", "ipsecUser"},
                                     {"timestamping", "timeStamping"},
                                     {"ocsp signing", "OCSPSigning"},
                                     {"microsoft sgc", "msSGC"},
                                     {"netscape sgc", "nsSGC"}};

/// Adds the usage's text to the list, once. False when the table does not know it.
template <std::size_t N>
bool add_usage(const Usage (&table)[N], std::string_view name, std::vector<std::string>& out) {
  for (const Usage& usage : table) {
    if (usage.name != name) continue;
    if (std::find(out.begin(), out.end(), usage.text) == out.end()) out.emplace_back(usage.text);
    return true;
  }
  return false;
}

// Not by OpenSSL's reader of PEM, which finds another request than the one that was validated
// where a block is damaged.
Result<CertificateRequest> read_request(std::string_view pem) {
  const auto block = next_pem_block(pem);
  if (!block || block->type != "CERTIFICATE REQUEST") {
    return Error::invalid("PEM block type must be CERTIFICATE REQUEST");
  }
  const auto* data = reinterpret_cast<const unsigned char*>(block->bytes.data());
  const auto* end = data + block->bytes.size();
  CertificateRequest request(d2i_X509_REQ(nullptr, &data, end - data));
  ERR_clear_error();
  if (request == nullptr || data != end) {
    return Error::invalid("the PEM block is not a certificate request");
  }
  EVP_PKEY* key = X509_REQ_get0_pubkey(request.get());
  if (key == nullptr || X509_REQ_verify(request.get(), key) != 1) {
    ERR_clear_error();
    return Error::invalid("the request is not signed by its own key");
  }
  // Of two names each reader could take another one.
  if (entries(X509_REQ_get_subject_name(request.get()), NID_commonName).size() > 1) {
    return Error::invalid("the subject has more than one common name");
  }
  return request;
}

SigningRequest describe_request(X509_REQ* request) {
  SigningRequest out;
  const X509_NAME* subject = X509_REQ_get_subject_name(request);
  out.common_name = common_name_of(subject);
  out.organizations = entries(subject, NID_organizationName);
  if (const Names names = names_of(request)) {
    read_names(names.get(), out.dns_names, out.ip_addresses, &out.email_addresses, &out.uris);
  }
  return out;
}

}  // namespace

bool is_private_key(std::string_view pem) { return read_key(pem) != nullptr; }

Result<std::string> make_private_key() {
  Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return openssl_failed("generate key");
  return key_pem(key.get());
}

Result<Credential> make_ca(std::string_view common_name, Validity validity) {
  Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return openssl_failed("generate key");
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

Result<> check_authority(const Credential& ca) {
  DIBS_TRY(const CertificateInfo info, parse_certificate(ca.certificate_pem));
  if (!info.is_ca) return Error::invalid("CA: the certificate is not that of an authority");
  // Tried, since some keys can be read and match, and sign nothing here.
  DIBS_CHECK(issue_client_certificate(ca, "trial", {}, {info.not_before, info.not_after}));
  return success();
}

Result<SigningRequest> parse_signing_request(std::string_view pem) {
  DIBS_TRY(auto request, read_request(pem));
  return describe_request(request.get());
}

Result<std::string> make_signing_request(std::string_view key_pem, std::string_view common_name,
                                         const std::vector<std::string>& organizations) {
  const Key key = read_key(key_pem);
  if (key == nullptr) return Error::invalid("key: not a private key as PEM");
  const CertificateRequest request(X509_REQ_new());
  const Owned<X509_NAME, X509_NAME_free> subject(X509_NAME_new());
  bool good = request != nullptr && subject != nullptr;
  for (const std::string& organization : organizations) {
    good = good && add_entry(subject.get(), NID_organizationName, organization);
  }
  good = good && add_long_entry(subject.get(), NID_commonName, common_name) &&
         X509_REQ_set_version(request.get(), 0) == 1 &&
         X509_REQ_set_subject_name(request.get(), subject.get()) == 1 &&
         X509_REQ_set_pubkey(request.get(), key.get()) == 1 &&
         X509_REQ_sign(request.get(), key.get(), EVP_sha256()) != 0;
  const Bio out(BIO_new(BIO_s_mem()));
  if (!good || PEM_write_bio_X509_REQ(out.get(), request.get()) != 1) {
    return openssl_failed("certificate request");
  }
  return contents(out);
}

Result<std::string> sign_request(const Credential& ca, std::string_view request_pem,
                                 const std::vector<std::string>& usages, Validity validity) {
  DIBS_TRY(auto authority, read_authority(ca));
  DIBS_TRY(auto request, read_request(request_pem));
  Plan plan;
  std::vector<std::string> plain, extended;
  for (const std::string& usage : usages) {
    if (!add_usage(kKeyUsages, usage, plain) && !add_usage(kExtendedUsages, usage, extended))
      return Error::invalid(cat("unrecognized usage values: [", quoted(usage), "]"));
  }
  plan.key_usage = plain.empty() ? "" : cat("critical,", join(plain, ","));
  plan.extended_key_usage = join(extended, ",");
  plan.validity = validity;
  plan.subject = X509_REQ_get_subject_name(request.get());
  const Names names = names_of(request.get());
  if (names != nullptr) drop_other_names(names.get());
  plan.alternatives = names.get();
  DIBS_TRY(auto certificate, make_certificate(plan, X509_REQ_get0_pubkey(request.get()),
                                              authority.certificate.get(), authority.key.get()));
  return certificate_pem(certificate.get());
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
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (X509_digest(certificate, EVP_sha256(), hash, &size) == 1) {
    out.sha256 = hex_encode(std::string_view(reinterpret_cast<const char*>(hash), size));
  }
  out.user_ids = user_ids_of(subject);
  ERR_clear_error();
  return out;
}

std::vector<std::string> split_certificates(std::string_view pem) {
  constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
  constexpr std::string_view kEnd = "-----END CERTIFICATE-----";
  std::vector<std::string> out;
  for (;;) {
    const auto begin = pem.find(kBegin);
    const auto end = begin == std::string_view::npos ? begin : pem.find(kEnd, begin);
    if (end == std::string_view::npos) return out;
    out.push_back(std::string(pem.substr(begin, end + kEnd.size() - begin)) + '\n');
    pem.remove_prefix(end + kEnd.size());
  }
}

Result<CertificateInfo> parse_certificate(std::string_view pem) {
  const Certificate certificate = read_certificate(pem);
  if (certificate == nullptr) return Error::invalid("no PEM certificate found");
  return describe_certificate(certificate.get());
}

Result<std::string> public_key_hash(std::string_view certificate_pem) {
  const Certificate certificate = read_certificate(certificate_pem);
  if (certificate == nullptr) return Error::invalid("not a certificate as PEM");
  unsigned char* der = nullptr;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate.get()), &der);
  if (size <= 0) return openssl_failed("public key");
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  const bool good =
      EVP_Digest(der, static_cast<std::size_t>(size), hash, &length, EVP_sha256(), nullptr) == 1;
  OPENSSL_free(der);
  if (!good) return openssl_failed("digest");
  return cat("sha256:", hex_encode(std::string_view(reinterpret_cast<const char*>(hash), length)));
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
