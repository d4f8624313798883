#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/mutex.h"
#include "base/strings.h"
#include "rpc/grpc_bytes.h"
#include "rpc/server.h"
#include "rpc/workers.h"

namespace dibs::rpc {
namespace {

using internal::to_buffer;
using internal::to_bytes;
using internal::to_grpc;

constexpr auto kStopGrace = std::chrono::milliseconds(500);
/// For gRPC to close the listener and remove its socket, once calls have ended.
constexpr auto kEndGrace = std::chrono::milliseconds(100);

/// As Go's server words it.
Status unimplemented(const Methods& methods, const std::string& method) {
  const auto slash = method.rfind('/');
  if (slash == std::string::npos || slash == 0) {
    return {Code::unimplemented, cat("malformed method name: ", quoted(method))};
  }
  const std::string service = method.substr(0, slash + 1);
  const auto in_service = [&](const auto& handlers) {
    const auto found = handlers.lower_bound(service);
    return found != handlers.end() && found->first.compare(0, service.size(), service) == 0;
  };
  const std::string name = method.substr(1, slash - 1);
  if (in_service(methods.unary) || in_service(methods.streams)) {
    return {Code::unimplemented,
            cat("unknown method ", method.substr(slash + 1), " for service ", name)};
  }
  return {Code::unimplemented, cat("unknown service ", name)};
}

struct Shared {
  Methods methods;
  Workers workers;
  std::atomic<bool> stopping = false;
};

/// One call. Deleted by gRPC's OnDone, which comes only after Finish; the handler's thread calls
/// Finish last and does not touch the call after it.
class Call : public grpc::ServerGenericBidiReactor, public StreamWriter {
 public:
  Call(Shared& shared, const std::string& method) : shared_(shared) {
    if (const auto unary = shared.methods.unary.find(method); unary != shared.methods.unary.end()) {
      unary_ = &unary->second;
    } else if (const auto stream = shared.methods.streams.find(method);
               stream != shared.methods.streams.end()) {
      stream_ = &stream->second;
    } else {
      Finish(to_grpc(unimplemented(shared.methods, method)));
      return;
    }
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      Finish({grpc::StatusCode::INTERNAL, "the call has no message"});
      return;
    }
    if (!shared_.workers.post([this] { handle(); })) {
      Finish({grpc::StatusCode::UNAVAILABLE, "the server is stopping"});
    }
  }

  void OnWriteDone(bool ok) override {
    const MutexLock lock(mutex_);
    writing_ = false;
    if (!ok) gone_ = true;
    changed_.notify_all();
  }

  void OnCancel() override { leave(); }
  void OnDone() override { delete this; }

  bool write(std::string_view message) override {
    {
      MutexLock lock(mutex_);
      if (gone_ || shared_.stopping) return false;
      writing_ = true;
    }
    response_ = to_buffer(message);
    StartWrite(&response_);
    MutexLock lock(mutex_);
    changed_.wait(lock, [this]() DIBS_REQUIRES(mutex_) { return !writing_; });
    return !gone_ && !shared_.stopping;
  }

  bool wait_gone(Duration timeout) override {
    // Looks up now and then: stopping is the server's, not this call's.
    constexpr auto kLook = std::chrono::milliseconds(50);
    const auto until = std::chrono::steady_clock::now() + timeout;
    MutexLock lock(mutex_);
    while (!gone_ && !shared_.stopping) {
      const auto now = std::chrono::steady_clock::now();
      if (now >= until) return false;
      changed_.wait_until(lock,
                          std::min<std::chrono::steady_clock::time_point>(until, now + kLook));
    }
    return true;
  }

 private:
  void leave() {
    const MutexLock lock(mutex_);
    gone_ = true;
    changed_.notify_all();
  }

  void handle() {
    const std::string request = to_bytes(request_);
    if (unary_) {
      const Reply reply = (*unary_)(request);
      if (!reply.status.ok()) {
        Finish(to_grpc(reply.status));
        return;
      }
      response_ = to_buffer(reply.bytes);
      StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
      return;
    }
    Finish(to_grpc((*stream_)(request, *this)));
  }

  Shared& shared_;
  const UnaryHandler* unary_ = nullptr;
  const StreamHandler* stream_ = nullptr;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
  Mutex mutex_;
  CondVar changed_;
  bool gone_ DIBS_GUARDED_BY(mutex_) = false;
  bool writing_ DIBS_GUARDED_BY(mutex_) = false;
};

class Service : public grpc::CallbackGenericService {
 public:
  explicit Service(Shared& shared) : shared_(shared) {}
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    return new Call(shared_, context->method());
  }

 private:
  Shared& shared_;
};

/// gRPC's server and what its calls use. Lives until gRPC is done with it, which may be after
/// stop().
struct Core {
  explicit Core(Methods methods) : service(shared) { shared.methods = std::move(methods); }

  Shared shared;
  Service service;
  std::unique_ptr<grpc::Server> server;
  Mutex mutex;
  CondVar ended_condition;
  bool ended DIBS_GUARDED_BY(mutex) = false;
};

class UnixServer : public Server {
 public:
  explicit UnixServer(Methods methods) : core_(std::make_shared<Core>(std::move(methods))) {}
  ~UnixServer() override { stop(); }

  /// `port` is 0 where nobody could listen.
  Result<> listen(const std::string& address, int& port) {
    grpc::ServerBuilder builder;
    port = 0;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
    builder.SetMaxReceiveMessageSize(internal::kMaxMessage);
    builder.RegisterCallbackGenericService(&core_->service);
    core_->server = builder.BuildAndStart();
    if (!core_->server || port == 0) {
      return Error::internal(cat(address, ": cannot listen there"));
    }
    return success();
  }

  /// gRPC's end can take ten seconds: after an answer of a megabyte its poller sleeps in front of
  /// what closes the connection. So that is waited for only as long as handlers may need it.
  void stop() override {
    if (!core_ || !core_->server) return;
    core_->shared.stopping = true;
    std::thread([core = core_] {
      core->server->Shutdown(std::chrono::system_clock::now() + kStopGrace);
      core->server->Wait();
      core->server.reset();
      const MutexLock lock(core->mutex);
      core->ended = true;
      core->ended_condition.notify_all();
    }).detach();
    {
      MutexLock lock(core_->mutex);
      core_->ended_condition.wait_for(lock, kStopGrace + kEndGrace,
                                      [this]()
                                          DIBS_REQUIRES(core_->mutex) { return core_->ended; });
    }
    // No handler runs from here on, and none begins.
    core_->shared.workers.close();
    core_.reset();
  }

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace

Result<std::unique_ptr<Server>> serve_unix(const std::string& socket_path, Methods methods) {
  if (socket_path.size() > internal::kMaxPath) {
    return Error::invalid(cat(socket_path, ": longer than ", internal::kMaxPath,
                              " bytes, the most that the path of a socket may have"));
  }
  struct stat info {};
  if (::lstat(socket_path.c_str(), &info) == 0) {
    if (!S_ISSOCK(info.st_mode)) {
      return Error::already_exists(cat(socket_path, ": there already, and not a socket"));
    }
    ::unlink(socket_path.c_str());
  }
  const std::string folder = socket_path.substr(0, socket_path.rfind('/'));
  if (!folder.empty() && ::access(folder.c_str(), W_OK) != 0) {
    return Error::internal(cat(socket_path, ": ", folder, ": ", std::strerror(errno)));
  }
  internal::quiet_grpc();
  auto server = std::make_unique<UnixServer>(std::move(methods));
  int port = 0;
  DIBS_CHECK(server->listen(internal::unix_target(socket_path), port));
  return std::unique_ptr<Server>(std::move(server));
}

Result<std::unique_ptr<Server>> serve_tcp(int& port, Methods methods) {
  internal::quiet_grpc();
  auto server = std::make_unique<UnixServer>(std::move(methods));
  DIBS_CHECK(server->listen(cat("0.0.0.0:", port), port));
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace dibs::rpc
