#include "node/streams/node_access.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"
#include "runtime/sim_runtime.h"

namespace dibs::node {
namespace {

using json::Value;

/// Answers reviews: the token "good" is of ann in group g; g may get metrics and everything of
/// proxy.
class Reviews final : public client::Transport {
 public:
  Result<client::Response> send(client::Request request) override {
    ++asked;
    Value review = request.value;
    const Value& spec = review["spec"];
    Value status = Value::object();
    if (request.target.find("tokenreviews") != std::string::npos) {
      if (spec["token"].as_string() == "good") {
        status = Value::object(
            {{"authenticated", true},
             {"user", Value::object({{"username", "ann"}, {"groups", Value::array({"g"})}})}});
      }
    } else {
      const Value& what = spec["resourceAttributes"];
      EXPECT_EQ(what["name"].as_string(), "node-0");
      const std::string_view sub = what["subresource"].as_string();
      const bool allowed =
          spec["groups"][0].as_string() == "g" &&
          (sub == "proxy" || (sub == "metrics" && what["verb"].as_string() == "get"));
      status = Value::object({{"allowed", allowed}});
    }
    review.set("status", status);
    client::Response answer;
    answer.status = 201;
    answer.value = review;
    return answer;
  }
  void send_async(client::Request, std::function<void(Result<client::Response>)>) override {}
  std::unique_ptr<client::TransportStream> open_stream(client::Request,
                                                       client::StreamHandlers) override {
    return nullptr;
  }
  int asked = 0;
};

net::Request with_token(const std::string& token) {
  net::Request request;
  request.headers.add("Authorization", cat("Bearer ", token));
  return request;
}

class NodeAccessTest : public ::testing::Test {
 protected:
  runtime::SimRuntime sim_;
  Reviews reviews_;
  client::Client client_{reviews_};
  NodeAccess access_{client_, sim_.runtime(), "node-0"};
};

TEST_F(NodeAccessTest, knows_callers_by_certificate_or_token) {
  net::Request request;
  EXPECT_EQ(access_.authenticate(request).error().code(), Code::unauthorized);
  request.peer.certificate = true;
  request.peer.common_name = "bob";
  request.peer.organizations = {"x"};
  EXPECT_EQ(access_.authenticate(request)->user, "bob");
  EXPECT_EQ(reviews_.asked, 0);

  EXPECT_EQ(access_.authenticate(with_token("good"))->groups, std::vector<std::string>{"g"});
  EXPECT_EQ(access_.authenticate(with_token("good"))->user, "ann");
  EXPECT_EQ(reviews_.asked, 1);
  EXPECT_EQ(access_.authenticate(with_token("bad")).error().code(), Code::unauthorized);
  EXPECT_EQ(access_.authenticate(with_token("bad")).error().code(), Code::unauthorized);
  EXPECT_EQ(reviews_.asked, 2);
  sim_.advance(std::chrono::minutes(3));
  EXPECT_TRUE(access_.authenticate(with_token("good")).ok());
  EXPECT_EQ(reviews_.asked, 3);
}

TEST_F(NodeAccessTest, asks_what_a_caller_may) {
  const Caller ann{"ann", {"g"}};
  const Caller bob{"bob", {"h"}};
  EXPECT_TRUE(access_.authorize(ann, "get", "metrics").ok());
  EXPECT_TRUE(access_.authorize(ann, "get", "metrics").ok());
  EXPECT_EQ(reviews_.asked, 1);
  const auto denied = access_.authorize(bob, "get", "metrics");
  ASSERT_FALSE(denied.ok());
  EXPECT_EQ(denied.error().message(),
            "Forbidden (user=bob, verb=get, resource=nodes, subresource(s)=[metrics])");
  EXPECT_EQ(reviews_.asked, 2);
  // The old sub-resource covers the finer ones.
  EXPECT_TRUE(access_.authorize(ann, "get", "pods").ok());
  EXPECT_EQ(reviews_.asked, 4);
  sim_.advance(std::chrono::minutes(1));
  EXPECT_FALSE(access_.authorize(bob, "get", "metrics").ok());
  EXPECT_EQ(reviews_.asked, 5);
  EXPECT_TRUE(access_.authorize(ann, "get", "metrics").ok());
  EXPECT_EQ(reviews_.asked, 5);
}

TEST_F(NodeAccessTest, asks_nothing_about_masters) {
  EXPECT_TRUE(access_.authorize({"root", {"system:masters"}}, "create", "proxy").ok());
  EXPECT_EQ(reviews_.asked, 0);
}

}  // namespace
}  // namespace dibs::node
