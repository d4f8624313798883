#pragma once
// A request on its way from a URL to the head of its answer, on an event loop. Private to net.
//
//   connecting (one address after the other) ─▶ shaking hands ─▶ asking ─▶ over
//
// Every method runs on the loop's thread. It ends once: with a Reply, or with an error, worded as
// Go's client words it.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/channel.h"
#include "net/dial.h"
#include "net/event_loop.h"
#include "net/http.h"
#include "net/message_parser.h"
#include "net/tls.h"

namespace dibs::net {

/// An answer's head has been read; what comes after it is still to be.
struct Reply {
  std::unique_ptr<Channel> channel;
  std::unique_ptr<ResponseParser> parser;
  std::string rest;       // read already, not fed to the parser
  bool complete = false;  // there is no body
};

class Opening final : public EventLoop::Source, public std::enable_shared_from_this<Opening> {
 public:
  struct Task {
    Url url;
    std::shared_ptr<TlsContext> tls;
    std::string message;  // head and body
    bool to_head = false;
    std::int64_t deadline = 0;  // steady milliseconds
  };
  using Ended = std::function<void(Result<Reply>)>;

  /// `scratch` is the io thread's.
  Opening(std::shared_ptr<EventLoop> loop, Task task, std::vector<char>& scratch, Ended ended);
  ~Opening() override;

  const Url& url() const { return task_.url; }
  void begin(std::vector<SocketAddress> addresses);
  void on_ready(EventLoop::Ready ready) override;
  void on_tick(std::int64_t now);
  void fail(Error error);

 private:
  enum class State : std::uint8_t { waiting, connecting, shaking, asking, over };

  void connect();
  void connected();
  void shake();
  void ask();
  void send();
  bool read();
  void finish(Parsed parsed);
  void leave();

  std::shared_ptr<EventLoop> loop_;
  Task task_;
  std::vector<char>& scratch_;
  Ended ended_;
  State state_ = State::waiting;
  std::vector<SocketAddress> addresses_;
  std::size_t next_ = 0;  // the address to try next
  int fd_ = -1;           // until a channel has it
  std::unique_ptr<Channel> channel_;
  std::size_t sent_ = 0;  // of the message, to the channel
  std::string send_error_;
  std::unique_ptr<ResponseParser> parser_;
  std::string rest_;
};

}  // namespace dibs::net
