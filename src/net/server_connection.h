#pragma once
// One connection of the HTTP server: a state machine on its io thread. Private to net.
//
//   handshake ─▶ reading ─▶ handling ─▶ writing ──┐
//                  ▲            ├─▶ streaming ────┤
//                  │            └─▶ upgraded      │
//                  └──────────────────────────────┴─▶ lingering ─▶ closed
//
// A client that speaks HTTP/2 goes from the handshake to `http2`, where an Http2Session has the
// streams; what they are called by is a number, 0 where there is but one.
//
// handling: the exchange is with the handler. upgraded: a Duplex has the channel. lingering: the
// answer is out, and the client may still be sending what nobody will read.
//
// Every method runs on the io thread; what other threads call is in server_exchange.cc and posts
// here.

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "net/channel.h"
#include "net/duplex.h"
#include "net/event_loop.h"
#include "net/http.h"
#include "net/http2_session.h"
#include "net/http_server.h"
#include "net/message_parser.h"

namespace dibs::net {

class Connection;

// A body up to this goes out together with its head in one write; a longer one in slices, so that a
// large list is not held a second time in encrypted form.
inline constexpr std::size_t kGathered = 64 * 1024;
inline constexpr std::size_t kSlice = 256 * 1024;

inline bool has_no_body(int status) { return status / 100 == 1 || status == 204 || status == 304; }

/// A header's value on one line: a break in it would let whoever chose the value write headers of
/// his own.
void append_value(std::string& out, std::string_view value);

/// What all connections of a server share.
struct ServerShared {
  ServerOptions options;
  Handler handler;
  std::atomic<bool> draining = false;
  std::atomic<std::uint64_t> accepted = 0, refused = 0, shed = 0, open = 0, requests = 0,
                             bad_requests = 0, timeouts = 0, slow_clients = 0;
  Mutex mutex;      // so that nobody misses the change of an atomic
  CondVar changed;  // open became 0
  std::unordered_map<std::string, std::size_t> per_address DIBS_GUARDED_BY(mutex);
};

/// One io thread with its connections.
struct ServerWorker {
  explicit ServerWorker(ServerShared& server);
  void add(std::shared_ptr<Connection> connection);
  void remove(Connection& connection);
  void tick();
  void drain_all();
  void close_all();
  /// Closes the connection that has waited for longest for its client to ask, of those from that
  /// address ("": from anywhere). False where none waits.
  bool shed(const std::string& address);
  /// The Date header of this second.
  const std::string& date();

  ServerShared& shared;
  std::shared_ptr<EventLoop> loop;
  std::thread thread;
  std::atomic<std::size_t> count = 0;
  std::vector<std::shared_ptr<Connection>> connections;
  std::vector<char> scratch;  // one read's bytes
  std::string assembly;       // one write's bytes
  std::string date_text;
  std::int64_t date_second = -1;
};

/// The queue between a BodyStream and its connection.
struct StreamCore {
  Mutex mutex;
  std::deque<SharedBytes> queue DIBS_GUARDED_BY(mutex);
  /// The queue and what the socket has not taken yet.
  std::size_t queued DIBS_GUARDED_BY(mutex) = 0;
  /// The connection will look at the queue.
  bool scheduled DIBS_GUARDED_BY(mutex) = false;
  bool finished DIBS_GUARDED_BY(mutex) = false;
  bool closed DIBS_GUARDED_BY(mutex) = false;
  std::function<void()> drained DIBS_GUARDED_BY(mutex);
  std::function<void()> on_closed DIBS_GUARDED_BY(mutex);
};

using UpgradeReady = std::function<void(std::shared_ptr<ByteStream>)>;

class Connection final : public EventLoop::Source,
                         public Http2Session::Owner,
                         public std::enable_shared_from_this<Connection> {
 public:
  /// `host` is what connections are counted by.
  Connection(ServerWorker& worker, std::unique_ptr<Channel> channel, bool tls, std::string address,
             std::string host);
  ~Connection() override;

  void begin();
  void on_ready(EventLoop::Ready ready) override;
  void on_tick(std::int64_t now);
  void drain();
  void close();
  /// A request has begun to come and is not answered to its end.
  bool is_busy() const;

  const std::string& host() const { return host_; }
  /// For how many milliseconds the client has been idle, or slow to send its request; -1: it waits
  /// for an answer, or has only begun to ask.
  std::int64_t waited(std::int64_t now) const;

  EventLoop& loop() { return *loop_; }
  std::size_t max_queued() const { return max_queued_; }

  // Answers, to the request of a stream.
  void respond(std::int32_t stream, Response response);
  void begin_stream(std::int32_t stream, Response head, std::shared_ptr<StreamCore> core);
  void pump_stream(std::int32_t stream);
  void abort_stream(std::int32_t stream, bool too_slow);
  void upgrade(std::int32_t stream, std::string protocol,
               std::function<void(std::shared_ptr<WebSocket>)> ready);
  void upgrade_to(std::int32_t stream, Response head, const UpgradeReady& ready);
  void on_gone(std::int32_t stream, std::function<void()> gone);

  std::size_t index = 0;  // in its worker's list

 private:
  enum class State : std::uint8_t {
    handshake,
    reading,
    handling,
    writing,
    streaming,
    upgraded,
    http2,
    lingering,
    closed
  };

  void advance();
  bool step();
  bool step_handshake();
  bool step_reading();
  bool step_writing();
  bool step_stream();
  bool step_http2();
  bool step_lingering();

  // Of the Http2Session.
  void dispatch(std::int32_t stream, Request request) override;
  std::string date() override;
  void count_bad_request() override { ++worker_.shared.bad_requests; }
  void count_slow_client() override { ++worker_.shared.slow_clients; }
  void respond(Response response);
  /// Answers an upgrade that HTTP/2 has no way for.
  void refuse_upgrade(std::int32_t stream);
  /// Who sends it, as far as the connection knows.
  void sign(Request& request) const;

  bool parse(std::string_view bytes, bool from_input);
  /// False when the request was turned away by its head.
  bool check_head();
  void dispatch();
  void refuse(int status, std::string_view text);
  void refuse_body();
  void append_head(std::string& out, int status, const Headers& headers, bool chunked,
                   const std::size_t* content_length);
  void finish_response();
  void begin_linger();
  /// Keeps the deadline for progress while output waits. False when the connection ended.
  bool flush();
  void close_stream();
  void tell_gone();
  void set_deadline(Duration span);
  bool certificate_current() const;

  ServerWorker& worker_;
  const ServerOptions& options_;
  std::shared_ptr<EventLoop> loop_;
  std::size_t max_queued_;
  std::unique_ptr<Channel> channel_;
  RequestParser parser_;
  Peer peer_;
  const std::string host_;
  Time certificate_from_, certificate_to_;
  std::optional<std::string> front_proxy_;  // the name of one
  State state_;
  bool advancing_ = false;
  bool input_fresh_ = false;  // input_ holds bytes the parser has not seen
  bool begun_ = false;        // bytes of the current request have come
  bool head_checked_ = false;
  bool http_1_1_ = true;
  bool keep_alive_ = true;
  bool to_head_ = false;  // the request is a HEAD
  bool linger_ = false;   // the request was not read to its end
  bool peer_closed_ = false;
  bool chunked_ = false;
  bool patient_ = false;       // who reads the answer may pause
  std::int64_t deadline_ = 0;  // steady milliseconds; 0: none
  std::int64_t waiting_since_ = 0;
  std::uint64_t progress_ = 0;  // what the socket had taken when the deadline was set
  std::string input_;           // bytes of a request in the making, or of the next one
  std::string body_;            // of the response, from body_at_ on still to write
  std::size_t body_at_ = 0;
  std::size_t in_flight_ = 0;  // stream bytes in the channel's output
  std::shared_ptr<StreamCore> stream_;
  std::shared_ptr<Duplex> duplex_;
  std::function<void()> gone_;  // who makes the answer wants to know
  std::string websocket_key_;   // the current request asks for an upgrade
  std::unique_ptr<Http2Session> http2_;
};

std::unique_ptr<Exchange> make_exchange(std::shared_ptr<Connection> connection,
                                        std::int32_t stream);

}  // namespace dibs::net
