#pragma once
// A client's stream of either kind. Only for the .cc files of this folder.

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/client_callback.h>

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/mutex.h"
#include "rpc/channel.h"
#include "rpc/remote.h"

namespace dibs::rpc::internal {

/// Owned by its handle and by gRPC until OnDone.
class OpenStream : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  OpenStream(const std::string& method, const Metadata& metadata, StreamHandlers handlers);

  void start(grpc::GenericStub& stub, std::shared_ptr<OpenStream> self);
  /// `last`: nothing more will be written.
  void write(std::string_view message, bool last);
  /// No handler runs after it; it waits for one in another thread.
  void cancel();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  bool enter();
  void leave();
  void write_next();

  const std::string method_;
  grpc::ClientContext context_;
  StreamHandlers handlers_;
  grpc::ByteBuffer message_;
  grpc::ByteBuffer writing_;  // of the write under way
  std::shared_ptr<OpenStream> self_;
  Mutex mutex_;
  CondVar idle_;
  std::thread::id handler_thread_ DIBS_GUARDED_BY(mutex_);
  bool silent_ DIBS_GUARDED_BY(mutex_) = false;
  /// Nothing comes in any more, and nothing may be written.
  bool over_ DIBS_GUARDED_BY(mutex_) = false;
  bool busy_ DIBS_GUARDED_BY(mutex_) = false;  // a write is under way
  bool last_ DIBS_GUARDED_BY(mutex_) = false;
  std::deque<grpc::ByteBuffer> queue_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::rpc::internal
