#include "rpc/grpc_bytes.h"

#include <grpc/support/log.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/log.h"
#include "base/strings.h"

namespace dibs::rpc::internal {
namespace {

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

/// Events and logs show these texts, and users know them as Go's gRPC words them.
std::string go_words(grpc::StatusCode code, std::string message) {
  if (code == grpc::StatusCode::DEADLINE_EXCEEDED && message == "Deadline Exceeded") {
    return "context deadline exceeded";
  }
  constexpr std::string_view kTooLarge = "Received message larger than max";
  if (code == grpc::StatusCode::RESOURCE_EXHAUSTED && starts_with(message, kTooLarge)) {
    return cat("grpc: received message larger than max", message.substr(kTooLarge.size()));
  }
  return message;
}

std::string errno_words(int error) {
  std::string text = std::strerror(error);
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z') text[0] += 'a' - 'A';
  return text;
}

}  // namespace

grpc::ByteBuffer to_buffer(std::string_view bytes) {
  grpc::Slice slice(bytes.data(), bytes.size());
  return grpc::ByteBuffer(&slice, 1);
}

std::string to_bytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string out;
  if (!buffer.Dump(&slices).ok()) return out;
  out.reserve(buffer.Length());
  for (const auto& slice : slices) {
    out.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return out;
}

Status from_grpc(const grpc::Status& status) {
  if (status.ok()) return {};
  const int code = static_cast<int>(status.error_code());
  const bool known = code >= 0 && code <= static_cast<int>(Code::unauthenticated);
  return {known ? static_cast<Code>(code) : Code::unknown,
          go_words(status.error_code(), status.error_message())};
}

grpc::Status to_grpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(status.code), status.message};
}

std::string unix_target(const std::string& path) {
  std::string out = "unix:";
  bool first = true;
  for (const auto part : split(path, '/')) {
    append(out, first ? "" : "/", percent_encode(part));
    first = false;
  }
  return out;
}

void quiet_grpc() {
  static const bool done = [] {
    name_tsan();
    gpr_set_log_function([](gpr_log_func_args* args) {
      log::debug("grpc", {{"text", std::string_view(args->message)}});
    });
    return true;
  }();
  (void)done;
}

std::string probe_socket(const std::string& path) {
  if (path.size() > kMaxPath) return cat("dial unix ", path, ": connect: invalid argument");
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return cat("dial unix ", path, ": socket: ", errno_words(errno));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int rc = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
  const int error = errno;
  ::close(fd);
  // EAGAIN: the listener's queue is full, so there is one.
  if (rc == 0 || error == EAGAIN) return {};
  return cat("dial unix ", path, ": connect: ", errno_words(error));
}

}  // namespace dibs::rpc::internal
