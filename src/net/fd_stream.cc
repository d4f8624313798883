#include "net/fd_stream.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace dibs::net {
namespace {

constexpr std::size_t kBlock = 64 * 1024;
// Blocks of one stream before the others of the loop have their turn.
constexpr int kTurn = 8;

bool try_again(ssize_t got) { return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK); }

bool is_socket(int fd) {
  struct stat about {};
  return ::fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode);
}

}  // namespace

FdStream::FdStream(std::shared_ptr<EventLoop> loop, int fd, Handlers handlers, std::size_t packet)
    : loop_(std::move(loop)),
      is_socket_(is_socket(fd)),
      packet_(packet),
      reads_(handlers.data || handlers.ended),
      fd_(fd),
      handlers_(std::move(handlers)) {
  ::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) | O_NONBLOCK);
}

FdStream::~FdStream() {
  if (fd_ >= 0) ::close(fd_);
}

std::shared_ptr<FdStream> FdStream::open(std::shared_ptr<EventLoop> loop, int fd, Handlers handlers,
                                         std::size_t packet) {
  std::shared_ptr<FdStream> made(new FdStream(std::move(loop), fd, std::move(handlers), packet));
  const bool known = made->loop_->post([made] {
    if (made->fd_ < 0) return;
    made->self_ = made;
    made->loop_->add(made->fd_, made.get());
    made->read();
    made->flush();
  });
  return known ? made : nullptr;
}

void FdStream::post(std::function<void(FdStream&)> task) {
  loop_->post([self = shared_from_this(), task = std::move(task)] { task(*self); });
}

void FdStream::write(std::string_view bytes) {
  if (bytes.empty()) return;
  queued_ += bytes.size();
  post([text = std::string(bytes)](FdStream& self) {
    if (self.deaf_ || self.finishing_ || self.fd_ < 0) {
      self.queued_ -= text.size();
      return;
    }
    self.output_ += text;
    self.flush();
  });
}

void FdStream::finish() {
  post([](FdStream& self) {
    self.finishing_ = true;
    self.flush();
  });
}

void FdStream::hold(bool held) {
  post([held](FdStream& self) {
    self.held_ = held;
    if (!held) self.read();
  });
}

void FdStream::end_of_input() {
  post([](FdStream& self) {
    self.last_ = true;
    self.read();
  });
}

void FdStream::close() {
  post([](FdStream& self) {
    self.end(false);
    self.shut();
  });
}

void FdStream::on_ready(EventLoop::Ready ready) {
  const auto alive = self_;
  // A pipe whose reader has gone says so without being writable.
  if (ready.out || ready.broken) flush();
  read();
}

void FdStream::read() {
  char block[kBlock];
  for (int turn = 0; reads_ && !held_ && !ended_ && fd_ >= 0; ++turn) {
    if (turn == kTurn) return post([](FdStream& self) { self.read(); });
    const ssize_t got =
        is_socket_ ? ::recv(fd_, block, sizeof block, 0) : ::read(fd_, block, sizeof block);
    if (got > 0) {
      if (handlers_.data) handlers_.data({block, static_cast<std::size_t>(got)});
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (try_again(got) && !last_) return;
    if (got < 0 && !try_again(got)) error_ = errno;
    end(true);
  }
}

void FdStream::end(bool by_peer) {
  if (std::exchange(ended_, true)) return;
  if (handlers_.ended) handlers_.ended(by_peer);
}

void FdStream::flush() {
  std::size_t sent = 0;
  while (fd_ >= 0 && !deaf_ && sent < output_.size()) {
    std::size_t size = output_.size() - sent;
    if (packet_ > 0) size = std::min(size, packet_);
    const char* from = output_.data() + sent;
    const ssize_t taken =
        is_socket_ ? ::send(fd_, from, size, MSG_NOSIGNAL) : ::write(fd_, from, size);
    if (taken < 0 && errno == EINTR) continue;
    if (try_again(taken)) break;
    if (taken < 0) {
      deaf_ = true;
    } else {
      sent += static_cast<std::size_t>(taken);
    }
  }
  if (deaf_) sent = output_.size();
  output_.erase(0, sent);
  queued_ -= sent;
  if (!output_.empty()) return;
  if (finishing_) {
    if (is_socket_) {
      if (fd_ >= 0) ::shutdown(fd_, SHUT_WR);
    } else {
      shut();
    }
  }
  if (sent > 0 && handlers_.drained) handlers_.drained();
}

void FdStream::shut() {
  if (fd_ < 0) return;
  loop_->remove(fd_);
  ::close(std::exchange(fd_, -1));
  queued_ -= output_.size();
  output_.clear();
  // Handlers often hold what holds this.
  handlers_ = {};
  if (self_) loop_->retire(std::move(self_));
}

LoopThread::~LoopThread() {
  const MutexLock lock(mutex_);
  if (thread_.joinable()) {
    loop_->stop();
    thread_.join();
  }
  loop_->close();
}

const std::shared_ptr<EventLoop>& LoopThread::loop() {
  const MutexLock lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([loop = loop_] { loop->run(); });
  return loop_;
}

}  // namespace dibs::net
