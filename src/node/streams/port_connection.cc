#include "node/streams/port_connection.h"

#include <utility>

#include "base/mutex.h"
#include "base/strings.h"

namespace dibs::node {
namespace {

constexpr std::size_t kMaxWaiting = 1024 * 1024;

}  // namespace

PortConnection::PortConnection(runtime::Runtime& runtime, ContainerRuntime& containers,
                               std::string sandbox, int port, Client client)
    : runtime_(runtime),
      containers_(containers),
      sandbox_(std::move(sandbox)),
      port_(port),
      client_(std::move(client)) {}

void PortConnection::begin() {
  runtime_.executor.post([self = shared_from_this()] { self->dial(); });
}

void PortConnection::dial() {
  const auto self = shared_from_this();
  PortOutput output;
  output.data = [self](std::string_view bytes) { self->receive(bytes); };
  output.ended = [self](Result<> outcome) { self->ended(outcome); };
  auto stream = containers_.connect_port(sandbox_, port_, std::move(output));
  if (!stream.ok()) return ended(stream.error());
  std::shared_ptr<PortStream> late;
  {
    const MutexLock lock(mutex_);
    if (over_) {
      late = std::move(*stream);
    } else {
      stream_ = std::move(*stream);
    }
  }
  if (late == nullptr) pump_soon();
}

void PortConnection::write(std::string_view bytes) {
  if (bytes.empty()) return;
  {
    const MutexLock lock(mutex_);
    if (over_) return;
    input_.emplace_back(bytes);
    waiting_ += bytes.size();
    if (waiting_ > kMaxWaiting && !std::exchange(held_, true)) client_.hold(true);
  }
  pump_soon();
}

void PortConnection::close_write() {
  {
    const MutexLock lock(mutex_);
    if (over_) return;
    input_.emplace_back();
  }
  pump_soon();
}

void PortConnection::pump_soon() {
  {
    const MutexLock lock(mutex_);
    if (pumping_ || stream_ == nullptr || input_.empty()) return;
    pumping_ = true;
  }
  runtime_.executor.post([self = shared_from_this()] { self->pump(); });
}

void PortConnection::pump() {
  while (true) {
    std::string piece;
    std::shared_ptr<PortStream> stream;
    {
      const MutexLock lock(mutex_);
      if (stream_ == nullptr || input_.empty()) {
        pumping_ = false;
        return;
      }
      stream = stream_;
      piece = std::move(input_.front());
      input_.pop_front();
      waiting_ -= piece.size();
      if (held_ && waiting_ < kMaxWaiting / 2) {
        held_ = false;
        client_.hold(false);
      }
    }
    if (piece.empty()) {
      stream->close_write();
    } else if (!stream->write(piece).ok()) {
      // The other direction says how the connection ended.
      const MutexLock lock(mutex_);
      input_.clear();
      waiting_ = 0;
    }
  }
}

void PortConnection::receive(std::string_view bytes) {
  client_.data(bytes);
  if (client_.queued() <= kMaxWaiting) return;
  MutexLock lock(mutex_);
  room_.wait(lock,
             [this]() DIBS_REQUIRES(mutex_) { return over_ || client_.queued() <= kMaxWaiting; });
}

void PortConnection::drained() {
  const MutexLock lock(mutex_);
  room_.notify_all();
}

std::shared_ptr<PortStream> PortConnection::stop() {
  const MutexLock lock(mutex_);
  over_ = true;
  input_.clear();
  waiting_ = 0;
  if (std::exchange(held_, false)) client_.hold(false);
  room_.notify_all();
  return std::move(stream_);
}

void PortConnection::ended(const Result<>& outcome) {
  if (auto stream = stop()) {
    // The runtime is still inside a call to this; its object must not go away under it.
    runtime_.executor.post([stream = std::move(stream)] {});
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
  if (auto stream = stop()) {
    runtime_.executor.post([stream = std::move(stream)] { stream->abandon(); });
  }
}

}  // namespace dibs::node
