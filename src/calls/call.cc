#include "calls/call.h"

#include "json/parse.h"

namespace dibs::calls {
namespace {

class HttpExchange final : public Exchange {
 public:
  explicit HttpExchange(std::unique_ptr<net::Exchange> http) : http_(std::move(http)) {}

  void answer(Response response) override { http_->respond(std::move(response).take_http()); }
  std::shared_ptr<EventStream> stream_events(const net::Response&) override { return nullptr; }

  void respond(net::Response response) override { http_->respond(std::move(response)); }
  std::shared_ptr<net::BodyStream> stream(net::Response head) override {
    return http_->stream(std::move(head));
  }
  void upgrade(std::string protocol,
               std::function<void(std::shared_ptr<net::WebSocket>)> ready) override {
    http_->upgrade(std::move(protocol), std::move(ready));
  }
  void upgrade_to(net::Response head,
                  std::function<void(std::shared_ptr<net::ByteStream>)> ready) override {
    http_->upgrade_to(std::move(head), std::move(ready));
  }
  void on_gone(std::function<void()> gone) override { http_->on_gone(std::move(gone)); }

 private:
  std::unique_ptr<net::Exchange> http_;
};

}  // namespace

void Request::write_body() {
  if (value.is_null()) return;
  body = json::write(value);
  value = json::Value();
}

std::unique_ptr<Exchange> over_http(std::unique_ptr<net::Exchange> exchange) {
  return std::make_unique<HttpExchange>(std::move(exchange));
}

}  // namespace dibs::calls
