#include <openssl/evp.h>

#include <fstream>

#include "base/strings.h"
#include "node/runtime/image_store.h"

namespace dibs::node {
namespace {

class Digest {
 public:
  Digest() : context_(EVP_MD_CTX_new()) { EVP_DigestInit_ex(context_, EVP_sha256(), nullptr); }
  ~Digest() { EVP_MD_CTX_free(context_); }
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void add(std::string_view bytes) { EVP_DigestUpdate(context_, bytes.data(), bytes.size()); }
  std::string text() {
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    EVP_DigestFinal_ex(context_, sum, &size);
    return "sha256:" + hex_encode({reinterpret_cast<const char*>(sum), size});
  }

 private:
  EVP_MD_CTX* context_;
};

}  // namespace

std::string digest_of(std::string_view bytes) {
  Digest digest;
  digest.add(bytes);
  return digest.text();
}

Result<std::string> digest_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error::not_found(cat("cannot read ", path));
  Digest digest;
  std::string buffer(1 << 16, '\0');
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) ||
         file.gcount() > 0) {
    digest.add({buffer.data(), static_cast<std::size_t>(file.gcount())});
  }
  return digest.text();
}

}  // namespace dibs::node
