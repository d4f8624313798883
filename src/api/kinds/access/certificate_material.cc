#include "api/kinds/access/certificate_material.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "base/owned.h"

namespace dibs::api {
namespace {

using Key = Owned<EVP_PKEY, EVP_PKEY_free>;
using Request = Owned<X509_REQ, X509_REQ_free>;
using Certificate = Owned<X509, X509_free>;
using Digest = Owned<EVP_MD_CTX, EVP_MD_CTX_free>;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

/// `read` is one of OpenSSL's d2i functions.
template <typename T>
T* read_whole(T* (*read)(T**, const unsigned char**, long), std::string_view der,
              void (*free_it)(T*)) {
  const unsigned char* at = bytes_of(der);
  T* out = read(nullptr, &at, static_cast<long>(der.size()));
  ERR_clear_error();
  if (out == nullptr || at == bytes_of(der) + der.size()) return out;
  free_it(out);
  return nullptr;
}

/// Go's name of the curve, "" for one that it does not know.
std::string curve_of(EVP_PKEY* key) {
  char group[64] = "";
  std::size_t size = 0;
  if (EVP_PKEY_get_group_name(key, group, sizeof group, &size) != 1) return {};
  const std::string_view name(group, size);
  if (name == "secp224r1") return "P-224";
  if (name == "prime256v1") return "P-256";
  if (name == "secp384r1") return "P-384";
  if (name == "secp521r1") return "P-521";
  return {};
}

/// Nothing for an elliptic curve that Go cannot read.
std::optional<PublicKey> describe(EVP_PKEY* key) {
  PublicKey out;
  // An algorithm that is not known is no fault of who wrote it.
  if (key == nullptr) return out;
  switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_ED25519:
      out.kind = PublicKey::Kind::ed25519;
      break;
    case EVP_PKEY_EC:
      out.kind = PublicKey::Kind::ecdsa;
      out.curve = curve_of(key);
      if (out.curve.empty()) return std::nullopt;
      break;
    case EVP_PKEY_RSA:
      out.kind = PublicKey::Kind::rsa;
      out.bits = (EVP_PKEY_get_bits(key) + 7) / 8 * 8;
      break;
    default:
      break;
  }
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  if (size > 0) out.der.assign(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  ERR_clear_error();
  return out;
}

/// A certificate may end, or begin, beyond what a Time can say.
Time time_of(const ASN1_TIME* time) {
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max() / 1'000'000'000;
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return {};
  return Time::from_seconds(std::clamp<std::int64_t>(::timegm(&parts), 0, kLast));
}

std::string text_of(const ASN1_IA5STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

}  // namespace

std::optional<PublicKey> read_public_key(std::string_view der) {
  const Key key(read_whole<EVP_PKEY>(d2i_PUBKEY, der, EVP_PKEY_free));
  if (key == nullptr) return std::nullopt;
  return describe(key.get());
}

bool is_signed_by(const PublicKey& key, std::string_view text, std::string_view signature) {
  const Key used(read_whole<EVP_PKEY>(d2i_PUBKEY, key.der, EVP_PKEY_free));
  if (used == nullptr) return false;
  const Digest digest(EVP_MD_CTX_new());
  EVP_PKEY_CTX* how = nullptr;
  const EVP_MD* hash = key.kind == PublicKey::Kind::ed25519 ? nullptr : EVP_sha256();
  bool good = EVP_DigestVerifyInit(digest.get(), &how, hash, nullptr, used.get()) == 1;
  if (key.kind == PublicKey::Kind::rsa) {
    good = good && EVP_PKEY_CTX_set_rsa_padding(how, RSA_PKCS1_PSS_PADDING) > 0 &&
           EVP_PKEY_CTX_set_rsa_pss_saltlen(how, RSA_PSS_SALTLEN_AUTO) > 0;
  }
  good = good && EVP_DigestVerify(digest.get(), bytes_of(signature), signature.size(),
                                  bytes_of(text), text.size()) == 1;
  ERR_clear_error();
  return good;
}

std::optional<StubRequest> read_stub_request(std::string_view der) {
  const Request request(read_whole<X509_REQ>(d2i_X509_REQ, der, X509_REQ_free));
  if (request == nullptr) return std::nullopt;
  EVP_PKEY* key = X509_REQ_get0_pubkey(request.get());
  auto described = describe(key);
  if (!described) return std::nullopt;
  StubRequest out{std::move(*described), false};
  out.is_signed = key != nullptr && X509_REQ_verify(request.get(), key) == 1;
  ERR_clear_error();
  return out;
}

std::optional<IssuedCertificate> read_issued_certificate(std::string_view der) {
  const Certificate certificate(read_whole<X509>(d2i_X509, der, X509_free));
  if (certificate == nullptr) return std::nullopt;
  auto key = describe(X509_get0_pubkey(certificate.get()));
  if (!key) return std::nullopt;
  IssuedCertificate out;
  out.key = std::move(*key);
  out.not_before = time_of(X509_get0_notBefore(certificate.get()));
  out.not_after = time_of(X509_get0_notAfter(certificate.get()));
  const Owned<GENERAL_NAMES, GENERAL_NAMES_free> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) out.dns_names.push_back(text_of(name->d.dNSName));
    if (name->type == GEN_EMAIL) out.email_addresses.push_back(text_of(name->d.rfc822Name));
  }
  ERR_clear_error();
  return out;
}

}  // namespace dibs::api
