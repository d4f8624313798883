#include "calls/call.h"

#include <gtest/gtest.h>

namespace dibs::calls {
namespace {

struct Told {
  net::Response response;
  bool upgraded = false;
};

class HttpCaller final : public net::Exchange {
 public:
  explicit HttpCaller(Told& told) : told_(told) {}
  void respond(net::Response response) override { told_.response = std::move(response); }
  std::shared_ptr<net::BodyStream> stream(net::Response) override { return nullptr; }
  void upgrade(std::string, std::function<void(std::shared_ptr<net::WebSocket>)>) override {}
  void upgrade_to(net::Response, std::function<void(std::shared_ptr<net::ByteStream>)>) override {
    told_.upgraded = true;
  }

 private:
  Told& told_;
};

TEST(Request, becomes_text_once) {
  Request request;
  request.body = "as it came";
  request.write_body();
  EXPECT_EQ(request.body, "as it came");

  request.value = json::Value::object({{"a", 5}});
  request.write_body();
  EXPECT_EQ(request.body, R"({"a":5})");
  EXPECT_TRUE(request.value.is_null());
}

TEST(OverHttp, asks_for_nothing_but_http) {
  Told told;
  auto exchange = over_http(std::make_unique<HttpCaller>(told));
  EXPECT_EQ(exchange->stream_events({}), nullptr);
  exchange->answer(net::Response{404, {}, "not here"});
  EXPECT_EQ(told.response.status, 404);
  EXPECT_EQ(told.response.body, "not here");
}

TEST(OverHttp, lets_a_connection_leave_http) {
  Told told;
  over_http(std::make_unique<HttpCaller>(told))->upgrade_to({}, nullptr);
  EXPECT_TRUE(told.upgraded);
}

}  // namespace
}  // namespace dibs::calls
