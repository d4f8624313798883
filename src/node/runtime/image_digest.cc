#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/strings.h"
#include "node/runtime/image_record.h"

namespace dibs::node {
namespace {

// Of the room on a disk.
constexpr std::uint64_t kBetweenLooks = 16 << 20;

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

Result<> need_room(const std::string& folder, std::uint64_t bytes) {
  struct statvfs disk = {};
  if (::statvfs(folder.c_str(), &disk) != 0) return success();
  const std::uint64_t spare = std::min<std::uint64_t>(disk.f_blocks * disk.f_frsize / 20, 1 << 30);
  if (disk.f_bavail * disk.f_frsize >= bytes + spare) return success();
  return Error::too_large(cat("no room on the disk of ", folder, " to unpack the image"));
}

Result<std::string> copy_with_digest(int from, const std::string& to) {
  const auto failure = [&](const char* what) {
    return Error::internal(cat(what, ' ', to, ": ", std::strerror(errno)));
  };
  const runtime::Fd target(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!target.ok()) return failure("create");
  Digest digest;
  std::string buffer(1 << 17, '\0');
  const std::string folder = to.substr(0, to.rfind('/'));
  std::uint64_t unchecked = 0;
  while (true) {
    if (unchecked == 0) DIBS_CHECK(need_room(folder, kBetweenLooks));
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure("read what becomes");
    if (got == 0) return digest.text();
    std::string_view left(buffer.data(), static_cast<std::size_t>(got));
    digest.add(left);
    unchecked += left.size();
    if (unchecked >= kBetweenLooks) unchecked = 0;
    while (!left.empty()) {
      const ssize_t put = ::write(target.get(), left.data(), left.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return failure("write");
      left.remove_prefix(static_cast<std::size_t>(put));
    }
  }
}

}  // namespace dibs::node
