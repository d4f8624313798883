#include "node/streams/node_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "base/mutex.h"
#include "node/streams/node_access.h"
#include "node/streams/test_node.h"

namespace dibs::node {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class NodeServerTest : public TestNode {};

TEST_F(NodeServerTest, lets_in_who_may) {
  EXPECT_EQ(get("/healthz", nullptr), "200 ok");
  EXPECT_EQ(get("/pods", nullptr), "401 Unauthorized");
  EXPECT_EQ(get("/pods", &guest_),
            "403 Forbidden (user=guest, verb=get, resource=nodes, subresource(s)=[pods proxy])");
  EXPECT_EQ(get("/exec/n/p/c", &guest_),
            "403 Forbidden (user=guest, verb=get, resource=nodes, subresource(s)=[proxy])");
  EXPECT_THAT(get("/pods"), StartsWith("200 "));
}

TEST_F(NodeServerTest, shows_pages) {
  EXPECT_THAT(get("/pods"), StartsWith(R"(200 {"kind":"PodList","apiVersion":"v1","metadata":{},)"
                                       R"("items":[{"metadata":{"name":"p")"));
  EXPECT_THAT(get("/runningpods/"), HasSubstr(R"("uid":"u")"));
  EXPECT_THAT(get("/stats/summary"), HasSubstr(R"("node":{"nodeName":"node-0")"));
  EXPECT_EQ(get("/configz"), R"(200 {"kubeletconfig":{}})");
  EXPECT_EQ(get("/metrics"), "200 up 1\n");
  EXPECT_EQ(get("/nosuch"), "404 404 page not found\n");
}

TEST_F(NodeServerTest, answers_for_streams_that_cannot_be) {
  EXPECT_EQ(get("/exec/n/nosuch/c?command=true&output=1"), "404 pod does not exist");
  EXPECT_EQ(get("/exec/n/p/c?command=true"),
            "400 you must specify at least 1 of stdin, stdout, stderr");
  EXPECT_EQ(get("/exec/n/p/c?command=true&output=1"),
            "400 unable to upgrade: missing upgrade headers in request\n");
  EXPECT_EQ(get("/exec/n/p/d?command=true&output=1"), R"(500 container not found ("d"))");
  containers_.stop(container_);
  EXPECT_EQ(get("/exec/n/p/c?command=true&output=1"), R"(500 container not found ("c"))");
  EXPECT_EQ(get("/portForward/n/nosuch"), "404 pod does not exist");
}

TEST_F(NodeServerTest, gives_logs) {
  log("2026-11-15T12:00:01.5+00:00 stdout F one\n2026-11-15T12:00:02.5+00:00 stderr F two\n");
  EXPECT_EQ(get("/containerLogs/n/p/c"), "200 one\ntwo\n");
  EXPECT_EQ(get("/containerLogs/n/p/c?tailLines=1"), "200 two\n");
  EXPECT_EQ(get("/containerLogs/n/p/c?tailLines=0"), "200 ");
  EXPECT_EQ(get("/containerLogs/n/p/c?limitBytes=5"), "200 one\nt");
  EXPECT_EQ(get("/containerLogs/n/p/c?timestamps=true&tailLines=1"),
            "200 2026-11-15T12:00:02.500000000Z two\n");
  EXPECT_EQ(get("/containerLogs/n/p/c?previous=true"),
            R"(400 previous terminated container "c" in pod "p" not found)");
  EXPECT_EQ(get("/containerLogs/n/p/d"), "404 container \"d\" not found in pod \"p\"\n");
  EXPECT_EQ(get("/containerLogs/n/q/c"), "404 pod \"q\" does not exist\n");
  EXPECT_EQ(get("/containerLogs/n/p/c?tailLines=-1"), R"(422 {"message": "Invalid request."})");
  set_state(R"("containerID":"fake://gone","state":{"running":{}})");
  EXPECT_EQ(get("/containerLogs/n/p/c"), "400 unable to retrieve container logs for fake://gone");
  set_state(R"("state":{"waiting":{"reason":"ContainerCreating"}})");
  EXPECT_EQ(get("/containerLogs/n/p/c"),
            R"(400 container "c" in pod "p" is waiting to start: ContainerCreating)");
}

TEST_F(NodeServerTest, gives_a_line_without_its_end) {
  log("2026-11-15T12:00:01Z stdout F one\n2026-11-15T12:00:02Z stdout P unfinished\n");
  EXPECT_EQ(get("/containerLogs/n/p/c"), "200 one\nunfinished");
  log("2026-11-15T12:00:02Z stdout F cut o");
  EXPECT_EQ(get("/containerLogs/n/p/c"), "200 one\nunfinishedcut o");
}

/// Reads a body that is still being written.
class Reader {
 public:
  explicit Reader(const std::shared_ptr<net::BodySource>& body) : body_(body) {
    body->start(
        [state = state_](std::string piece) {
          MutexLock lock(state->mutex);
          state->text += piece;
          state->changed.notify_all();
        },
        [state = state_](bool whole) {
          MutexLock lock(state->mutex);
          state->text += whole ? "<end>" : "<broken>";
          state->changed.notify_all();
        });
  }
  bool wait_for(const std::string& text) {
    MutexLock lock(state_->mutex);
    return state_->changed.wait_for(lock, kWait, [&] { return state_->text == text; });
  }

 private:
  struct State {
    Mutex mutex;
    CondVar changed;
    std::string text;
  };
  std::shared_ptr<net::BodySource> body_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

TEST_F(NodeServerTest, follows_a_log_through_rotation_to_the_containers_end) {
  log("2026-11-15T12:00:01Z stdout F one\n");
  net::Request request;
  request.method = "GET";
  request.target = "/containerLogs/n/p/c?follow=true";
  auto answer = open(request, &admin_);
  ASSERT_TRUE(answer.ok());
  Reader reader(answer->body);
  ASSERT_TRUE(reader.wait_for("one\n"));
  log("2026-11-15T12:00:02Z stdout F two\n2026-11-15T12:00:03Z stdout P thr");
  ASSERT_TRUE(reader.wait_for("one\ntwo\n"));
  log("ee\n");
  ASSERT_TRUE(reader.wait_for("one\ntwo\nthree"));
  std::filesystem::rename(log_, log_ + ".1");
  log("2026-11-15T12:00:04Z stdout F  and four\n");
  ASSERT_TRUE(reader.wait_for("one\ntwo\nthree and four\n"));
  containers_.stop(container_);
  EXPECT_TRUE(reader.wait_for("one\ntwo\nthree and four\n<end>"));
}

TEST_F(NodeServerTest, follows_a_log_of_a_container_that_has_ended_only_to_its_end) {
  log("2026-11-15T12:00:01Z stdout F one\n");
  containers_.stop(container_);
  EXPECT_EQ(get("/containerLogs/n/p/c?follow=true"), "200 one\n");
}

TEST(NodePaths, are_sub_resources_for_authorization) {
  const std::pair<const char*, const char*> cases[] = {
      {"/stats/summary", "stats"},
      {"/metrics", "metrics"},
      {"/metrics/cadvisor", "metrics"},
      {"/logs/x", "log"},
      {"/containerLogs/a/b/c", "proxy"},
      {"/exec/a/b/c", "proxy"},
      {"/pods", "pods"},
      {"/configz", "configz"},
      {"/statsx", "proxy"},
  };
  for (const auto& [path, expected] : cases) EXPECT_EQ(node_subresource(path), expected) << path;
  EXPECT_EQ(node_verb("GET"), "get");
  EXPECT_EQ(node_verb("POST"), "create");
}

}  // namespace
}  // namespace dibs::node
