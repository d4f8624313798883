#include "net/key_pair.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include "base/strings.h"
#include "net/openssl_objects.h"

namespace dibs::net {
namespace {

/// How a key of the type is made, and what it signs the digest of.
struct Kind {
  std::string_view type;
  EVP_PKEY* (*make)();
  const EVP_MD* (*digest)();  // null: the key has its own
};
constexpr Kind kKinds[] = {
    {"RSA3072", [] { return EVP_RSA_gen(3072); }, EVP_sha256},
    {"RSA4096", [] { return EVP_RSA_gen(4096); }, EVP_sha256},
    {"ECDSAP256", [] { return EVP_EC_gen("P-256"); }, EVP_sha256},
    {"ECDSAP384", [] { return EVP_EC_gen("P-384"); }, EVP_sha384},
    {"ECDSAP521", [] { return EVP_EC_gen("P-521"); }, EVP_sha512},
    {"ED25519", [] { return EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"); }, nullptr},
};

Result<std::string> empty_request(EVP_PKEY* key, const EVP_MD* digest) {
  const CertificateRequest request(X509_REQ_new());
  const bool good = request != nullptr && X509_REQ_set_version(request.get(), 0) == 1 &&
                    X509_REQ_set_pubkey(request.get(), key) == 1 &&
                    X509_REQ_sign(request.get(), key, digest) > 0;
  if (!good) return openssl_failed("sign request");
  unsigned char* der = nullptr;
  const int size = i2d_X509_REQ(request.get(), &der);
  if (size <= 0) return openssl_failed("write request");
  std::string out(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  return out;
}

}  // namespace

Result<KeyAndProof> make_key_and_proof(std::string_view type) {
  for (const Kind& kind : kKinds) {
    if (kind.type != type) continue;
    const Key key(kind.make());
    if (key == nullptr) return openssl_failed("generate key");
    const Bio pem(BIO_new(BIO_s_mem()));
    if (PEM_write_bio_PKCS8PrivateKey(pem.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                      nullptr) != 1) {
      return openssl_failed("write key");
    }
    KeyAndProof out;
    out.key_pem = contents(pem);
    DIBS_TRY(out.request_der,
             empty_request(key.get(), kind.digest != nullptr ? kind.digest() : nullptr));
    return out;
  }
  return Error::invalid(cat("unknown key type ", quoted(type)));
}

std::string clean_certificate_chain(std::string_view pem) {
  const Bio in = reader(pem);
  const Bio out(BIO_new(BIO_s_mem()));
  char* type = nullptr;
  char* headers = nullptr;
  unsigned char* bytes = nullptr;
  long size = 0;
  while (PEM_read_bio(in.get(), &type, &headers, &bytes, &size) == 1) {
    PEM_write_bio(out.get(), "CERTIFICATE", "", bytes, size);
    OPENSSL_free(type);
    OPENSSL_free(headers);
    OPENSSL_free(bytes);
  }
  ERR_clear_error();
  return contents(out);
}

}  // namespace dibs::net
