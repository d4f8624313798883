#include <deque>

#include "base/mutex.h"
#include "client/serial.h"
#include "client/transport.h"
#include "runtime/blocking.h"

namespace dibs::client {
namespace {

/// Takes one answer, whole: a streamed one is collected.
class Collected {
 public:
  explicit Collected(std::function<void(Result<Response>)> done) : done_(std::move(done)) {}

  void begin(Response head) {
    const MutexLock lock(mutex_);
    response_ = std::move(head);
  }
  void add(std::string_view bytes) {
    const MutexLock lock(mutex_);
    response_.body.append(bytes);
  }
  void finish(Result<> outcome) {
    std::function<void(Result<Response>)> done;
    Response response;
    {
      const MutexLock lock(mutex_);
      done.swap(done_);
      response = std::move(response_);
    }
    if (!done) return;
    if (outcome) {
      done(std::move(response));
    } else {
      done(std::move(outcome).error());
    }
  }

 private:
  Mutex mutex_;
  Response response_ DIBS_GUARDED_BY(mutex_);
  std::function<void(Result<Response>)> done_ DIBS_GUARDED_BY(mutex_);
};

/// The shared side of a stream between the server's writer and the client's handlers.
struct Pipe : std::enable_shared_from_this<Pipe> {
  Pipe(runtime::Executor& executor, std::size_t bound)
      : serial(std::make_shared<Serial>(executor)), max_queued(bound) {}

  std::shared_ptr<Serial> serial;
  std::size_t max_queued;
  StreamHandlers handlers;  // used on `serial` only
  bool events = false;      // handlers.event is set
  Mutex mutex;
  std::size_t queued DIBS_GUARDED_BY(mutex) = 0;
  bool closed DIBS_GUARDED_BY(mutex) = false;  // the client is gone, or too slow
  bool finished DIBS_GUARDED_BY(mutex) = false;
  std::function<void()> drained DIBS_GUARDED_BY(mutex);
  std::function<void()> on_closed DIBS_GUARDED_BY(mutex);

  void deliver(SharedBytes piece) {
    serial->post([self = shared_from_this(), piece] {
      {
        const MutexLock lock(self->mutex);
        if (self->closed) return;
      }
      if (self->handlers.data) self->handlers.data(*piece);
      self->taken(piece->size());
    });
  }

  void deliver_event(std::string_view type, json::Value object, std::size_t size) {
    serial->post([self = shared_from_this(), type, object = std::move(object), size] {
      {
        const MutexLock lock(self->mutex);
        if (self->closed) return;
      }
      if (self->handlers.event) self->handlers.event(type, object);
      self->taken(size);
    });
  }

  void taken(std::size_t size) {
    std::function<void()> call;
    {
      const MutexLock lock(mutex);
      queued -= size;
      if (queued == 0 && !finished) call = drained;
    }
    if (call) call();
  }

  void end(Result<> outcome) {
    serial->post([self = shared_from_this(), outcome] {
      {
        const MutexLock lock(self->mutex);
        if (self->closed) return;
        self->closed = true;
        self->drained = nullptr;
        self->on_closed = nullptr;
      }
      auto handlers = std::move(self->handlers);
      if (handlers.ended) handlers.ended(outcome);
    });
  }

  /// From the client's side, or for it.
  void cancel() {
    std::function<void()> call;
    {
      const MutexLock lock(mutex);
      if (closed) return;
      closed = true;
      if (!finished) call = std::move(on_closed);
      on_closed = nullptr;
      drained = nullptr;
    }
    if (call) call();
  }
};

class PipeWriter final : public calls::EventStream {
 public:
  explicit PipeWriter(std::shared_ptr<Pipe> pipe) : pipe_(std::move(pipe)) {}

  ~PipeWriter() override {
    {
      const MutexLock lock(pipe_->mutex);
      if (pipe_->finished || pipe_->closed) return;
      pipe_->finished = true;
    }
    pipe_->end(Error::unavailable("unexpected EOF"));
  }

  bool write(SharedBytes piece) override {
    if (!enter(piece->size())) return false;
    pipe_->deliver(std::move(piece));
    return true;
  }

  bool write_event(std::string_view type, json::Value object, std::size_t size) override {
    if (!enter(size)) return false;
    pipe_->deliver_event(type, std::move(object), size);
    return true;
  }

  /// Counts what is to be queued. False when the reader is gone or too slow.
  bool enter(std::size_t size) {
    bool slow = false;
    {
      const MutexLock lock(pipe_->mutex);
      if (pipe_->closed || pipe_->finished) return false;
      slow = pipe_->queued + size > pipe_->max_queued;
      if (!slow) pipe_->queued += size;
    }
    if (slow) {
      // As on a connection: the reader is cut off and starts anew.
      pipe_->serial->post([pipe = pipe_] {
        auto handlers = std::move(pipe->handlers);
        pipe->cancel();
        if (handlers.ended) handlers.ended(Error::unavailable("connection closed: too slow"));
      });
      return false;
    }
    return true;
  }

  std::size_t queued() const override {
    const MutexLock lock(pipe_->mutex);
    return pipe_->queued;
  }

  void on_drained(std::function<void()> drained) override {
    {
      const MutexLock lock(pipe_->mutex);
      if (pipe_->closed || pipe_->finished) return;
      pipe_->drained = std::move(drained);
      if (pipe_->queued > 0) return;
    }
    pipe_->serial->post([pipe = pipe_] {
      std::function<void()> call;
      {
        const MutexLock lock(pipe->mutex);
        if (pipe->queued == 0) call = pipe->drained;
      }
      if (call) call();
    });
  }

  void on_closed(std::function<void()> closed) override {
    {
      const MutexLock lock(pipe_->mutex);
      if (pipe_->finished) return;
      if (!pipe_->closed) {
        pipe_->on_closed = std::move(closed);
        return;
      }
    }
    pipe_->serial->post(std::move(closed));
  }

  void finish() override {
    {
      const MutexLock lock(pipe_->mutex);
      if (pipe_->closed || pipe_->finished) return;
      pipe_->finished = true;
    }
    pipe_->end(success());
  }

 private:
  std::shared_ptr<Pipe> pipe_;
};

class PipeExchange final : public calls::Exchange {
 public:
  explicit PipeExchange(std::shared_ptr<Pipe> pipe) : pipe_(std::move(pipe)) {}

  ~PipeExchange() override {
    if (pipe_ != nullptr) respond({500, {}, "Internal Server Error\n"});
  }

  /// Who opens a stream takes events, but no other values.
  void answer(Response response) override { respond(std::move(response).take_http()); }

  void respond(net::Response response) override {
    const auto pipe = std::move(pipe_);
    if (pipe == nullptr) return;
    std::string body = std::exchange(response.body, std::string());
    open(*pipe, std::move(response));
    {
      const MutexLock lock(pipe->mutex);
      if (pipe->closed) return;
      pipe->finished = true;
      pipe->queued += body.size();
    }
    if (!body.empty()) pipe->deliver(share(std::move(body)));
    pipe->end(success());
  }

  std::shared_ptr<net::BodyStream> stream(net::Response head) override {
    const auto pipe = std::move(pipe_);
    head.body.clear();
    open(*pipe, std::move(head));
    return std::make_shared<PipeWriter>(pipe);
  }

  std::shared_ptr<calls::EventStream> stream_events(const net::Response& head) override {
    if (!pipe_->events) return nullptr;
    const auto pipe = std::move(pipe_);
    open(*pipe, head);
    return std::make_shared<PipeWriter>(pipe);
  }

  void upgrade(std::string, std::function<void(std::shared_ptr<net::WebSocket>)> ready) override {
    respond({400, {}, "Bad Request: no WebSocket inside a process\n"});
    ready(nullptr);
  }

 private:
  static void open(Pipe& pipe, net::Response head) {
    pipe.serial->post([self = pipe.shared_from_this(), head = std::move(head)] {
      if (self->handlers.opened) self->handlers.opened(head);
    });
  }

  std::shared_ptr<Pipe> pipe_;
};

class PipeHandle final : public TransportStream {
 public:
  explicit PipeHandle(std::shared_ptr<Pipe> pipe) : pipe_(std::move(pipe)) {}
  ~PipeHandle() override { pipe_->cancel(); }

 private:
  std::shared_ptr<Pipe> pipe_;
};

/// Answers on the caller's thread where the handler does, so that send() needs no executor.
class DirectExchange final : public calls::Exchange {
 public:
  DirectExchange(std::shared_ptr<Collected> collected, runtime::Executor& executor)
      : collected_(std::move(collected)), executor_(executor) {}

  ~DirectExchange() override {
    if (collected_ != nullptr) respond({500, {}, "Internal Server Error\n"});
  }

  void respond(net::Response response) override { answer(std::move(response)); }

  void answer(Response response) override {
    const auto collected = std::move(collected_);
    if (collected == nullptr) return;
    collected->begin(std::move(response));
    collected->finish(success());
  }

  std::shared_ptr<net::BodyStream> stream(net::Response head) override {
    auto pipe = std::make_shared<Pipe>(executor_, SIZE_MAX);
    const auto collected = std::move(collected_);
    head.body.clear();
    collected->begin(std::move(head));
    pipe->handlers = {.opened = nullptr,
                      .data = [collected](std::string_view bytes) { collected->add(bytes); },
                      .ended = [collected](Result<> outcome) { collected->finish(outcome); }};
    return std::make_shared<PipeWriter>(std::move(pipe));
  }

  /// Collected as bytes.
  std::shared_ptr<calls::EventStream> stream_events(const net::Response&) override {
    return nullptr;
  }

  void upgrade(std::string, std::function<void(std::shared_ptr<net::WebSocket>)> ready) override {
    respond({400, {}, "Bad Request: no WebSocket inside a process\n"});
    ready(nullptr);
  }

 private:
  std::shared_ptr<Collected> collected_;
  runtime::Executor& executor_;
};

class InProcessTransport final : public Transport {
 public:
  InProcessTransport(calls::Handler handler, runtime::Runtime& runtime, InProcessOptions options)
      : handler_(std::make_shared<const calls::Handler>(std::move(handler))),
        runtime_(runtime),
        options_(std::move(options)) {}

  Result<Response> send(Request request) override {
    struct Waiting {
      Mutex mutex;
      CondVar answered;
      std::optional<Result<Response>> result DIBS_GUARDED_BY(mutex);
    };
    auto waiting = std::make_shared<Waiting>();
    auto collected = std::make_shared<Collected>([waiting](Result<Response> result) {
      const MutexLock lock(waiting->mutex);
      waiting->result = std::move(result);
      waiting->answered.notify_all();
    });
    sign(request);
    (*handler_)(std::move(request), std::make_unique<DirectExchange>(collected, runtime_.executor));
    MutexLock lock(waiting->mutex);
    while (options_.pump && !waiting->result) {
      lock.unlock();
      const bool moved = options_.pump();
      lock.lock();
      if (!moved) break;
    }
    if (!options_.pump) {
      runtime::Blocking blocking;
      waiting->answered.wait_for(lock, options_.timeout, [&]() DIBS_REQUIRES(waiting->mutex) {
        return waiting->result.has_value();
      });
    }
    if (!waiting->result) return Error::timeout("context deadline exceeded");
    return std::move(*waiting->result);
  }

  void send_async(Request request, std::function<void(Result<Response>)> done) override {
    sign(request);
    auto& executor = runtime_.executor;
    auto collected =
        std::make_shared<Collected>([&executor, done = std::move(done)](Result<Response> result) {
          executor.post([done, result = std::move(result)]() mutable { done(std::move(result)); });
        });
    // A handler must not block, so the caller's thread is as good as any.
    (*handler_)(std::move(request), std::make_unique<DirectExchange>(collected, executor));
  }

  std::unique_ptr<TransportStream> open_stream(Request request, StreamHandlers handlers) override {
    sign(request);
    auto pipe = std::make_shared<Pipe>(runtime_.executor, options_.max_queued);
    pipe->handlers = std::move(handlers);
    pipe->events = pipe->handlers.event != nullptr;
    runtime_.executor.post([handler = handler_, request = std::move(request), pipe]() mutable {
      (*handler)(std::move(request), std::make_unique<PipeExchange>(pipe));
    });
    return std::make_unique<PipeHandle>(std::move(pipe));
  }

  bool protects_allocations() const override { return true; }
  json::Pool& trees() override { return options_.trees ? *options_.trees : Transport::trees(); }

 private:
  void sign(Request& request) const {
    request.peer.address = "in-process";
    request.peer.certificate = true;
    request.peer.common_name = options_.identity.user;
    request.peer.organizations = options_.identity.groups;
    if (!request.headers.has("Host")) request.headers.add("Host", "in-process");
  }

  // Shared with tasks that may outlive the transport.
  std::shared_ptr<const calls::Handler> handler_;
  runtime::Runtime& runtime_;
  InProcessOptions options_;
};

}  // namespace

std::unique_ptr<Transport> make_in_process_transport(calls::Handler handler,
                                                     runtime::Runtime& runtime,
                                                     InProcessOptions options) {
  return std::make_unique<InProcessTransport>(std::move(handler), runtime, std::move(options));
}

}  // namespace dibs::client
