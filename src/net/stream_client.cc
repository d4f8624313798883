#include "net/stream_client.h"

#include <algorithm>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/strings.h"
#include "net/client_connection.h"
#include "net/duplex.h"
#include "net/message_parser.h"

namespace dibs::net {
namespace {

constexpr std::size_t kReadSize = 32 * 1024;
constexpr std::size_t kMaxHead = 1024 * 1024;
// Both ends of a stream may have reasons to wait.
constexpr Duration kPatience = std::chrono::hours(4);
// A side of a splice with more than this waiting holds the other up.
constexpr std::size_t kSpliceBound = 1024 * 1024;
// What a client that is gone has sent must be taken in this time.
constexpr Duration kSpliceEnd = std::chrono::seconds(5);

class ParsedBody final : public BodySource {
 public:
  ParsedBody(std::shared_ptr<ByteStream> stream, std::unique_ptr<ResponseParser> parser,
             std::string rest, bool complete)
      : stream_(std::move(stream)), state_(std::make_shared<State>()) {
    state_->parser = std::move(parser);
    state_->rest = std::move(rest);
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

}  // namespace

struct StreamClient::Impl {
  std::shared_ptr<EventLoop> loop = std::make_shared<EventLoop>();
  std::vector<std::shared_ptr<Duplex>> open;  // on the io thread only
  std::vector<char> scratch = std::vector<char>(64 * 1024);
  bool closed = false;  // on the io thread only
  std::once_flag begun;
  std::thread thread;

  void begin() {
    std::call_once(begun, [this] {
      loop->set_tick(std::chrono::milliseconds(500), [this] {
        const auto all = open;
        for (const auto& duplex : all) duplex->on_tick(loop->now());
      });
      thread = std::thread([this] { loop->run(); });
    });
  }

  std::shared_ptr<ByteStream> adopt(std::unique_ptr<Channel> channel, std::string early) {
    begin();
    const auto duplex =
        std::make_shared<Duplex>(loop, std::move(channel), std::move(early), scratch,
                                 Duplex::Limits{.write_timeout = kPatience});
    loop->post([this, duplex] {
      if (closed) return duplex->close();
      open.push_back(duplex);
      duplex->begin("", [this, raw = duplex.get()] {
        std::erase_if(open, [&](const auto& other) { return other.get() == raw; });
      });
    });
    return make_byte_stream(duplex);
  }
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
  impl_->loop->post([impl = impl_.get()] {
    impl->closed = true;
    const auto all = impl->open;
    for (const auto& duplex : all) duplex->close();
  });
}

Result<StreamAnswer> StreamClient::open(const std::string& url_text,
                                        std::shared_ptr<TlsContext> tls, const Request& request,
                                        Duration timeout, Reach reach) {
  const Deadline deadline = std::chrono::steady_clock::now() + timeout;
  DIBS_TRY(const Url url, Url::parse(url_text));
  DIBS_TRY(const std::string head, request_head(request, url));
  DIBS_TRY(auto connection, ClientConnection::dial(url, std::move(tls), deadline, reach));
  auto sent = connection->write(head, deadline);
  if (sent.ok()) sent = connection->write(request.body, deadline);
  auto parser = std::make_unique<ResponseParser>(
      ParseLimits{.max_header_bytes = kMaxHead,
                  .max_body = std::numeric_limits<std::uint64_t>::max()},
      request.method == "HEAD");
  std::string rest;
  Parsed parsed = Parsed::need_more;
  while (parsed == Parsed::need_more) {
    char buffer[kReadSize];
    auto got = connection->read(buffer, sizeof buffer, deadline);
    if (!got.ok() || *got == 0) {
      if (!sent.ok()) return sent.error();
      return got.ok() ? Error::unavailable("EOF") : got.error();
    }
    rest.append(buffer, *got);
    std::size_t used = 0;
    parsed = parser->feed(rest, used);
    rest.erase(0, used);
  }
  if (parsed != Parsed::head && parsed != Parsed::complete) {
    return Error::unavailable("malformed HTTP response");
  }
  StreamAnswer out;
  out.head.status = parser->response().status;
  out.head.headers = parser->response().headers;
  std::string early;
  auto channel = connection->release(early);
  if (out.head.status == 101) {
    out.upgraded = impl_->adopt(std::move(channel), rest + early);
    return out;
  }
  // What is left is fed from the io thread, even when the body is complete already: so the stream
  // begins with at least one byte that nobody looks at.
  const bool complete = parsed == Parsed::complete;
  std::string begin = complete ? std::string(1, '\0') : rest + early;
  out.body = std::make_shared<ParsedBody>(impl_->adopt(std::move(channel), std::move(begin)),
                                          std::move(parser), std::string(), complete);
  return out;
}

Result<std::string> read_whole(BodySource& body, std::size_t limit, Duration timeout) {
  struct State {
    Mutex mutex;
    std::string text DIBS_GUARDED_BY(mutex);
    std::promise<bool> ended;
  };
  const auto state = std::make_shared<State>();
  auto ended = state->ended.get_future();
  body.start(
      [state, limit](std::string piece) {
        const MutexLock lock(state->mutex);
        state->text.append(piece, 0, limit - std::min(limit, state->text.size()));
      },
      [state](bool whole) { state->ended.set_value(whole); });
  if (ended.wait_for(timeout) != std::future_status::ready) {
    return Error::timeout("context deadline exceeded");
  }
  if (!ended.get()) return Error::unavailable("unexpected EOF");
  const MutexLock lock(state->mutex);
  return std::move(state->text);
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
