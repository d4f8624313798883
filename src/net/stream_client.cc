#include "net/stream_client.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <vector>

#include "base/strings.h"
#include "net/client_connection.h"
#include "net/duplex.h"
#include "net/lookups.h"
#include "net/opening.h"

namespace dibs::net {
namespace {

// Both ends of a stream may have reasons to wait.
constexpr Duration kPatience = std::chrono::hours(4);
// A side of a splice with more than this waiting holds the other up.
constexpr std::size_t kSpliceBound = 1024 * 1024;
// What a client that is gone has sent must be taken in this time.
constexpr Duration kSpliceEnd = std::chrono::seconds(5);

using Opened = std::function<void(Result<StreamAnswer>)>;

class ParsedBody final : public BodySource {
 public:
  ParsedBody(std::shared_ptr<ByteStream> stream, std::unique_ptr<ResponseParser> parser,
             bool complete)
      : stream_(std::move(stream)), state_(std::make_shared<State>()) {
    state_->parser = std::move(parser);
    state_->complete = complete;
  }
  ~ParsedBody() override { stream_->close(); }

  void start(std::function<void(std::string)> data, std::function<void(bool)> ended) override {
    state_->data = std::move(data);
    state_->ended = std::move(ended);
    stream_->start([state = state_](std::string_view bytes) { state->feed(bytes); },
                   [state = state_] { state->end(); });
  }

  void hold(bool held) override { stream_->hold(held); }
  void expire(Duration span) override { stream_->expire(span); }

 private:
  /// On the io thread only.
  struct State {
    void feed(std::string_view bytes) {
      if (complete) return finish(true);
      rest.append(bytes);
      std::size_t used = 0;
      const Parsed parsed = parser->feed(rest, used);
      rest.erase(0, used);
      deliver();
      if (parsed == Parsed::need_more || parsed == Parsed::head) return;
      finish(parsed == Parsed::complete);
    }
    void end() {
      if (done) return;
      const bool whole = complete || parser->feed_end() == Parsed::complete;
      deliver();
      finish(whole);
    }
    void deliver() {
      std::string& body = parser->response().body;
      if (body.empty() || done) return;
      data(std::exchange(body, std::string()));
    }
    void finish(bool whole) {
      if (std::exchange(done, true)) return;
      const auto last = std::move(ended);
      data = nullptr;
      ended = nullptr;
      last(whole);
    }

    std::unique_ptr<ResponseParser> parser;
    std::string rest;
    bool complete = false;
    bool done = false;
    std::function<void(std::string)> data;
    std::function<void(bool)> ended;
  };

  std::shared_ptr<ByteStream> stream_;
  std::shared_ptr<State> state_;
};

Error closing() { return Error::unavailable("the client is closed"); }

}  // namespace

struct StreamClient::Impl {
  std::shared_ptr<EventLoop> loop = std::make_shared<EventLoop>();
  // These on the io thread only.
  std::unordered_set<std::shared_ptr<Opening>> opening;
  std::unordered_set<std::shared_ptr<Duplex>> open;
  std::vector<char> scratch = std::vector<char>(64 * 1024);
  bool closed = false;

  std::once_flag begun;
  std::thread thread;
  Lookups lookups;

  void begin() {
    std::call_once(begun, [this] {
      loop->set_tick(std::chrono::milliseconds(500), [this] {
        for (const auto& one : std::vector(opening.begin(), opening.end())) {
          one->on_tick(loop->now());
        }
        for (const auto& one : std::vector(open.begin(), open.end())) one->on_tick(loop->now());
      });
      thread = std::thread([this] { loop->run(); });
    });
  }

  /// A server leaves a quarter of all descriptors free (http_server.cc): of these most are for
  /// streams.
  bool is_full() const { return opening.size() + open.size() >= descriptor_limit() / 16 * 3; }

  void close() {
    closed = true;
    for (const auto& one : std::vector(opening.begin(), opening.end())) one->fail(closing());
    for (const auto& one : std::vector(open.begin(), open.end())) one->close();
  }

  static void connect(Opening& one, Lookups::Addresses addresses) {
    if (!addresses.ok()) return one.fail(std::move(addresses).error());
    one.begin(std::move(addresses).value());
  }

  /// The address is known, or is found out beside the io thread.
  void dial(const std::shared_ptr<Opening>& one, Reach reach) {
    if (!needs_lookup(one->url())) return connect(*one, resolve(one->url(), reach));
    // The look-up may outlast the client, and must not hold anything of it.
    const std::weak_ptr<Opening> weak = one;
    lookups.find(one->url(), reach, [loop = loop, weak](const Lookups::Addresses& addresses) {
      loop->post([weak, addresses] {
        if (const auto opening = weak.lock()) connect(*opening, addresses);
      });
    });
  }

  std::shared_ptr<ByteStream> adopt(std::unique_ptr<Channel> channel, std::string early) {
    const auto duplex =
        std::make_shared<Duplex>(loop, std::move(channel), std::move(early), scratch,
                                 Duplex::Limits{.write_timeout = kPatience});
    open.insert(duplex);
    duplex->begin("", [this, raw = duplex.get()] { open.erase(raw->shared_from_this()); });
    return make_byte_stream(duplex);
  }

  StreamAnswer answer(Reply reply) {
    StreamAnswer out;
    out.head.status = reply.parser->response().status;
    out.head.headers = reply.parser->response().headers;
    if (out.head.status == 101) {
      out.upgraded = adopt(std::move(reply.channel), std::move(reply.rest));
      return out;
    }
    // What is left is fed to the parser by the stream, even when the body is complete already: so
    // it begins with at least one byte that nobody looks at.
    if (reply.complete) reply.rest = std::string(1, '\0');
    out.body = std::make_shared<ParsedBody>(adopt(std::move(reply.channel), std::move(reply.rest)),
                                            std::move(reply.parser), reply.complete);
    return out;
  }
};

/// Touches the client on the loop alone, which ends before it.
class StreamClient::Pending final : public StreamRequest,
                                    public std::enable_shared_from_this<Pending> {
 public:
  Pending(Impl& impl, Result<Opening::Task> task, Reach reach)
      : impl_(impl), loop_(impl.loop), task_(std::move(task)), reach_(reach) {}

  void start(Opened opened) override {
    const auto begin = [self = shared_from_this(), opened] { self->begin(opened); };
    if (!loop_->post(begin)) opened(closing());
  }

  void cancel() override {
    loop_->post([self = shared_from_this()] {
      self->cancelled_ = true;
      if (const auto opening = self->opening_.lock()) opening->fail(canceled());
    });
  }

 private:
  static Error canceled() { return Error::unavailable("context canceled"); }

  void begin(const Opened& opened) {
    if (impl_.closed) return opened(closing());
    if (cancelled_) return opened(canceled());
    if (!task_.ok()) return opened(task_.error());
    if (impl_.is_full()) return opened(Error::unavailable("dial tcp: too many open files"));
    const auto opening =
        std::make_shared<Opening>(loop_, std::move(task_).value(), impl_.scratch,
                                  [this, self = shared_from_this(), opened](Result<Reply> reply) {
                                    impl_.opening.erase(opening_.lock());
                                    if (!reply.ok()) return opened(std::move(reply).error());
                                    opened(impl_.answer(std::move(reply).value()));
                                  });
    opening_ = opening;
    impl_.opening.insert(opening);
    impl_.dial(opening, reach_);
  }

  Impl& impl_;
  const std::shared_ptr<EventLoop> loop_;
  // These on the io thread only.
  Result<Opening::Task> task_;
  const Reach reach_;
  bool cancelled_ = false;
  std::weak_ptr<Opening> opening_;
};

StreamClient::StreamClient() : impl_(std::make_unique<Impl>()) {}

StreamClient::~StreamClient() {
  close();
  // Somebody who began after close() would be waited for, too.
  std::call_once(impl_->begun, [] {});
  if (!impl_->thread.joinable()) return;
  impl_->loop->stop();
  impl_->thread.join();
  impl_->loop->close();
}

void StreamClient::close() {
  impl_->loop->post([impl = impl_.get()] { impl->close(); });
}

std::shared_ptr<StreamRequest> StreamClient::request(const std::string& url,
                                                     std::shared_ptr<TlsContext> tls,
                                                     const Request& request, Duration timeout,
                                                     Reach reach) {
  return request_at({}, 0, url, std::move(tls), request, timeout, reach);
}

std::shared_ptr<StreamRequest> StreamClient::request_at(const std::string& host, std::uint16_t port,
                                                        const std::string& url,
                                                        std::shared_ptr<TlsContext> tls,
                                                        const Request& request, Duration timeout,
                                                        Reach reach) {
  const auto task = [&]() -> Result<Opening::Task> {
    Opening::Task out;
    DIBS_TRY(out.url, Url::parse(url));
    DIBS_TRY(out.message, request_head(request, out.url));
    out.url.at_host = host;
    out.url.at_port = port;
    out.message.append(request.body);
    out.tls = std::move(tls);
    out.to_head = request.method == "HEAD";
    out.deadline = EventLoop::steady_ms() +
                   std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
    return out;
  };
  impl_->begin();
  return std::make_shared<Pending>(*impl_, task(), reach);
}

void read_whole(std::shared_ptr<BodySource> body, std::size_t limit, Duration timeout,
                std::function<void(Result<std::string>)> done) {
  // On the io thread only; the body lives until its end has been told.
  struct State {
    std::string text;
    std::shared_ptr<BodySource> body;
  };
  const auto state = std::make_shared<State>();
  state->body = std::move(body);
  const std::shared_ptr<BodySource> source = state->body;
  source->start(
      [state, limit](std::string piece) {
        state->text.append(piece, 0, limit - std::min(limit, state->text.size()));
      },
      [state, done = std::move(done)](bool whole) {
        const auto last = std::move(state->body);
        if (!whole) return done(Error::unavailable("unexpected EOF"));
        done(std::move(state->text));
      });
  source->expire(timeout);
}

void splice(std::shared_ptr<ByteStream> client, std::shared_ptr<ByteStream> server) {
  const auto join = [](const std::shared_ptr<ByteStream>& from,
                       const std::shared_ptr<ByteStream>& to, bool to_server) {
    to->on_drained([from] { from->hold(false); });
    from->start(
        [from, to](std::string_view bytes) {
          to->write(std::string(bytes));
          if (to->queued() <= kSpliceBound) return;
          from->hold(true);
          // It may have drained meanwhile, with nobody left to tell.
          if (to->queued() == 0) from->hold(false);
        },
        [to, to_server] {
          to->close();
          if (to_server) to->expire(kSpliceEnd);
        });
  };
  join(client, server, true);
  join(server, client, false);
}

}  // namespace dibs::net
