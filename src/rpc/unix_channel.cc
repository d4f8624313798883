#include <fcntl.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <unistd.h>

#include <chrono>
#include <set>
#include <thread>

#include "base/mutex.h"
#include "base/strings.h"
#include "rpc/channel.h"
#include "rpc/grpc_bytes.h"
#include "rpc/open_stream.h"
#include "runtime/blocking.h"

namespace dibs::rpc {
namespace {

using internal::from_grpc;
using internal::OpenStream;
using internal::probe_socket;
using internal::to_buffer;
using internal::to_bytes;

std::chrono::system_clock::time_point deadline_after(Duration duration) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(duration);
}

/// Follows one channel's state. Shared by the channel and the queue, which has it until the next
/// event after the end.
struct Watch {
  std::shared_ptr<grpc::Channel> channel;
  std::function<void(bool)> changed;
  grpc_connectivity_state last = GRPC_CHANNEL_IDLE;
  bool told = false;
  Mutex mutex;
  CondVar idle;
  bool ended DIBS_GUARDED_BY(mutex) = false;
  /// Runs `changed`, which may end the watch itself.
  std::thread::id teller DIBS_GUARDED_BY(mutex);
};
using SharedWatch = std::shared_ptr<Watch>;

/// One thread for all channels of the process: gRPC tells changes of state only through a queue.
/// It begins with the first watch and stays, because gRPC itself keeps threads too.
class StateWatcher {
 public:
  static StateWatcher& instance() {
    static StateWatcher* const watcher = new StateWatcher;  // never destroyed: its thread uses it
    return *watcher;
  }

  void start(const SharedWatch& watch) {
    look(*watch);
    ask(std::make_unique<SharedWatch>(watch));
  }

  /// `changed` is not called after it.
  static void end(Watch& watch) {
    MutexLock lock(watch.mutex);
    watch.ended = true;
    if (watch.teller == std::this_thread::get_id()) return;
    watch.idle.wait(lock,
                    [&]() DIBS_REQUIRES(watch.mutex) { return watch.teller == std::thread::id(); });
  }

 private:
  // Bounds how long a channel outlives its end; nothing else happens then.
  static constexpr auto kLook = std::chrono::seconds(2);

  StateWatcher() {
    std::thread([this] { run(); }).detach();
  }

  void ask(std::unique_ptr<SharedWatch> tag) {
    Watch& watch = **tag;
    watch.channel->NotifyOnStateChange(watch.last, std::chrono::system_clock::now() + kLook,
                                       &queue_, tag.release());
  }

  static bool look(Watch& watch) {
    MutexLock lock(watch.mutex);
    if (watch.ended) return false;
    // Asking with `true` also leaves IDLE, where a lost connection ends up.
    watch.last = watch.channel->GetState(true);
    const bool connected = watch.last == GRPC_CHANNEL_READY;
    if (connected == watch.told) return true;
    watch.told = connected;
    watch.teller = std::this_thread::get_id();
    lock.unlock();
    watch.changed(connected);
    lock.lock();
    watch.teller = {};
    watch.idle.notify_all();
    return !watch.ended;
  }

  void run() {
    void* tag = nullptr;
    bool changed = false;
    while (queue_.Next(&tag, &changed)) {
      std::unique_ptr<SharedWatch> watch(static_cast<SharedWatch*>(tag));
      if (look(**watch)) ask(std::move(watch));
    }
  }

  grpc::CompletionQueue queue_;
};

class StreamHandle : public Stream {
 public:
  explicit StreamHandle(std::shared_ptr<OpenStream> stream) : stream_(std::move(stream)) {}
  ~StreamHandle() override { stream_->cancel(); }

 private:
  std::shared_ptr<OpenStream> stream_;
};

class UnixChannel : public Channel {
 public:
  explicit UnixChannel(const std::string& path) : path_(path), dialled_(path) {
    if (path.size() > internal::kMaxPath) shorten();
  }

  ~UnixChannel() override {
    if (watch_) StateWatcher::end(*watch_);
    channel_.reset();
    if (folder_ >= 0) ::close(folder_);
  }

  Reply call(const std::string& method, std::string_view request, Duration deadline) override {
    if (dialled_.size() > internal::kMaxPath) return unreachable(probe_socket(dialled_));
    const auto until = deadline_after(deadline);
    Reply reply = call_once(method, request, until, false);
    if (reply.status.code != Code::unavailable) return reply;
    if (const std::string why = probe(); !why.empty()) return unreachable(why);
    // Somebody listens: the channel was waiting out an earlier failure.
    if (reply.status.message.find("failed to connect") == std::string::npos) return reply;
    grpc::experimental::ChannelResetConnectionBackoff(channel().get());
    return call_once(method, request, until, true);
  }

  void cancel_calls() override {
    const MutexLock lock(mutex_);
    cancelled_ = true;
    for (grpc::ClientContext* call : calls_) call->TryCancel();
  }

  std::unique_ptr<Stream> open_stream(const std::string& method, std::string_view request,
                                      StreamHandlers handlers) override {
    auto stream = std::make_shared<OpenStream>(method, Metadata(), std::move(handlers));
    grpc::GenericStub stub(channel());
    stream->start(stub, stream);
    stream->write(request, true);
    return std::make_unique<StreamHandle>(stream);
  }

  void watch_connection(std::function<void(bool connected)> changed) override {
    watch_ = std::make_shared<Watch>();
    watch_->channel = channel();
    watch_->changed = std::move(changed);
    StateWatcher::instance().start(watch_);
  }

 private:
  /// A socket that was made in a container, by a shorter way, may lie deeper here than an address
  /// has room for: it is dialled through its folder.
  void shorten() {
    const std::size_t slash = path_.rfind('/');
    if (slash == std::string::npos) return;
    folder_ = ::open(path_.substr(0, slash).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder_ < 0) return;
    dialled_ = cat("/proc/self/fd/", folder_, path_.substr(slash));
  }

  /// As probe_socket(), with the path that others know.
  std::string probe() const {
    std::string why = probe_socket(dialled_);
    const std::size_t at = dialled_ == path_ ? std::string::npos : why.find(dialled_);
    return at == std::string::npos ? why : why.replace(at, dialled_.size(), path_);
  }

  static Reply unreachable(const std::string& why) {
    return {{Code::unavailable,
             cat("connection error: desc = \"transport: Error while dialing: ", why, "\"")},
            {}};
  }

  Reply call_once(const std::string& method, std::string_view request,
                  std::chrono::system_clock::time_point until, bool wait) {
    grpc::ClientContext context;
    context.set_deadline(until);
    context.set_wait_for_ready(wait);
    const grpc::ByteBuffer sent = to_buffer(request);
    grpc::ByteBuffer received;
    grpc::GenericStub stub(channel());
    {
      const MutexLock lock(mutex_);
      if (cancelled_) return {{Code::cancelled, "the caller ends"}, {}};
      calls_.insert(&context);
    }
    Mutex mutex;
    CondVar answered;
    bool done = false;
    grpc::Status status;
    stub.UnaryCall(&context, method, {}, &sent, &received, [&](grpc::Status s) {
      const MutexLock lock(mutex);
      status = std::move(s);
      done = true;
      answered.notify_one();
    });
    const runtime::Blocking blocking;
    MutexLock lock(mutex);
    answered.wait(lock, [&] { return done; });
    {
      const MutexLock over(mutex_);
      calls_.erase(&context);
    }
    Reply reply{from_grpc(status), {}};
    if (!reply.status.ok()) return reply;
    if (received.Length() > internal::kMaxMessage) {
      reply.status = {Code::resource_exhausted,
                      cat("grpc: received message larger than max (", received.Length(), " vs. ",
                          internal::kMaxMessage, ")")};
      return reply;
    }
    reply.bytes = to_bytes(received);
    return reply;
  }

  std::shared_ptr<grpc::Channel> channel() {
    const MutexLock lock(mutex_);
    if (channel_) return channel_;
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(internal::kMaxRead);
    // A socket answers at once or not at all, so that trying again soon costs little.
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
    // Channels to a path do not share a connection: a driver that came anew is a new peer.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    channel_ = grpc::CreateCustomChannel(internal::unix_target(dialled_),
                                         grpc::InsecureChannelCredentials(), arguments);
    return channel_;
  }

  const std::string path_;
  std::string dialled_;
  int folder_ = -1;
  Mutex mutex_;
  std::shared_ptr<grpc::Channel> channel_ DIBS_GUARDED_BY(mutex_);
  std::set<grpc::ClientContext*> calls_ DIBS_GUARDED_BY(mutex_);
  bool cancelled_ DIBS_GUARDED_BY(mutex_) = false;
  SharedWatch watch_;
};

}  // namespace

std::unique_ptr<Channel> connect_unix(const std::string& socket_path) {
  internal::quiet_grpc();
  return std::make_unique<UnixChannel>(socket_path);
}

}  // namespace dibs::rpc
