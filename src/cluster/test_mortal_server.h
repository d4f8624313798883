#pragma once
// For tests under virtual time: an API server that is killed at a write of its store and started
// again on what it has written, while everybody who talks to it goes on.
//
// With the kill all answers under way are lost, watches break, and nobody is heard until the next
// one has started. Callers are far, and administrators: nothing but HTTP gets through.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/transport.h"
#include "runtime/sim_runtime.h"
#include "server/api_server.h"
#include "store/memory_store.h"
#include "store/test_dying_store.h"

namespace dibs::cluster::test {

class MortalServer {
 public:
  static constexpr Duration kOutage = std::chrono::seconds(2);
  /// Called after each write that has arrived.
  using Written = std::function<void(const std::vector<std::string>& keys)>;

  /// What a server finds when it starts, where it is not the only one who writes.
  using OpenStore = std::function<std::unique_ptr<store::Store>()>;

  MortalServer(runtime::SimRuntime& sim, server::Options options, Written written = {},
               OpenStore open_store = {})
      : sim_(sim),
        options_(std::move(options)),
        written_(std::move(written)),
        open_store_(std::move(open_store)),
        stored_(store::make_memory_store()) {}
  /// Nobody calls it any more.
  ~MortalServer() {
    for (const auto& life : lives_) {
      if (life->server) life->server->close();
    }
    sim_.run_until_idle();
  }
  MortalServer(const MortalServer&) = delete;
  MortalServer& operator=(const MortalServer&) = delete;

  /// At the n-th write from now, or of the start that follows, the first being 0; once. Events and
  /// leases do not count: nobody goes on from what they say.
  void kill_at(int write, bool arrives) {
    death_ = {write, arrives};
    if (Life* life = present()) life->store.die_at(write, arrives);
  }
  bool died() const { return died_; }
  bool is_up() const { return !lives_.empty() && lives_.back()->is_up(); }

  /// One that dies while it starts is started again like any other.
  void start() {
    Life& life = *lives_.emplace_back(std::make_unique<Life>(*this));
    if (death_.write >= 0 && !died_) life.store.die_at(death_.write, death_.arrives);
    auto opened = server::ApiServer::open(sim_.runtime(), life.store, options_);
    // One that did not notice its death is kept as others are: what it has begun goes on.
    if (opened.ok()) life.server = std::move(opened).value();
    if (life.dead) return;
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    client::InProcessOptions how;
    how.pump = [this] { return sim_.run_until_idle() > 0; };
    life.way = client::make_in_process_transport(life.server->handler(), sim_.runtime(), how);
  }

  /// It must be gone before the server is.
  std::unique_ptr<client::Transport> connect() { return std::make_unique<Way>(*this); }
  /// What is there, whether somebody serves it or not.
  const store::Store& stored() const { return *stored_; }

 private:
  /// From one start to the kill. Whatever a dead one still does reaches nobody.
  struct Life {
    explicit Life(MortalServer& owner)
        : view(owner.open_store_ ? owner.open_store_() : nullptr),
          store(view ? *view : *owner.stored_,
                {owner.written_, [this, &owner] { owner.bury(*this); }, matters}) {}
    bool is_up() const { return way && !dead; }

    const std::unique_ptr<store::Store> view;
    store::testing::DyingStore store;
    std::unique_ptr<server::ApiServer> server;
    std::unique_ptr<client::Transport> way;
    bool dead = false;
    std::vector<std::function<void()>> last_words;  // to those who wait for something
  };

  using Done = std::function<void(Result<client::Response>)>;

  class Way final : public client::Transport {
   public:
    explicit Way(MortalServer& server) : server_(server) {}

    Result<client::Response> send(client::Request request) override {
      Life* life = server_.present();
      if (life == nullptr) return lost();
      auto answer = life->way->send(http(std::move(request)));
      if (life->dead) return lost();
      return answer;
    }

    void send_async(client::Request request, Done given) override {
      auto done = std::make_shared<Done>(std::move(given));
      const auto answer = [done](Result<client::Response> got) {
        if (const Done call = std::exchange(*done, nullptr)) call(std::move(got));
      };
      Life* life = server_.hear([answer] { answer(lost()); });
      if (life == nullptr) return;
      life->way->send_async(http(std::move(request)), [answer, life](Result<client::Response> got) {
        if (!life->dead) answer(std::move(got));
      });
    }

    std::unique_ptr<client::TransportStream> open_stream(client::Request request,
                                                         client::StreamHandlers given) override {
      auto open = std::make_shared<Open>();
      open->handlers = std::move(given);
      const auto end = [open](Result<> outcome) {
        const auto handlers = std::exchange(open->handlers, {});
        if (handlers.ended) handlers.ended(std::move(outcome));
      };
      Life* life = server_.hear([end] { end(lost()); });
      if (life != nullptr) {
        client::StreamHandlers inner;
        inner.opened = [open, life](const net::Response& head) {
          if (!life->dead && open->handlers.opened) open->handlers.opened(head);
        };
        inner.data = [open, life](std::string_view bytes) {
          if (!life->dead && open->handlers.data) open->handlers.data(bytes);
        };
        inner.ended = [end, life](Result<> outcome) {
          if (!life->dead) end(std::move(outcome));
        };
        open->stream = life->way->open_stream(http(std::move(request)), std::move(inner));
      }
      return std::make_unique<Handle>(open);
    }

   private:
    struct Open {
      client::StreamHandlers handlers;
      std::unique_ptr<client::TransportStream> stream;
    };
    struct Handle final : client::TransportStream {
      explicit Handle(std::shared_ptr<Open> of) : open(std::move(of)) {}
      ~Handle() override {
        open->handlers = {};
        open->stream.reset();
      }
      const std::shared_ptr<Open> open;
    };

    static client::Request http(client::Request request) {
      request.write_body();
      net::Request& plain = request;
      return {std::move(plain)};
    }

    MortalServer& server_;
  };

  static bool matters(std::string_view key) {
    return !key.starts_with("/registry/events/") && !key.starts_with("/registry/leases/");
  }
  static Error lost() { return Error::unavailable("connection lost"); }

  Life* present() const { return is_up() ? lives_.back().get() : nullptr; }
  /// Who is there to be asked; `lost` is called when it dies, soon where there is nobody.
  Life* hear(std::function<void()> lost) {
    Life* life = present();
    if (life == nullptr) {
      sim_.runtime().executor.post(std::move(lost));
    } else {
      life->last_words.push_back(std::move(lost));
    }
    return life;
  }
  /// Called from the midst of a write: what it does, it does when that has returned.
  void bury(Life& life) {
    life.dead = true;
    died_ = true;
    sim_.runtime().executor.post([&life] {
      if (life.server) life.server->close();
      for (const auto& word : std::exchange(life.last_words, {})) word();
    });
    sim_.runtime().timers.after(kOutage, [this] { start(); });
  }

  struct Death {
    int write = -1;
    bool arrives = false;
  };

  runtime::SimRuntime& sim_;
  const server::Options options_;
  const Written written_;
  const OpenStore open_store_;
  const std::unique_ptr<store::Store> stored_;
  Death death_;
  bool died_ = false;
  std::vector<std::unique_ptr<Life>> lives_;
};

}  // namespace dibs::cluster::test
