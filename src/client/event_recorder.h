#pragma once
// Events about objects (events.k8s.io/v1), as `kubectl describe` shows them.
//
// Recording never waits and never fails the caller: events are sent one after another in the
// background, the queue is bounded, and what the server refuses is dropped after a few tries. An
// event that repeats (same object, reason, action and note) within six minutes of the last time
// becomes a series: the first Event's count grows instead of a new Event being written.
//
// Thread-safe.

#include <memory>
#include <string>

#include "client/client.h"
#include "json/value.h"
#include "runtime/runtime.h"

namespace dibs::client {

struct EventRecorderOptions {
  std::string controller = {};  // "dibs.io/scheduler"
  std::string instance = {};    // this process: "scheduler-host-1"
  std::size_t max_queued = 10'000;
  /// Writes events as most of Kubernetes' own controllers still do: core/v1 with a source and a
  /// count.
  bool core = false;
  /// Of core events: the machine that they come from.
  std::string host = {};
};

struct EventInput {
  /// The object itself, or an ObjectReference with apiVersion, kind, namespace, name, uid, and
  /// fieldPath where a part of it is meant.
  json::Value regarding = {};
  json::Value related = {};  // null for none
  bool warning = false;
  std::string reason = {};  // "FailedScheduling"
  std::string action = {};  // "Scheduling"
  std::string note = {};    // cut at 1024 bytes
};

class EventRecorder {
 public:
  /// `client` and `runtime` must outlive it.
  EventRecorder(Client& client, runtime::Runtime& runtime, EventRecorderOptions options);
  ~EventRecorder();
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  void record(EventInput event);
  /// Events dropped because the queue was full or the server refused them.
  std::uint64_t dropped() const;
  /// Nothing waits to be sent.
  bool idle() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// The reference to an object as events and owners carry it.
json::Value object_reference(const json::Value& object);

}  // namespace dibs::client
