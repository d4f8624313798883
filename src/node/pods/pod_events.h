#pragma once
// Events about pods and their containers, under the name that `kubectl describe` shows for a node's
// agent.

#include <string>
#include <string_view>

#include "client/event_recorder.h"
#include "json/value.h"

namespace dibs::node {

class PodEvents {
 public:
  /// `recorder` must outlive it.
  explicit PodEvents(client::EventRecorder& recorder) : recorder_(recorder) {}

  void normal(const json::Value& pod, std::string_view container, std::string reason,
              std::string note) {
    record(pod, container, false, std::move(reason), std::move(note));
  }
  void warning(const json::Value& pod, std::string_view container, std::string reason,
               std::string note) {
    record(pod, container, true, std::move(reason), std::move(note));
  }

 private:
  /// `container` "" : about the pod as a whole.
  void record(const json::Value& pod, std::string_view container, bool warning, std::string reason,
              std::string note);

  client::EventRecorder& recorder_;
};

}  // namespace dibs::node
