#include "net/opening.h"

#include <unistd.h>

#include <limits>
#include <utility>

#include "base/strings.h"

namespace dibs::net {
namespace {

constexpr std::size_t kSendSlice = 128 * 1024;
constexpr std::size_t kMaxHead = 1024 * 1024;

/// Whether so few descriptors are left that they are for the process itself: the lowest free number
/// is the one given out.
bool is_one_of_the_last(int fd) {
  const std::size_t limit = descriptor_limit();
  return static_cast<std::size_t>(fd) >= limit - limit / 16;
}

}  // namespace

Opening::Opening(std::shared_ptr<EventLoop> loop, Task task, std::vector<char>& scratch,
                 Ended ended)
    : loop_(std::move(loop)),
      task_(std::move(task)),
      scratch_(scratch),
      ended_(std::move(ended)),
      parser_(std::make_unique<ResponseParser>(
          ParseLimits{.max_header_bytes = kMaxHead,
                      .max_body = std::numeric_limits<std::uint64_t>::max()},
          task_.to_head)) {}

Opening::~Opening() {
  if (fd_ >= 0) ::close(fd_);
}

void Opening::begin(std::vector<SocketAddress> addresses) {
  if (state_ != State::waiting) return;
  addresses_ = std::move(addresses);
  connect();
}

void Opening::connect() {
  state_ = State::connecting;
  auto fd = begin_connect(addresses_[next_++]);
  if (!fd.ok()) return next_ < addresses_.size() ? connect() : fail(std::move(fd).error());
  fd_ = *fd;
  if (is_one_of_the_last(fd_) || !loop_->add(fd_, this)) {
    fail(Error::unavailable(cat(addresses_[next_ - 1].where(), "socket: too many open files")));
  }
}

void Opening::on_ready(EventLoop::Ready ready) {
  const auto self = shared_from_this();
  if (state_ == State::connecting && (ready.out || ready.broken)) connected();
  if (channel_ != nullptr) {
    if (ready.in || ready.broken) channel_->set_readable();
    if (ready.peer_closed) channel_->set_peer_closed();
  }
  if (state_ == State::shaking) shake();
  if (state_ == State::asking) ask();
}

void Opening::on_tick(std::int64_t now) {
  if (state_ == State::over || now < task_.deadline) return;
  if (state_ == State::connecting) {
    return fail(Error::timeout(cat(addresses_[next_ - 1].where(), "i/o timeout")));
  }
  fail(Error::timeout(state_ == State::shaking ? "net/http: TLS handshake timeout"
                                               : "context deadline exceeded"));
}

void Opening::connected() {
  if (auto done = finish_connect(fd_, addresses_[next_ - 1]); !done.ok()) {
    loop_->remove(fd_);
    ::close(std::exchange(fd_, -1));
    return next_ < addresses_.size() ? connect() : fail(std::move(done).error());
  }
  const int fd = std::exchange(fd_, -1);
  channel_ =
      task_.url.tls ? Channel::tls_client(fd, task_.tls, task_.url.host) : Channel::plain(fd);
  state_ = State::shaking;
}

void Opening::shake() {
  const Io io = channel_->handshake();
  const Io flushed = channel_->flush();
  if (io == Io::error || io == Io::eof) return fail(Error::unavailable(channel_->error_text()));
  if (flushed != Io::ok && flushed != Io::again) {
    return fail(Error::unavailable(cat("write: ", channel_->error_text())));
  }
  if (io == Io::ok) state_ = State::asking;
}

void Opening::ask() {
  send();
  while (state_ == State::asking && (channel_->readable() || channel_->holds_input())) {
    if (!read()) break;
  }
  // Reading may have produced TLS messages of its own.
  if (state_ == State::asking && channel_->output() > 0) send();
}

/// A server may answer, and stop reading, before it has seen everything: then its answer counts,
/// not that the rest could not be sent.
void Opening::send() {
  while (send_error_.empty()) {
    const Io io = channel_->flush();
    if (io == Io::again) return;
    if (io != Io::ok) {
      send_error_ = cat("write: ", channel_->error_text());
      channel_->set_readable();
      return;
    }
    if (sent_ == task_.message.size()) return;
    const auto slice = std::string_view(task_.message).substr(sent_, kSendSlice);
    sent_ += slice.size();
    if (!channel_->write(slice)) send_error_ = channel_->error_text();
  }
}

/// False when there is nothing to read now.
bool Opening::read() {
  std::size_t got = 0;
  const Io io = channel_->read(scratch_.data(), scratch_.size(), got);
  if (io == Io::again) return false;
  if (io != Io::ok) {
    if (!send_error_.empty()) {
      fail(Error::unavailable(send_error_));
    } else {
      fail(Error::unavailable(io == Io::eof ? "EOF" : cat("read: ", channel_->error_text())));
    }
    return false;
  }
  rest_.append(scratch_.data(), got);
  std::size_t used = 0;
  const Parsed parsed = parser_->feed(rest_, used);
  rest_.erase(0, used);
  if (parsed != Parsed::need_more) finish(parsed);
  return true;
}

void Opening::finish(Parsed parsed) {
  if (parsed != Parsed::head && parsed != Parsed::complete) {
    return fail(Error::unavailable("malformed HTTP response"));
  }
  leave();
  Reply reply{std::move(channel_), std::move(parser_), std::move(rest_),
              parsed == Parsed::complete};
  std::exchange(ended_, nullptr)(std::move(reply));
}

void Opening::fail(Error error) {
  if (state_ == State::over) return;
  leave();
  channel_.reset();
  std::exchange(ended_, nullptr)(std::move(error));
}

void Opening::leave() {
  state_ = State::over;
  if (channel_ != nullptr) loop_->remove(channel_->fd());
  if (fd_ >= 0) {
    loop_->remove(fd_);
    ::close(std::exchange(fd_, -1));
  }
  loop_->retire(shared_from_this());
}

}  // namespace dibs::net
