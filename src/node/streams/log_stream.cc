#include "node/streams/log_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/strings.h"

namespace dibs::node {
namespace {

constexpr std::size_t kBlock = 64 * 1024;
// More than this waiting for the client, and reading pauses.
constexpr std::size_t kMaxQueued = 512 * 1024;
// A container's line can be cut anywhere by the runtime; one longer than this is no log line.
constexpr std::size_t kMaxLine = 1024 * 1024;

}  // namespace

LogStream::LogStream(runtime::Runtime& runtime, FileWatch& watch, std::string path,
                     LogOptions options)
    : runtime_(runtime),
      watch_(watch),
      path_(std::move(path)),
      options_(std::move(options)),
      format_(options_) {}

LogStream::~LogStream() {
  if (fd_ >= 0) ::close(fd_);
}

Result<> LogStream::open() {
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) {
    return Error::plain(cat("failed to try resolving symlinks in path ", quoted(path_), ": lstat ",
                            path_, ": ", to_lower(std::strerror(errno))));
  }
  if (options_.tail_lines) offset_ = find_tail(fd_, *options_.tail_lines);
  return success();
}

void LogStream::start(std::shared_ptr<net::BodyStream> client) {
  client_ = std::move(client);
  const auto weak = weak_from_this();
  if (options_.follow) {
    subscription_ = watch_.watch(path_, [weak] {
      if (const auto self = weak.lock()) self->wake();
    });
  }
  // The callbacks keep this alive until the client is gone or has everything.
  const auto self = shared_from_this();
  client_->on_closed([self] {
    self->gone_ = true;
    self->wake();
  });
  client_->on_drained([self] { self->wake(); });
  // Whoever wanted to wake it before now found no client.
  state_ = 0;
  wake();
}

void LogStream::container_ended() {
  ended_ = true;
  wake();
}

void LogStream::wake() {
  int state = state_;
  while (true) {
    if (state == 2) return;
    if (!state_.compare_exchange_weak(state, state == 0 ? 1 : 2)) continue;
    break;
  }
  if (state == 0) runtime_.executor.post([self = shared_from_this()] { self->pump(); });
}

void LogStream::pump() {
  while (true) {
    while (!done_ && !gone_ && client_->queued() < kMaxQueued) {
      // Before the read: what was written before the end is seen by it.
      const bool last = ended_ || !options_.follow;
      if (read_some()) continue;
      if (done_ || reopen()) continue;
      if (!last) break;
      if (!held_.empty()) {
        std::string out;
        format_.add(held_, out);
        held_.clear();
        if (!out.empty()) client_->write(share(std::move(out)));
      }
      finish();
    }
    if (gone_) finish();
    int expected = 1;
    if (state_.compare_exchange_strong(expected, 0)) return;
    state_ = 1;
  }
}

bool LogStream::read_some() {
  char block[kBlock];
  const auto got = ::pread(fd_, block, sizeof block, offset_);
  if (got <= 0) return false;
  offset_ += got;
  held_.append(block, static_cast<std::size_t>(got));
  std::string out;
  std::size_t at = 0;
  bool more = true;
  while (more) {
    const auto end = held_.find('\n', at);
    if (end == std::string::npos) break;
    more = format_.add(std::string_view(held_).substr(at, end + 1 - at), out);
    at = end + 1;
  }
  held_.erase(0, at);
  if (held_.size() > kMaxLine) held_.clear();
  if (!out.empty() && !client_->write(share(std::move(out)))) gone_ = true;
  if (!more) finish();
  return true;
}

bool LogStream::reopen() {
  if (!options_.follow) return false;
  struct stat here {};
  struct stat there {};
  if (::fstat(fd_, &here) != 0 || ::stat(path_.c_str(), &there) != 0) return false;
  if (here.st_ino == there.st_ino && here.st_dev == there.st_dev) {
    // Cut off in place.
    if (there.st_size >= offset_) return false;
    offset_ = 0;
    held_.clear();
    return true;
  }
  // The new file is there, so the old one is complete; what came since the last look is in it.
  if (read_some()) return true;
  const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ::close(fd_);
  fd_ = fd;
  offset_ = 0;
  return true;
}

void LogStream::finish() {
  if (done_.exchange(true)) return;
  subscription_ = nullptr;
  client_->on_drained(nullptr);
  client_->finish();
}

}  // namespace dibs::node
