#pragma once
// The server's side of one HTTP/2 connection, from bytes to requests and from answers to bytes.
// nghttp2 does frames, header compression and windows; here are streams, bounds and the end.
//
// A stream is a request with its answer. Bodies that are sent piece by piece (StreamCore) stay
// where they are, shared with whoever else gets them, until the client's window has room: who does
// not read one stream holds up that stream alone.
//
// Nothing a client does may cost without bound: streams, requests that are worked on although their
// stream was reset, headers, bodies that are not whole yet, and frames that cost the client nothing
// (resets, pings, settings) all have limits, over which the stream or the connection ends.
//
// One thread at a time; no I/O, no clock: times are steady milliseconds, from outside.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "net/http.h"
#include "net/http_server.h"

struct nghttp2_session;

namespace dibs::net {

struct StreamCore;

class Http2Session {
 public:
  /// What the connection does for it.
  class Owner {
   public:
    virtual ~Owner() = default;
    /// A whole request. It is answered through the session, once, whether its stream lives or not.
    virtual void dispatch(std::int32_t stream, Request request) = 0;
    /// Of the Date field.
    virtual std::string date() = 0;
    virtual void count_bad_request() = 0;
    virtual void count_slow_client() = 0;
  };

  /// Both must outlive it.
  Http2Session(const ServerOptions& options, Owner& owner, std::int64_t now);
  ~Http2Session();
  Http2Session(const Http2Session&) = delete;
  Http2Session& operator=(const Http2Session&) = delete;

  /// Takes what came and dispatches what became whole. False: the connection ends after what
  /// produce() still gives.
  bool receive(std::string_view bytes, std::int64_t now);
  /// Appends frames to send, until `out` has about `most` bytes.
  void produce(std::string& out, std::size_t most);
  /// Calls who wanted to know that all was sent. Not from within the above.
  void tell_drained();
  /// More may be received: not so much waits to be said that a client who does not listen costs.
  bool takes_input() const;
  /// Everything is answered and nothing more will come.
  bool is_over() const;
  /// For how long nothing has been asked, or the client has been slow to ask; -1 while something is
  /// worked on, or has only begun to come.
  std::int64_t idle(std::int64_t now) const;
  std::size_t streams() const { return streams_.size(); }

  // Answers; for a stream that is gone they come to nothing.
  void respond(std::int32_t stream, Response response);
  void begin_stream(std::int32_t stream, Response head, std::shared_ptr<StreamCore> core);
  void pump_stream(std::int32_t stream);
  void abort_stream(std::int32_t stream, bool too_slow);
  void on_gone(std::int32_t stream, std::function<void()> gone);

  /// Ends streams whose client is too slow, and the connection where it is idle for too long.
  void tick(std::int64_t now);
  /// Takes no more requests; the connection ends with the last answer.
  void retire(std::int64_t now);
  /// The connection is gone: tells everybody.
  void close();

 private:
  struct Stream;
  struct Callbacks;
  enum class Goaway : char { none, announced, sent };

  Stream* find(std::int32_t id);
  void dispatch(Stream& stream);
  /// What the stream holds of its request; from then on it holds nothing.
  Request take_request(Stream& stream);
  void refuse(Stream& stream, int status, std::string_view text);
  void submit(Stream& stream, Response& response, bool has_body);
  void reset(std::int32_t stream, std::uint32_t code);
  void forget(std::int32_t id);
  /// A frame that costs the client nothing. False: there were too many.
  bool charge();
  void leave(std::uint32_t code);
  long read_body(Stream& stream, std::uint8_t* data, std::size_t size, std::uint32_t* flags);

  const ServerOptions& options_;
  Owner& owner_;
  nghttp2_session* session_ = nullptr;
  std::unordered_map<std::int32_t, std::unique_ptr<Stream>> streams_;
  std::vector<std::int32_t> whole_;  // requests to dispatch
  std::vector<std::function<void()>> drained_;
  std::vector<std::function<void()>> gone_;
  std::size_t orphans_ = 0;       // requests that are worked on though their stream is gone
  std::size_t held_heads_ = 0;    // bytes of heads whose requests are not whole
  std::size_t held_bytes_ = 0;    // of bodies that are not whole
  std::size_t header_input_ = 0;  // bytes that came since a block of headers began
  bool in_headers_ = false;
  bool broken_ = false;
  Goaway goaway_ = Goaway::none;
  std::int64_t announced_ = 0;
  std::int64_t now_ = 0;
  std::int64_t idle_since_ = 0;
  std::int64_t headers_since_ = 0;
  double budget_;
  std::int64_t budget_at_ = 0;
  std::uint64_t dispatched_ = 0;
};

}  // namespace dibs::net
