#pragma once
// OpenSSL as the .cc files of this folder use it: its objects with their owners, text as its
// readers and writers take it, and what it says when something fails.

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <string>
#include <string_view>

#include "base/owned.h"
#include "base/result.h"
#include "base/strings.h"

namespace dibs::net {

using Certificate = Owned<X509, X509_free>;
using Key = Owned<EVP_PKEY, EVP_PKEY_free>;
using CertificateRequest = Owned<X509_REQ, X509_REQ_free>;
using Bio = Owned<BIO, BIO_free>;

inline Bio reader(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

inline std::string contents(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

/// Never asks a terminal for a passphrase.
inline int no_passphrase(char*, int, int, void*) { return 0; }

/// The newest entry of OpenSSL's error queue, which is then empty.
inline std::string openssl_error() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  if (code == 0) return "unknown error";
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : cat("error ", code);
}

inline Error openssl_failed(std::string_view doing) {
  return Error::internal(cat(doing, ": ", openssl_error()));
}

}  // namespace dibs::net
