#include "rpc/open_stream.h"

#include <utility>

#include "rpc/grpc_bytes.h"

namespace dibs::rpc::internal {

OpenStream::OpenStream(const std::string& method, const Metadata& metadata, StreamHandlers handlers)
    : method_(method), handlers_(std::move(handlers)) {
  for (const auto& [name, value] : metadata) context_.AddMetadata(name, value);
}

void OpenStream::start(grpc::GenericStub& stub, std::shared_ptr<OpenStream> self) {
  self_ = std::move(self);
  stub.PrepareBidiStreamingCall(&context_, method_, {}, this);
  // Until the last message came in: writes come from outside of gRPC.
  AddHold();
  StartRead(&message_);
  StartCall();
}

void OpenStream::write(std::string_view message, bool last) {
  {
    const MutexLock lock(mutex_);
    if (over_ || last_) return;
    last_ = last;
    queue_.push_back(to_buffer(message));
    if (busy_) return;
    busy_ = true;
    AddHold();
  }
  write_next();
  RemoveHold();
}

/// With `busy_` set, and while gRPC waits for something of this stream.
void OpenStream::write_next() {
  bool last = false;
  {
    const MutexLock lock(mutex_);
    if (over_ || queue_.empty()) {
      busy_ = false;
      return;
    }
    writing_ = std::move(queue_.front());
    queue_.pop_front();
    last = last_ && queue_.empty();
  }
  if (last) {
    StartWriteLast(&writing_, grpc::WriteOptions());
  } else {
    StartWrite(&writing_);
  }
}

void OpenStream::OnWriteDone(bool ok) {
  if (!ok) {
    const MutexLock lock(mutex_);
    queue_.clear();
  }
  write_next();
}

void OpenStream::cancel() {
  context_.TryCancel();
  MutexLock lock(mutex_);
  silent_ = true;
  if (handler_thread_ == std::this_thread::get_id()) return;
  idle_.wait(lock, [this]() DIBS_REQUIRES(mutex_) { return handler_thread_ == std::thread::id(); });
}

void OpenStream::OnReadDone(bool ok) {
  if (!ok) {
    {
      const MutexLock lock(mutex_);
      over_ = true;
    }
    RemoveHold();
    return;
  }
  const std::string bytes = to_bytes(message_);
  message_.Clear();
  if (enter()) {
    if (handlers_.message) handlers_.message(bytes);
    leave();
  }
  StartRead(&message_);
}

void OpenStream::OnDone(const grpc::Status& status) {
  const auto self = std::move(self_);
  if (enter()) {
    if (handlers_.ended) handlers_.ended(from_grpc(status));
    leave();
  }
}

bool OpenStream::enter() {
  const MutexLock lock(mutex_);
  if (silent_) return false;
  handler_thread_ = std::this_thread::get_id();
  return true;
}

void OpenStream::leave() {
  const MutexLock lock(mutex_);
  handler_thread_ = {};
  idle_.notify_all();
}

}  // namespace dibs::rpc::internal
