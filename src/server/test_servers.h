#pragma once
// For tests of this library: several servers over lagging views of one store, in one thread under
// virtual time. One seed is one history.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "json/parse.h"
#include "server/test_support.h"
#include "store/test_shared_store.h"

namespace dibs::server::test {

/// Views that are behind by chance, and calls that take their time.
inline store::testing::ViewDelays random_delays() {
  using namespace std::chrono_literals;
  return {{1ms, 60ms}, {0ms, 10ms}};
}

class Servers {
 public:
  using Pending = std::shared_ptr<Reply>;

  explicit Servers(std::size_t count, std::uint64_t seed = 1,
                   store::testing::ViewDelays delays = {}, Options options = {})
      : sim({.seed = seed, .shuffle = true}), log(sim.runtime()) {
    for (std::size_t i = 0; i < count; ++i) {
      views.push_back(log.open(delays));
      auto opened = ApiServer::open(sim.runtime(), *views.back(), options);
      EXPECT_TRUE(opened.ok()) << opened.error().message();
      servers.push_back(std::move(opened).value());
    }
    // What starting has left to do.
    sim.advance(std::chrono::seconds(1));
  }
  ~Servers() {
    for (auto& view : views) view->heal();
    for (auto& server : servers) server->close();
    sim.advance(std::chrono::seconds(5));
  }
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  /// Answered as time passes.
  Pending begin(std::size_t at, net::Request request) {
    auto reply = std::make_shared<Reply>();
    servers[at]->handle(calls::Request{std::move(request)}, answer_into(reply));
    return reply;
  }
  Reply wait(const Pending& pending) {
    const bool answered =
        sim.run_until([&] { return pending->status != 0; }, std::chrono::minutes(1));
    EXPECT_TRUE(answered) << "no answer";
    return *pending;
  }
  Reply send(std::size_t at, net::Request request) { return wait(begin(at, std::move(request))); }

  Reply get(std::size_t at, std::string target) {
    return send(at, make_request("GET", std::move(target)));
  }
  Reply post(std::size_t at, std::string target, const Value& body) {
    return send(at, make_request("POST", std::move(target), json::write(body)));
  }
  Reply put(std::size_t at, std::string target, const Value& body) {
    return send(at, make_request("PUT", std::move(target), json::write(body)));
  }
  Pending begin_patch(std::size_t at, std::string target, const Value& patch) {
    return begin(
        at, make_request("PATCH", std::move(target), json::write(patch), patch_media("merge")));
  }
  Reply patch(std::size_t at, std::string target, const Value& patch) {
    return wait(begin_patch(at, std::move(target), patch));
  }
  Reply remove(std::size_t at, std::string target) {
    return send(at, make_request("DELETE", std::move(target)));
  }

  /// All objects below, as they are in truth.
  std::vector<Value> truth(std::string_view prefix) const {
    std::vector<Value> out;
    for (const auto& record : log.range(prefix).records) {
      auto object = json::parse(std::string(*record->value));
      EXPECT_TRUE(object.ok()) << record->key;
      if (object.ok()) out.push_back(std::move(object).value());
    }
    return out;
  }
  std::uint64_t below(std::uint64_t bound) { return sim.runtime().random.below(bound); }
  /// Nothing new is heard of, and sooner or later everybody has heard of everything.
  void settle() { sim.advance(std::chrono::seconds(2)); }

  runtime::SimRuntime sim;
  store::testing::SharedLog log;
  std::vector<std::unique_ptr<store::testing::SharedView>> views;
  std::vector<std::unique_ptr<ApiServer>> servers;
};

}  // namespace dibs::server::test
