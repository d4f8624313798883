#include "driver/sockets.h"

#include <openssl/sha.h>

#include "base/strings.h"

namespace dibs::driver {
namespace {

std::string hash(std::string_view text, std::size_t bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return base64url_encode(std::string_view(reinterpret_cast<const char*>(digest), bytes));
}

Error too_long(std::string_view what, const std::string& folder, const std::string& path) {
  return Error::invalid(cat(what, " ", folder, ": too long, the socket's path would have ",
                            path.size(), " bytes, and ", kMaxSocketPath, " is the most"));
}

}  // namespace

Result<SocketPaths> socket_paths(const std::string& registry_dir, const std::string& data_dir,
                                 std::string_view driver, std::string_view pod_uid) {
  SocketPaths paths;
  std::string names[3] = {cat(driver, "-reg.sock"), "", ""};
  if (!pod_uid.empty()) {
    names[0] = cat(driver, "-", pod_uid, "-reg.sock");
    names[1] = cat(driver, "-", hash(pod_uid, 8), "-reg.sock");
  }
  names[2] = cat("dra-", hash(cat(driver, '\0', pod_uid), 16), "-reg.sock");
  for (const auto& name : names) {
    if (name.empty()) continue;
    paths.registration = cat(registry_dir, "/", name);
    if (paths.registration.size() <= kMaxSocketPath) break;
  }
  if (paths.registration.size() > kMaxSocketPath) {
    return too_long("registry folder", registry_dir, paths.registration);
  }
  paths.service = cat(data_dir, "/", pod_uid.empty() ? "dra.sock" : cat("dra-", pod_uid, ".sock"));
  if (paths.service.size() > kMaxSocketPath) {
    return too_long("plugin folder", data_dir, paths.service);
  }
  return paths;
}

}  // namespace dibs::driver
