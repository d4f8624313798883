#pragma once
// The disk of a node: logs rotate, pods that take more than their limits leave, and when the disk
// itself runs short, the node says so, throws away what nobody needs, and sends pods away.
//
// Looked at every ten seconds. Pods without limits are not measured unless the disk is short; one
// whose files take long to count is measured less often, so that counting never takes more than a
// twentieth of the time. One pod at a time goes for lack of room, and the next not before that one
// has made room, or half a minute has passed.
//
// Not for simulated nodes: nothing of theirs is on a disk. Blocks on the executor; thread-safe.

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/event_recorder.h"
#include "client/gate.h"
#include "node/pods/eviction_rules.h"
#include "node/pods/log_rotation.h"
#include "node/pods/node_object.h"
#include "node/pods/pod_workers.h"
#include "runtime/runtime.h"

namespace dibs::node {

struct NodeDiskOptions {
  std::string images = {};  // folder of images
  std::string log_root = {};
  std::vector<EvictionThreshold> thresholds = {};
  /// How long the disk must have had room again before the node says so.
  Duration pressure_transition = std::chrono::minutes(5);
  /// Unused images go when their disk is fuller than this, until it is less full than that.
  int image_gc_high = 85;
  int image_gc_low = 80;
  /// Limits of pods are enforced.
  bool limits = true;
  LogPolicy logs = {};
  /// In place of the machine's, for tests.
  std::function<FileSystemRoom(const std::string& folder)> room = {};
  std::function<PodUsage(const json::Value& pod, UsageUnit unit)> usage = {};
};

/// Of the file system that a folder is on; all zero where that cannot be told.
FileSystemRoom room_of(const std::string& folder);

class NodeDisk {
 public:
  /// All must outlive it.
  NodeDisk(runtime::Runtime& runtime, ContainerRuntime& containers, PodWorkers& workers,
           NodeObject& node, client::EventRecorder& events, const NodeFacts& facts,
           NodeDiskOptions options);
  /// As stop().
  ~NodeDisk();
  NodeDisk(const NodeDisk&) = delete;
  NodeDisk& operator=(const NodeDisk&) = delete;

  void start();
  /// Nothing of it runs when this returns.
  void stop();
  /// What is due now.
  void look();
  bool under_pressure() const { return under_pressure_; }

 private:
  using Containers = std::map<std::string, std::vector<ContainerStatus>>;  // by pod

  void arm();
  Containers containers_by_pod();
  PodUsage measure(const json::Value& pod, UsageUnit unit);
  bool enforce_limits(const std::vector<json::Value>& pods);
  std::vector<MetThreshold> met() const;
  void show_pressure(bool pressed);
  void make_room(const MetThreshold& short_of, const std::vector<json::Value>& pods);
  void remove_dead_containers(const std::vector<json::Value>& pods);
  void note_images();
  void collect_images(std::uint64_t bytes);
  void collect_images_above_bound();

  runtime::Runtime& runtime_;
  ContainerRuntime& containers_;
  PodWorkers& workers_;
  NodeObject& node_;
  client::EventRecorder& events_;
  const NodeFacts& facts_;
  const NodeDiskOptions options_;
  const std::shared_ptr<client::Gate> gate_ = std::make_shared<client::Gate>();

  std::atomic<bool> under_pressure_{false};

  // Of look() alone, which runs one at a time.
  Containers known_;
  std::map<std::string, Duration> due_;  // the next measurement, by pod
  std::optional<Duration> last_short_;
  std::string leaving_;  // the pod that goes for lack of room
  Duration leaving_until_{0};
  struct ImageAge {
    Duration first_seen{0};
    Duration last_used{0};
  };
  std::map<std::string, ImageAge> images_;  // by id
  Duration next_image_look_{0};
};

}  // namespace dibs::node
