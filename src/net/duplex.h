#pragma once
// A connection that has left HTTP: bytes both ways over a channel, on its io thread. Private to
// net; other threads hold it through a ByteStream, which posts here.
//
//   begin ─▶ open ─▶ ending (what is queued goes out) ─▶ saying goodbye ─▶ closed
//
// Goodbye: a socket closed while the peer still sends would be reset, and what was sent last could
// be lost. So after the last byte the peer's end is awaited, for a while.
//
// Held: a peer that nobody reads from cannot even say that it is gone, since its end waits behind
// its bytes. So a client that is held for long is read on slowly, up to what sockets hold.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "net/channel.h"
#include "net/event_loop.h"
#include "net/http.h"

namespace dibs::net {

class Duplex final : public EventLoop::Source, public std::enable_shared_from_this<Duplex> {
 public:
  struct Limits {
    std::size_t max_queued = 16 * 1024 * 1024;
    Duration write_timeout = std::chrono::seconds(60);
    /// The peer is a client: once it has hung up, it waits for nothing more. A server that has said
    /// all still has to be heard.
    bool client = false;
  };

  /// `early`: bytes of the peer that came with the head. `scratch` is the io thread's.
  Duplex(std::shared_ptr<EventLoop> loop, std::unique_ptr<Channel> channel, std::string early,
         std::vector<char>& scratch, Limits limits);
  ~Duplex() override;

  // On the io thread.
  /// `head` goes out first; `ended` is called once at the end.
  void begin(std::string_view head, std::function<void()> ended);
  void on_ready(EventLoop::Ready ready) override;
  void on_tick(std::int64_t now);
  void start(std::function<void(std::string_view)> data, std::function<void()> closed);
  void write(std::string_view bytes);
  void hold(bool held);
  void set_drained(std::function<void()> drained);
  void end();
  void expire(Duration span);
  /// `reset`: the peer is told so even when it does not read.
  void close(bool reset = false);
  bool too_slow() const { return too_slow_; }
  bool timed_out() const { return timed_out_; }

  // From any thread.
  EventLoop& loop() { return *loop_; }
  std::atomic<std::size_t> posted = 0;  // on its way to the io thread
  std::atomic<std::size_t> output = 0;  // not yet taken by the socket

 private:
  void advance();
  bool step();
  bool flush();
  bool say_goodbye();
  bool deliver();
  void drip(std::int64_t now);
  void set_deadline(Duration span);

  std::shared_ptr<EventLoop> loop_;
  std::unique_ptr<Channel> channel_;  // null once closed
  std::string early_;
  std::vector<char>& scratch_;
  Limits limits_;
  std::function<void()> ended_;
  std::function<void(std::string_view)> data_;
  std::function<void()> closed_;
  std::function<void()> drained_;
  bool advancing_ = false;
  bool started_ = false;
  bool held_ = false;
  bool ending_ = false;
  bool goodbye_ = false;
  bool hung_up_ = false;
  bool too_slow_ = false;
  bool timed_out_ = false;
  bool had_output_ = false;
  std::int64_t deadline_ = 0;  // for progress of the output; steady milliseconds, 0: none
  std::int64_t expires_ = 0;
  std::size_t progress_ = 0;
  std::int64_t held_since_ = 0;
  std::size_t dripped_ = 0;
};

/// What other threads hold; dropping it ends the duplex.
std::shared_ptr<ByteStream> make_byte_stream(std::shared_ptr<Duplex> duplex);

}  // namespace dibs::net
