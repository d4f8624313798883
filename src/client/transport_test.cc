#include "client/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "base/mutex.h"
#include "base/strings.h"
#include "client/client.h"
#include "client/https_transport.h"
#include "client/testing/fake_api.h"
#include "net/testing/test_support.h"
#include "runtime/real_runtime.h"
#include "runtime/sim_runtime.h"

namespace dibs::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void who(calls::Request request, std::unique_ptr<calls::Exchange> exchange) {
  exchange->respond({200,
                     {},
                     cat(request.peer.address, ' ', request.peer.common_name, ' ',
                         join(request.peer.organizations, ","))});
}

TEST(InProcessTransport, says_who_calls) {
  runtime::SimRuntime sim;
  InProcessOptions options;
  options.identity = {"system:node:a", {"system:nodes"}};
  auto transport = make_in_process_transport(who, sim.runtime(), options);
  const auto response = transport->send(make_request("GET", "/"));
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->body, "in-process system:node:a system:nodes");
}

TEST(InProcessTransport, hands_bodies_and_answers_over_as_they_are) {
  runtime::SimRuntime sim;
  auto transport = make_in_process_transport(
      [](calls::Request request, std::unique_ptr<calls::Exchange> exchange) {
        EXPECT_EQ(request.body, "");
        EXPECT_TRUE(request.takes_values);
        Response response;
        response.value = request.value;
        exchange->answer(response);
      },
      sim.runtime());
  Client client(*transport);
  const auto body = json::Value::object({{"a", 5}});
  const auto answer = client.call(make_request("POST", "/", body));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(*answer, body);
}

TEST(InProcessTransport, brings_watch_events_without_text) {
  runtime::SimRuntime sim;
  auto transport = make_in_process_transport(
      [](calls::Request, std::unique_ptr<calls::Exchange> exchange) {
        auto stream = exchange->stream_events({});
        ASSERT_NE(stream, nullptr);
        stream->write_event("ADDED", json::Value::object({{"a", 5}}), 10);
        stream->write(share("{\"type\":\"MODIFIED\",\"object\":{\"a\":6}}\n"));
        EXPECT_GT(stream->queued(), 10U);
        stream->finish();
      },
      sim.runtime());
  Client client(*transport);
  std::vector<std::string> seen;
  auto watch = client.watch({"", "v1", "pods"}, "", {},
                            {.event =
                                 [&](const WatchEvent& event) {
                                   seen.push_back(cat(event.type, event.object["a"].as_int()));
                                 },
                             .ended = [&](Result<>) { seen.emplace_back("end"); }});
  sim.run_until_idle();
  EXPECT_THAT(seen, ElementsAre("ADDED5", "MODIFIED6", "end"));
}

TEST(InProcessTransport, brings_bytes_where_nobody_takes_events) {
  runtime::SimRuntime sim;
  auto transport = make_in_process_transport(
      [](calls::Request, std::unique_ptr<calls::Exchange> exchange) {
        EXPECT_EQ(exchange->stream_events({}), nullptr);
        exchange->stream({})->write(share("line\n"));
      },
      sim.runtime());
  std::string seen;
  auto watch = transport->open_stream(
      make_request("GET", "/"),
      {.opened = {}, .data = [&](auto bytes) { seen = bytes; }, .ended = {}});
  sim.run_until_idle();
  EXPECT_EQ(seen, "line\n");
}

TEST(InProcessTransport, answers_later_and_in_order) {
  runtime::SimRuntime sim;
  auto transport = make_in_process_transport(who, sim.runtime());
  int answered = 0;
  transport->send_async(make_request("GET", "/"), [&](Result<Response> response) {
    EXPECT_TRUE(response.ok());
    ++answered;
  });
  EXPECT_EQ(answered, 0);
  sim.run_until_idle();
  EXPECT_EQ(answered, 1);
}

TEST(InProcessTransport, waits_by_driving_the_simulation) {
  runtime::SimRuntime sim;
  InProcessOptions options;
  options.pump = [&] { return sim.run_until_idle() > 0; };
  auto transport = make_in_process_transport(
      [&](calls::Request, std::unique_ptr<calls::Exchange> exchange) {
        const std::shared_ptr<calls::Exchange> shared = std::move(exchange);
        sim.runtime().executor.post([shared] { shared->respond({200, {}, "late"}); });
      },
      sim.runtime(), options);
  const auto response = transport->send(make_request("GET", "/"));
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->body, "late");
}

TEST(InProcessTransport, reports_an_answer_that_never_comes) {
  runtime::SimRuntime sim;
  InProcessOptions options;
  options.pump = [&] { return sim.run_until_idle() > 0; };
  std::vector<std::unique_ptr<calls::Exchange>> held;
  auto transport = make_in_process_transport(
      [&](calls::Request, std::unique_ptr<calls::Exchange> exchange) {
        held.push_back(std::move(exchange));
      },
      sim.runtime(), options);
  EXPECT_EQ(transport->send(make_request("GET", "/")).error().code(), Code::timeout);
}

TEST(InProcessTransport, collects_a_streamed_answer) {
  runtime::SimRuntime sim;
  InProcessOptions options;
  options.pump = [&] { return sim.run_until_idle() > 0; };
  auto transport = make_in_process_transport(
      [](calls::Request, std::unique_ptr<calls::Exchange> exchange) {
        auto stream = exchange->stream({200, {}, ""});
        stream->write(share("a"));
        stream->write(share("b"));
        stream->finish();
      },
      sim.runtime(), options);
  EXPECT_EQ(transport->send(make_request("GET", "/"))->body, "ab");
}

TEST(InProcessTransport, streams_until_either_side_ends_it) {
  runtime::SimRuntime sim;
  std::shared_ptr<net::BodyStream> server;
  bool gone = false;
  auto transport = make_in_process_transport(
      [&](calls::Request, std::unique_ptr<calls::Exchange> exchange) {
        server = exchange->stream({200, {}, ""});
        server->on_closed([&] { gone = true; });
      },
      sim.runtime());
  std::vector<std::string> seen;
  const auto open = [&] {
    return transport->open_stream(
        make_request("GET", "/"),
        {.opened = [&](const net::Response& head) { seen.push_back(cat(head.status)); },
         .data = [&](std::string_view bytes) { seen.emplace_back(bytes); },
         .ended = [&](Result<> outcome) { seen.push_back(cat(outcome.ok())); }});
  };

  auto stream = open();
  sim.run_until_idle();
  server->write(share("x"));
  server->write(share("y"));
  server->finish();
  sim.run_until_idle();
  EXPECT_THAT(seen, ElementsAre("200", "x", "y", "true"));
  EXPECT_FALSE(gone);

  seen.clear();
  stream = open();
  sim.run_until_idle();
  server->write(share("x"));
  stream.reset();
  sim.run_until_idle();
  EXPECT_TRUE(gone);
  EXPECT_FALSE(server->write(share("y")));
  EXPECT_THAT(seen, ElementsAre("200"));

  seen.clear();
  stream = open();
  sim.run_until_idle();
  server.reset();
  sim.run_until_idle();
  EXPECT_THAT(seen, ElementsAre("200", "false"));
}

TEST(InProcessTransport, cuts_off_a_slow_reader) {
  runtime::SimRuntime sim;
  std::shared_ptr<net::BodyStream> server;
  InProcessOptions options;
  options.max_queued = 10;
  auto transport = make_in_process_transport(
      [&](calls::Request, std::unique_ptr<calls::Exchange> exchange) {
        server = exchange->stream({200, {}, ""});
      },
      sim.runtime(), options);
  std::optional<Result<>> end;
  auto stream = transport->open_stream(
      make_request("GET", "/"),
      {.opened = {}, .data = {}, .ended = [&](Result<> outcome) { end = outcome; }});
  sim.run_until_idle();
  EXPECT_TRUE(server->write(share("12345678")));
  EXPECT_FALSE(server->write(share("12345678")));
  sim.run_until_idle();
  ASSERT_TRUE(end.has_value());
  EXPECT_FALSE(end->ok());
}

struct Https : testing::Test {
  FakeApi api;
  runtime::RealRuntime world;
  std::unique_ptr<runtime::Files> files = runtime::make_memory_files();
  std::vector<std::string> authorizations;
  Mutex mutex;
  std::unique_ptr<net::HttpServer> server;
  Access access;

  void SetUp() override {
    net::ServerOptions options;
    options.tls = net::test_server_tls();
    server = net::test_server(
        options, [this, inner = api.handler()](net::Request request,
                                               std::unique_ptr<net::Exchange> exchange) {
          {
            MutexLock lock(mutex);
            authorizations.emplace_back(request.headers.get("Authorization"));
          }
          inner({std::move(request)}, calls::over_http(std::move(exchange)));
        });
    access.server = cat("https://127.0.0.1:", server->port());
    access.tls = net::test_client_tls();
  }
};

TEST_F(Https, talks_and_watches) {
  api.put(fake_pod_path("a", "one"), fake_pod("a", "one"));
  auto transport = make_https_transport(access, *files, world.runtime());
  ASSERT_TRUE(transport.ok());
  Client client(**transport);
  const Gvr pods{"", "v1", "pods"};

  const auto list = client.list(pods, "a");
  ASSERT_TRUE(list.ok()) << list.error().message();
  ASSERT_EQ(list->items.size(), 1U);

  std::promise<WatchEvent> first;
  auto watch = client.watch(
      pods, "a",
      {.label_selector = {}, .field_selector = {}, .resource_version = list->resource_version},
      {.event = [&](WatchEvent event) { first.set_value(std::move(event)); }, .ended = {}});
  api.put(fake_pod_path("a", "two"), fake_pod("a", "two"));
  const auto event = first.get_future().get();
  EXPECT_EQ(event.type, "ADDED");
  EXPECT_EQ(key_of(event.object), "a/two");
}

TEST_F(Https, sends_the_token_of_a_file) {
  ASSERT_TRUE(files->write("token", "first\n").ok());
  access.token_file = "token";
  auto transport = make_https_transport(access, *files, world.runtime());
  ASSERT_TRUE(transport.ok());
  ASSERT_TRUE((*transport)->send(make_request("GET", "/api/v1/pods")).ok());
  EXPECT_THAT(authorizations, ElementsAre("Bearer first"));
}

TEST_F(Https, ends_its_streams_when_it_goes) {
  auto transport = make_https_transport(access, *files, world.runtime());
  ASSERT_TRUE(transport.ok());
  std::promise<void> opened;
  auto stream = (*transport)
                    ->open_stream(make_request("GET", "/api/v1/pods?watch=true"),
                                  {.opened = [&](const net::Response&) { opened.set_value(); },
                                   .data = {},
                                   .ended = {}});
  opened.get_future().get();
  transport->reset();
}

TEST_F(Https, reports_a_server_that_is_not_there) {
  server->stop();
  auto transport = make_https_transport(access, *files, world.runtime());
  ASSERT_TRUE(transport.ok());
  EXPECT_THAT((*transport)->send(make_request("GET", "/")).error().message(),
              HasSubstr("connection refused"));
  std::promise<Result<>> end;
  auto stream = (*transport)
                    ->open_stream(make_request("GET", "/"),
                                  {.opened = {}, .data = {}, .ended = [&](Result<> outcome) {
                                     end.set_value(outcome);
                                   }});
  EXPECT_EQ(end.get_future().get().error().code(), Code::unavailable);
}

}  // namespace
}  // namespace dibs::client
