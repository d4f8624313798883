#pragma once
// For tests that kill controllers at each of their writes, once before and once after the write has
// arrived.

#include <functional>
#include <memory>
#include <utility>

#include "client/transport.h"
#include "runtime/runtime.h"

namespace dibs::controllers::test {

/// A way to the server that ends with a write.
class Killed final : public client::Transport {
 public:
  Killed(client::Transport& inner, runtime::Runtime& runtime, int writes, bool arrives)
      : inner_(inner), runtime_(runtime), left_(writes), arrives_(arrives) {}

  Result<client::Response> send(client::Request request) override {
    if (lives(request)) return inner_.send(std::move(request));
    if (std::exchange(last_, false)) (void)inner_.send(std::move(request));
    return Error::unavailable("killed");
  }
  void send_async(client::Request request,
                  std::function<void(Result<client::Response>)> done) override {
    if (lives(request)) return inner_.send_async(std::move(request), std::move(done));
    if (std::exchange(last_, false)) (void)inner_.send(std::move(request));
    runtime_.executor.post([done = std::move(done)] { done(Error::unavailable("killed")); });
  }
  std::unique_ptr<client::TransportStream> open_stream(client::Request request,
                                                       client::StreamHandlers handlers) override {
    return inner_.open_stream(std::move(request), std::move(handlers));
  }

  bool dead() const { return dead_; }

 private:
  bool lives(const client::Request& request) {
    if (dead_) return false;
    if (request.method == "GET" || left_-- > 0) return true;
    dead_ = true;
    last_ = arrives_;
    return false;
  }

  client::Transport& inner_;
  runtime::Runtime& runtime_;
  int left_;
  const bool arrives_;
  bool dead_ = false;
  bool last_ = false;  // the write of the end is still to be sent
};

}  // namespace dibs::controllers::test
