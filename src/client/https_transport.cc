#include "client/https_transport.h"

#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/strings.h"
#include "net/http_client.h"
#include "runtime/blocking.h"

namespace dibs::client {
namespace {

// How long a token read from a file is used before the file is read again.
constexpr Duration kTokenAge = std::chrono::minutes(1);

/// One stream: shared by its handle, its thread and the transport.
struct OpenStream {
  StreamHandlers handlers;
  Mutex mutex;
  std::unique_ptr<net::ResponseStream> response DIBS_GUARDED_BY(mutex);  // for cancel()
  std::atomic<bool> cancelled = false;

  void cancel() {
    cancelled = true;
    const MutexLock lock(mutex);
    if (response != nullptr) response->cancel();
  }
};

class Handle final : public TransportStream {
 public:
  explicit Handle(std::shared_ptr<OpenStream> stream) : stream_(std::move(stream)) {}
  ~Handle() override { stream_->cancel(); }

 private:
  std::shared_ptr<OpenStream> stream_;
};

/// Shared with threads and tasks, which may outlive the transport by a moment.
struct Core {
  Core(Access what, runtime::Files& disk, runtime::Runtime& world, HttpsOptions how)
      : access(std::move(what)), files(disk), runtime(world), options(std::move(how)) {}

  Access access;
  runtime::Files& files;
  runtime::Runtime& runtime;
  HttpsOptions options;
  std::unique_ptr<net::HttpClient> http;

  Mutex mutex;
  CondVar changed;
  std::string token DIBS_GUARDED_BY(mutex);
  Duration token_read DIBS_GUARDED_BY(mutex){-1};
  std::set<std::shared_ptr<OpenStream>> streams DIBS_GUARDED_BY(mutex);
  std::size_t busy DIBS_GUARDED_BY(mutex) = 0;  // stream threads and asynchronous requests
  bool stopping DIBS_GUARDED_BY(mutex) = false;
  std::map<std::thread::id, std::thread> threads DIBS_GUARDED_BY(mutex);  // of open streams
  std::vector<std::thread> finished DIBS_GUARDED_BY(mutex);               // to be joined

  /// The calling stream thread is about to end.
  void retire() {
    const MutexLock lock(mutex);
    auto self = threads.find(std::this_thread::get_id());
    finished.push_back(std::move(self->second));
    threads.erase(self);
  }

  /// Joins the threads that have ended, so that what they held is gone.
  void reap() {
    std::vector<std::thread> ended;
    {
      const MutexLock lock(mutex);
      ended.swap(finished);
    }
    for (std::thread& thread : ended) thread.join();
  }

  std::string current_token() {
    if (access.token_file.empty()) return access.token;
    const Duration now = runtime.clock.steady();
    {
      const MutexLock lock(mutex);
      if (token_read.count() >= 0 && now - token_read < kTokenAge) return token;
    }
    auto text = files.read(access.token_file);
    const MutexLock lock(mutex);
    // A file that is being replaced leaves the token from before.
    if (text) token = trim(*text);
    if (token.empty()) token = access.token;
    token_read = now;
    return token;
  }

  void sign(Request& request) {
    request.write_body();
    auto& headers = request.headers;
    if (!headers.has("User-Agent")) headers.add("User-Agent", options.user_agent);
    if (!headers.has("Accept-Encoding")) headers.add("Accept-Encoding", "gzip");
    if (!headers.has("Authorization")) {
      if (const std::string bearer = current_token(); !bearer.empty()) {
        headers.add("Authorization", cat("Bearer ", bearer));
      } else if (!access.username.empty()) {
        headers.add("Authorization",
                    cat("Basic ", base64_encode(cat(access.username, ':', access.password))));
      }
    }
    if (!access.impersonate_user.empty()) {
      headers.set("Impersonate-User", access.impersonate_user);
      if (!access.impersonate_uid.empty()) headers.set("Impersonate-Uid", access.impersonate_uid);
      for (const auto& group : access.impersonate_groups) headers.add("Impersonate-Group", group);
    }
  }

  bool enter() {
    const MutexLock lock(mutex);
    if (stopping) return false;
    ++busy;
    return true;
  }

  void leave() {
    const MutexLock lock(mutex);
    --busy;
    changed.notify_all();
  }

  Result<Response> send(const Request& request) {
    DIBS_TRY(net::Response response, http->send(request, options.timeout));
    return Response(std::move(response));
  }

  Result<> read_stream(OpenStream& stream, Request request) {
    sign(request);
    // A stream is read as it comes, so it cannot be unpacked as a whole.
    request.headers.set("Accept-Encoding", "identity");
    DIBS_TRY(auto response, http->open_stream(request, options.timeout));
    net::ResponseStream* reader = response.get();
    {
      const MutexLock lock(stream.mutex);
      stream.response = std::move(response);
    }
    if (!stream.cancelled && stream.handlers.opened) {
      stream.handlers.opened({reader->status(), reader->headers(), ""});
    }
    while (!stream.cancelled) {
      DIBS_TRY(const std::string bytes, reader->read_some(options.stream_timeout));
      if (bytes.empty()) return success();
      if (!stream.cancelled && stream.handlers.data) stream.handlers.data(bytes);
    }
    return Error::unavailable("context canceled");
  }
};

class Https final : public HttpsTransport {
 public:
  explicit Https(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  ~Https() override {
    MutexLock lock(core_->mutex);
    core_->stopping = true;
    const auto streams = core_->streams;
    lock.unlock();
    for (const auto& stream : streams) stream->cancel();
    lock.lock();
    core_->changed.wait(lock, [this]() DIBS_REQUIRES(core_->mutex) { return core_->busy == 0; });
    lock.unlock();
    core_->reap();
  }

  Result<Response> send(Request request) override {
    core_->sign(request);
    runtime::Blocking blocking;
    return core_->send(request);
  }

  void send_async(Request request, std::function<void(Result<Response>)> done) override {
    if (!core_->enter()) return;
    core_->runtime.executor.post(
        [core = core_, request = std::move(request), done = std::move(done)]() mutable {
          core->sign(request);
          std::optional<runtime::Blocking> blocking(std::in_place);
          auto result = core->send(request);
          blocking.reset();
          core->leave();
          done(std::move(result));
        });
  }

  Result<> set_credential(const net::Credential& credential) override {
    net::TlsClientOptions tls = core_->access.tls;
    tls.certificate_pem = credential.certificate_pem;
    tls.key_pem = credential.key_pem;
    return core_->http->set_tls(tls);
  }

  std::unique_ptr<TransportStream> open_stream(Request request, StreamHandlers handlers) override {
    auto stream = std::make_shared<OpenStream>();
    stream->handlers = std::move(handlers);
    if (!core_->enter()) return std::make_unique<Handle>(std::move(stream));
    core_->reap();
    const MutexLock lock(core_->mutex);
    core_->streams.insert(stream);
    // Put into the list under the lock: the thread takes itself out of it when it ends.
    std::thread thread([core = core_, stream, request = std::move(request)]() mutable {
      const Result<> outcome = core->read_stream(*stream, std::move(request));
      auto ended = std::move(stream->handlers.ended);
      stream->handlers = {};
      if (!stream->cancelled && ended) ended(outcome);
      ended = nullptr;
      {
        const MutexLock lock(core->mutex);
        core->streams.erase(stream);
      }
      core->retire();
      core->leave();
    });
    core_->threads.emplace(thread.get_id(), std::move(thread));
    return std::make_unique<Handle>(std::move(stream));
  }

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace

Result<std::unique_ptr<HttpsTransport>> make_https_transport(const Access& access,
                                                             runtime::Files& files,
                                                             runtime::Runtime& runtime,
                                                             HttpsOptions options) {
  auto core = std::make_shared<Core>(access, files, runtime, std::move(options));
  net::ClientOptions http;
  http.url = access.server;
  http.tls = access.tls;
  DIBS_TRY(core->http, net::HttpClient::open(std::move(http)));
  return std::unique_ptr<HttpsTransport>(new Https(std::move(core)));
}

}  // namespace dibs::client
