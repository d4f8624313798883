#include "server/request_timeout.h"

#include <atomic>

#include "server/request_info.h"
#include "server/status.h"

namespace dibs::server {
namespace {

/// Of an answer that comes too late.
class NoStream final : public net::BodyStream {
 public:
  bool write(SharedBytes) override { return false; }
  std::size_t queued() const override { return 0; }
  void on_drained(std::function<void()>) override {}
  void on_closed(std::function<void()> closed) override { closed(); }
  void finish() override {}
};

class TimedExchange final : public calls::Exchange,
                            public std::enable_shared_from_this<TimedExchange> {
 public:
  TimedExchange(std::unique_ptr<calls::Exchange> inner, runtime::Timers& timers)
      : inner_(std::move(inner)), timers_(timers) {}

  void start(Duration timeout) {
    timer_ = timers_.after(timeout, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->expire();
    });
  }

  ~TimedExchange() override {
    if (!begun_) timers_.cancel(timer_);
  }

  void respond(net::Response response) override { answer(std::move(response)); }
  void answer(calls::Response response) override {
    if (begin()) inner_->answer(std::move(response));
  }
  std::shared_ptr<net::BodyStream> stream(net::Response head) override {
    if (begin()) return inner_->stream(std::move(head));
    return std::make_shared<NoStream>();
  }
  std::shared_ptr<calls::EventStream> stream_events(const net::Response& head) override {
    // Only watches have events, and those have no end.
    return begun_ ? nullptr : inner_->stream_events(head);
  }
  void upgrade(std::string protocol,
               std::function<void(std::shared_ptr<net::WebSocket>)> ready) override {
    if (!begin()) return ready(nullptr);
    inner_->upgrade(std::move(protocol), std::move(ready));
  }
  void upgrade_to(net::Response head,
                  std::function<void(std::shared_ptr<net::ByteStream>)> ready) override {
    if (!begin()) return ready(nullptr);
    inner_->upgrade_to(std::move(head), std::move(ready));
  }
  void on_gone(std::function<void()> gone) override {
    if (!begun_) inner_->on_gone(std::move(gone));
  }

 private:
  /// Whether the answer is still the caller's to give.
  bool begin() {
    if (begun_.exchange(true)) return false;
    timers_.cancel(timer_);
    return true;
  }
  void expire() {
    if (begun_.exchange(true)) return;
    inner_->answer(status_response(
        Error::timeout("Timeout: request did not complete within the allotted timeout")));
  }

  const std::unique_ptr<calls::Exchange> inner_;
  runtime::Timers& timers_;
  runtime::TimerId timer_ = 0;
  std::atomic<bool> begun_{false};
};

}  // namespace

Result<Duration> timeout_of(const net::Target& target, Duration most) {
  DIBS_CHECK(check_timeout(target));
  const auto text = target.get("timeout");
  if (text.empty()) return most;
  DIBS_TRY(const Duration asked, parse_duration(text));
  return asked <= Duration(0) || asked > most ? most : asked;
}

std::shared_ptr<calls::Exchange> timed(std::unique_ptr<calls::Exchange> exchange,
                                       runtime::Runtime& runtime, Duration timeout) {
  if (timeout <= Duration(0)) return exchange;
  auto made = std::make_shared<TimedExchange>(std::move(exchange), runtime.timers);
  made->start(timeout);
  return made;
}

}  // namespace dibs::server
