#include "net/duplex.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace dibs::net {
namespace {

constexpr std::size_t kLeastProgress = 16 * 1024;
constexpr Duration kGoodbyeTime = std::chrono::seconds(5);
constexpr Duration kHangupGrace = std::chrono::seconds(2);
// Held for so long, a client is read on by so much at each tick, up to what two sockets hold.
constexpr std::int64_t kDripAfter = 2000;
constexpr std::size_t kDripPerTick = 512 * 1024;
constexpr std::size_t kDripMost = 10 * 1024 * 1024;
// Reads before other connections of the thread get their turn.
constexpr int kTurns = 32;

std::int64_t milliseconds(Duration span) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(span).count();
}

class DuplexStream final : public ByteStream {
 public:
  explicit DuplexStream(std::shared_ptr<Duplex> duplex) : duplex_(std::move(duplex)) {}
  ~DuplexStream() override { close(); }

  void start(std::function<void(std::string_view)> data, std::function<void()> closed) override {
    const bool posted = duplex_->loop().post(
        [duplex = duplex_, data = std::move(data), closed] { duplex->start(data, closed); });
    if (!posted && closed) closed();
  }

  void write(std::string bytes) override {
    duplex_->posted += bytes.size();
    duplex_->loop().post([duplex = duplex_, bytes = std::move(bytes)] {
      duplex->posted -= bytes.size();
      duplex->write(bytes);
    });
  }

  void hold(bool held) override {
    duplex_->loop().post([duplex = duplex_, held] { duplex->hold(held); });
  }

  std::size_t queued() const override { return duplex_->posted + duplex_->output; }

  void on_drained(std::function<void()> drained) override {
    duplex_->loop().post([duplex = duplex_, drained = std::move(drained)]() mutable {
      duplex->set_drained(std::move(drained));
    });
  }

  void close() override {
    duplex_->loop().post([duplex = duplex_] { duplex->end(); });
  }

  void expire(std::chrono::nanoseconds span) override {
    duplex_->loop().post([duplex = duplex_, span] { duplex->expire(span); });
  }

 private:
  std::shared_ptr<Duplex> duplex_;
};

}  // namespace

Duplex::Duplex(std::shared_ptr<EventLoop> loop, std::unique_ptr<Channel> channel, std::string early,
               std::vector<char>& scratch, Limits limits)
    : loop_(std::move(loop)),
      channel_(std::move(channel)),
      early_(std::move(early)),
      scratch_(scratch),
      limits_(limits) {}

Duplex::~Duplex() = default;

void Duplex::begin(std::string_view head, std::function<void()> ended) {
  ended_ = std::move(ended);
  channel_->set_readable();
  if (!channel_->write(head) || !loop_->add(channel_->fd(), this)) return close();
  advance();
}

void Duplex::set_deadline(Duration span) { deadline_ = loop_->now() + milliseconds(span); }

void Duplex::on_ready(EventLoop::Ready ready) {
  if (channel_ == nullptr) return;
  if (ready.broken) return close();
  if (ready.in) channel_->set_readable();
  if (ready.peer_closed) {
    channel_->set_peer_closed();
    hung_up_ = true;
    if (held_ && limits_.client) expire(kHangupGrace);
  }
  advance();
}

void Duplex::on_tick(std::int64_t now) {
  if (channel_ == nullptr) return;
  if (expires_ != 0 && now >= expires_) return close(!goodbye_);
  if (held_ && limits_.client) drip(now);
  if (channel_ == nullptr || deadline_ == 0 || now < deadline_) return;
  const std::size_t waiting = channel_->output();
  if (waiting > 0 && waiting + kLeastProgress <= progress_) {
    progress_ = waiting;
    return set_deadline(limits_.write_timeout);
  }
  too_slow_ = timed_out_ = true;
  close(true);
}

void Duplex::drip(std::int64_t now) {
  if (!started_ || ending_ || now < held_since_ + kDripAfter) return;
  const auto self = shared_from_this();
  const std::size_t until = std::min(kDripMost, dripped_ + kDripPerTick);
  while (channel_ != nullptr && dripped_ < until && deliver()) {
  }
}

void Duplex::start(std::function<void(std::string_view)> data, std::function<void()> closed) {
  if (channel_ == nullptr) {
    if (closed) closed();
    return;
  }
  data_ = std::move(data);
  closed_ = std::move(closed);
  started_ = true;
  advance();
}

void Duplex::write(std::string_view bytes) {
  if (channel_ == nullptr || ending_) return;
  if (!channel_->write(bytes)) return close();
  if (channel_->output() > limits_.max_queued && channel_->flush() != Io::ok &&
      channel_->output() > limits_.max_queued) {
    too_slow_ = true;
    return close(true);
  }
  had_output_ = true;
  advance();
}

void Duplex::hold(bool held) {
  if (held && !held_) {
    held_since_ = loop_->now();
    dripped_ = 0;
  }
  held_ = held;
  if (held && hung_up_ && limits_.client) expire(kHangupGrace);
  if (!held) advance();
}

void Duplex::set_drained(std::function<void()> drained) {
  if (channel_ == nullptr) return;
  drained_ = std::move(drained);
  had_output_ = true;
  advance();
}

void Duplex::end() {
  if (channel_ == nullptr || ending_) return;
  ending_ = true;
  advance();
}

void Duplex::expire(Duration span) {
  const std::int64_t at = loop_->now() + milliseconds(span);
  if (expires_ == 0 || at < expires_) expires_ = at;
}

void Duplex::close(bool reset) {
  if (channel_ == nullptr) return;
  const auto self = shared_from_this();
  if (reset) {
    const linger at_once{1, 0};
    ::setsockopt(channel_->fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  loop_->remove(channel_->fd());
  channel_.reset();
  output = 0;
  loop_->retire(self);
  // Callbacks often hold the stream; dropping them ends that circle.
  data_ = nullptr;
  drained_ = nullptr;
  if (const auto closed = std::exchange(closed_, nullptr)) closed();
  if (const auto ended = std::exchange(ended_, nullptr)) ended();
}

void Duplex::advance() {
  if (advancing_) return;
  const auto self = shared_from_this();
  advancing_ = true;
  int turns = kTurns;
  while (channel_ != nullptr && step()) {
    if (--turns == 0) {
      loop_->post([self] { self->advance(); });
      break;
    }
  }
  advancing_ = false;
}

bool Duplex::flush() {
  switch (channel_->flush()) {
    case Io::ok:
      deadline_ = 0;
      break;
    case Io::again:
      if (deadline_ == 0) {
        progress_ = channel_->output();
        set_deadline(limits_.write_timeout);
      }
      break;
    default:
      close();
      return false;
  }
  output = channel_->output();
  return true;
}

bool Duplex::step() {
  if (channel_->output() > 0) had_output_ = true;
  if (!flush()) return false;
  if (channel_->output() == 0) {
    // What is still on its way here counts: else a sender that is faster than this thread would
    // never be held up.
    if (had_output_ && posted == 0 && drained_) {
      had_output_ = false;
      // A callback may replace the function it runs in.
      const auto drained = drained_;
      drained();
      if (channel_ == nullptr) return false;
    }
    if (ending_) return say_goodbye();
  }
  if (ending_ || !started_ || held_) return false;
  if (!early_.empty()) {
    const std::string early = std::exchange(early_, std::string());
    const auto data = data_;
    data(early);
    return channel_ != nullptr;
  }
  return deliver();
}

bool Duplex::deliver() {
  if (!channel_->readable() && !channel_->holds_input()) return false;
  std::size_t got = 0;
  switch (channel_->read(scratch_.data(), scratch_.size(), got)) {
    case Io::ok:
      break;
    case Io::again:
      // Reading may have produced TLS messages of its own.
      return channel_->output() > 0 && flush() && false;
    default:
      // What the peer has not taken by now it never will.
      close(channel_->output() > 0);
      return false;
  }
  if (held_) dripped_ += got;
  const auto data = data_;
  data({scratch_.data(), got});
  return channel_ != nullptr;
}

bool Duplex::say_goodbye() {
  if (!goodbye_) {
    goodbye_ = true;
    channel_->write_end();
    channel_->flush();
    channel_->shutdown_write();
    channel_->set_readable();
    expire(kGoodbyeTime);
  }
  if (!channel_->readable()) return false;
  std::size_t got = 0;
  const Io io = channel_->discard(scratch_.size(), got);
  if (io == Io::eof || io == Io::error) {
    close();
    return false;
  }
  return io == Io::ok;
}

std::shared_ptr<ByteStream> make_byte_stream(std::shared_ptr<Duplex> duplex) {
  return std::make_shared<DuplexStream>(std::move(duplex));
}

}  // namespace dibs::net
