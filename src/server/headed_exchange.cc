#include "server/headed_exchange.h"

namespace dibs::server {
namespace {

class HeadedExchange final : public calls::Exchange {
 public:
  HeadedExchange(std::unique_ptr<calls::Exchange> inner,
                 std::vector<std::pair<std::string, std::string>> fields)
      : inner_(std::move(inner)), fields_(std::move(fields)) {}

  void respond(net::Response response) override {
    set(response);
    inner_->respond(std::move(response));
  }
  void answer(calls::Response response) override {
    set(response);
    inner_->answer(std::move(response));
  }
  std::shared_ptr<net::BodyStream> stream(net::Response head) override {
    set(head);
    return inner_->stream(std::move(head));
  }
  std::shared_ptr<calls::EventStream> stream_events(const net::Response& head) override {
    return inner_->stream_events(head);
  }
  void upgrade(std::string protocol,
               std::function<void(std::shared_ptr<net::WebSocket>)> ready) override {
    inner_->upgrade(std::move(protocol), std::move(ready));
  }
  void upgrade_to(net::Response head,
                  std::function<void(std::shared_ptr<net::ByteStream>)> ready) override {
    set(head);
    inner_->upgrade_to(std::move(head), std::move(ready));
  }
  void on_gone(std::function<void()> gone) override { inner_->on_gone(std::move(gone)); }

 private:
  template <typename Head>
  void set(Head& head) const {
    for (const auto& [name, value] : fields_) head.headers.set(name, value);
  }

  const std::unique_ptr<calls::Exchange> inner_;
  const std::vector<std::pair<std::string, std::string>> fields_;
};

}  // namespace

std::unique_ptr<calls::Exchange> headed(std::unique_ptr<calls::Exchange> exchange,
                                        std::vector<std::pair<std::string, std::string>> fields) {
  return std::make_unique<HeadedExchange>(std::move(exchange), std::move(fields));
}

}  // namespace dibs::server
