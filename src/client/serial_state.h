#pragma once
// The state of a component that calls the API and goes on with each answer, one step at a time.
// What has been posted and what is still to be answered keeps it alive, and does nothing once its
// gate is closed.

#include <functional>
#include <memory>
#include <utility>

#include "client/client.h"
#include "client/gate.h"
#include "client/serial.h"
#include "runtime/runtime.h"

namespace dibs::client {

/// `State` derives from it, and is held by a shared_ptr.
template <typename State>
struct SerialState : std::enable_shared_from_this<State> {
  SerialState(Client& api, runtime::Runtime& world)
      : client(api), runtime(world), serial(std::make_shared<Serial>(world.executor)) {}

  Client& client;
  runtime::Runtime& runtime;
  const std::shared_ptr<Serial> serial;
  Gate gate;

  /// On `serial`. Thread-safe.
  void post(std::function<void(State&)> task) {
    serial->post([self = this->shared_from_this(), task = std::move(task)] {
      GateEntry inside(self->gate);
      if (inside) task(*self);
    });
  }

  /// Goes on on `serial` with the answer.
  void call(Request request, void (State::*then)(const Result<json::Value>&)) {
    client.call(
        std::move(request), [self = this->shared_from_this(), then](Result<json::Value> answer) {
          self->post([then, answer = std::move(answer)](State& state) { (state.*then)(answer); });
        });
  }
};

}  // namespace dibs::client
