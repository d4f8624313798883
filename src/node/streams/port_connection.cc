#include "node/streams/port_connection.h"

#include <utility>

#include "base/strings.h"

namespace dibs::node {
namespace {

constexpr std::size_t kMaxWaiting = 1024 * 1024;

}  // namespace

PortConnection::PortConnection(StreamHost host, std::string sandbox, int port, Client client)
    : host_(std::move(host)),
      sandbox_(std::move(sandbox)),
      port_(port),
      client_(std::move(client)) {}

void PortConnection::begin() {
  host_.runtime.executor.post([self = shared_from_this()] { self->dial(); });
}

void PortConnection::dial() {
  const client::GateEntry inside(*host_.gate);
  if (!inside) return ended(Error::unavailable("the node is stopping"));
  const auto self = shared_from_this();
  PortOutput output;
  output.data = [self](std::string_view bytes) { self->receive(bytes); };
  output.ended = [self](Result<> outcome) { self->ended(outcome); };
  output.drained = [self] {
    const MutexLock lock(self->mutex_);
    self->hold_client();
  };
  auto stream = host_.containers.connect_port(sandbox_, port_, std::move(output));
  if (!stream.ok()) return ended(stream.error());
  const MutexLock lock(mutex_);
  if (over_) return;
  stream_ = std::move(*stream);
  stream_->write(std::exchange(early_, {}));
  if (early_end_) stream_->close();
  if (stream_held_) stream_->hold(true);
  hold_client();
}

void PortConnection::write(std::string_view bytes) {
  const MutexLock lock(mutex_);
  if (over_) return;
  if (stream_) {
    stream_->write(bytes);
  } else {
    early_ += bytes;
  }
  hold_client();
}

void PortConnection::close_write() {
  const MutexLock lock(mutex_);
  if (stream_) stream_->close();
  early_end_ = true;
}

void PortConnection::hold_client() {
  const bool full = (stream_ ? stream_->queued() : early_.size()) > kMaxWaiting;
  if (full != std::exchange(client_held_, full)) client_.hold(full);
}

void PortConnection::receive(std::string_view bytes) {
  client_.data(bytes);
  const MutexLock lock(mutex_);
  if (stream_held_ || client_.queued() <= kMaxWaiting) return;
  stream_held_ = true;
  if (stream_) stream_->hold(true);
}

void PortConnection::drained() {
  const MutexLock lock(mutex_);
  if (std::exchange(stream_held_, false) && stream_) stream_->hold(false);
}

std::shared_ptr<StreamInput> PortConnection::stop() {
  const MutexLock lock(mutex_);
  over_ = true;
  early_.clear();
  if (std::exchange(client_held_, false)) client_.hold(false);
  return std::move(stream_);
}

void PortConnection::ended(const Result<>& outcome) {
  if (auto stream = stop()) {
    // The runtime is still inside a call to this; its object must not go away under it.
    host_.runtime.executor.post([stream = std::move(stream)] {});
  }
  {
    const MutexLock lock(mutex_);
    if (std::exchange(told_, true)) return;
  }
  client_.ended(outcome.ok() ? std::string()
                             : cat("error forwarding port ", port_, " to pod ", sandbox_,
                                   ", uid : ", outcome.error().message()));
}

void PortConnection::abandon() {
  {
    const MutexLock lock(mutex_);
    told_ = true;
  }
  if (const auto stream = stop()) stream->abandon();
}

}  // namespace dibs::node
