#include "server/request_timeout.h"

#include <gtest/gtest.h>

#include "runtime/sim_runtime.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

class RequestTimeout : public testing::Test {
 protected:
  std::shared_ptr<calls::Exchange> open(Duration timeout) {
    return timed(test::answer_into(reply_), sim_.runtime(), timeout);
  }
  runtime::SimRuntime sim_;
  std::shared_ptr<test::Reply> reply_ = std::make_shared<test::Reply>();
};

TEST_F(RequestTimeout, answers_in_place_of_who_is_late) {
  auto exchange = open(std::chrono::seconds(60));
  sim_.advance(std::chrono::seconds(59));
  EXPECT_EQ(reply_->status, 0);
  sim_.advance(std::chrono::seconds(2));
  EXPECT_EQ(reply_->status, 504);
  EXPECT_EQ(reply_->reason(), "Timeout");
  EXPECT_EQ(reply_->message(), "Timeout: request did not complete within the allotted timeout");
  net::Response late;
  exchange->respond(late);
  EXPECT_EQ(reply_->status, 504);
}

TEST_F(RequestTimeout, leaves_an_answer_in_time_alone) {
  auto exchange = open(std::chrono::seconds(60));
  exchange->respond(net::Response{});
  EXPECT_EQ(reply_->status, 200);
  sim_.advance(std::chrono::seconds(120));
  EXPECT_EQ(reply_->status, 200);
}

TEST_F(RequestTimeout, is_what_the_request_says_and_no_more_than_the_servers) {
  const auto of = [](const char* target) {
    return timeout_of(net::Target::parse(target).value(), std::chrono::seconds(60));
  };
  EXPECT_EQ(*of("/a"), std::chrono::seconds(60));
  EXPECT_EQ(*of("/a?timeout=5s"), std::chrono::seconds(5));
  EXPECT_EQ(*of("/a?timeout=0s"), std::chrono::seconds(60));
  EXPECT_EQ(*of("/a?timeout=10m"), std::chrono::seconds(60));
  EXPECT_FALSE(of("/a?timeout=x").ok());
}

}  // namespace
}  // namespace dibs::server
