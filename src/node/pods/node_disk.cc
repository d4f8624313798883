#include "node/pods/node_disk.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/log.h"
#include "base/strings.h"
#include "node/pods/container_config.h"
#include "node/pods/pod_spec.h"
#include "runtime/blocking.h"

namespace dibs::node {
namespace {

using json::Value;

constexpr Duration kPeriod = std::chrono::seconds(10);
// Measuring takes at most this part of the time.
constexpr int kSpare = 20;
constexpr Duration kPodLeaves = std::chrono::seconds(30);
// A younger one may be about to be used.
constexpr Duration kYoungImage = std::chrono::minutes(2);
constexpr Duration kImagePeriod = std::chrono::minutes(5);

}  // namespace

FileSystemRoom room_of(const std::string& folder) {
  struct statvfs found = {};
  if (::statvfs(folder.c_str(), &found) != 0) return {};
  return {found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize, found.f_files,
          found.f_favail};
}

NodeDisk::NodeDisk(runtime::Runtime& runtime, ContainerRuntime& containers, PodWorkers& workers,
                   NodeObject& node, client::EventRecorder& events, const NodeFacts& facts,
                   NodeDiskOptions options)
    : runtime_(runtime),
      containers_(containers),
      workers_(workers),
      node_(node),
      events_(events),
      facts_(facts),
      options_([&] {
        NodeDiskOptions all = std::move(options);
        if (!all.room) all.room = room_of;
        return all;
      }()) {}

NodeDisk::~NodeDisk() { stop(); }

void NodeDisk::start() { arm(); }

void NodeDisk::stop() { gate_->close(); }

void NodeDisk::arm() {
  runtime_.timers.after(kPeriod, [this, held = gate_] {
    client::GateEntry inside(*held);
    if (!inside) return;
    look();
    arm();
  });
}

void NodeDisk::look() {
  const runtime::Blocking waits;
  rotate_logs(containers_, options_.logs, runtime_.clock.now());
  // Before all pods are known, none is known to be over.
  if (!workers_.listed()) return;
  known_ = containers_by_pod();
  note_images();
  const std::vector<Value> pods = workers_.active();
  const bool left = options_.limits && enforce_limits(pods);
  std::vector<MetThreshold> short_of = met();
  show_pressure(!short_of.empty());
  if (short_of.empty()) return collect_images_above_bound();
  if (!left) make_room(short_of.front(), pods);
}

NodeDisk::Containers NodeDisk::containers_by_pod() {
  Containers out;
  if (auto all = containers_.list_containers()) {
    for (auto& container : *all) {
      const auto uid = container.labels.find(kPodUidLabel);
      if (uid != container.labels.end()) out[uid->second].push_back(std::move(container));
    }
  }
  return out;
}

PodUsage NodeDisk::measure(const Value& pod, UsageUnit unit) {
  if (options_.usage) return options_.usage(pod, unit);
  return measure_pod(facts_, options_.log_root, pod, known_[std::string(uid_of(pod))], containers_,
                     unit);
}

bool NodeDisk::enforce_limits(const std::vector<Value>& pods) {
  bool any = false;
  std::set<std::string> limited;
  for (const Value& pod : pods) {
    if (!has_storage_limits(pod)) continue;
    const std::string uid(uid_of(pod));
    limited.insert(uid);
    const Duration began = runtime_.clock.steady();
    Duration& due = due_[uid];
    if (began < due) continue;
    const std::string message = exceeded_limit(pod, measure(pod, UsageUnit::bytes));
    const Duration now = runtime_.clock.steady();
    due = now + (now - began) * kSpare;
    if (message.empty() || is_critical(pod)) continue;
    workers_.evict(uid, {message, false});
    any = true;
  }
  std::erase_if(due_, [&](const auto& entry) { return !limited.contains(entry.first); });
  return any;
}

std::vector<MetThreshold> NodeDisk::met() const {
  if (options_.thresholds.empty()) return {};
  return met_thresholds(options_.thresholds, options_.room(facts_.root),
                        options_.room(options_.images));
}

void NodeDisk::show_pressure(bool pressed) {
  const Duration now = runtime_.clock.steady();
  if (pressed) last_short_ = now;
  if (last_short_ && now - *last_short_ >= options_.pressure_transition && !pressed) {
    last_short_.reset();
  }
  under_pressure_ = last_short_.has_value();
  node_.set_disk_pressure(under_pressure_);
}

void NodeDisk::make_room(const MetThreshold& short_of, const std::vector<Value>& pods) {
  const Duration now = runtime_.clock.steady();
  if (!leaving_.empty() && workers_.is_active(leaving_) && now < leaving_until_) return;
  leaving_.clear();
  client::EventInput event;
  event.regarding = Value::object(
      {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", facts_.name}, {"uid", facts_.name}});
  event.warning = true;
  event.reason = "EvictionThresholdMet";
  event.note = cat("Attempting to reclaim ", short_of.resource());
  events_.record(std::move(event));

  remove_dead_containers(pods);
  collect_images(std::numeric_limits<std::uint64_t>::max());
  const std::vector<MetThreshold> still = met();
  if (still.empty()) return;

  std::vector<EvictionCandidate> candidates;
  for (const Value& pod : pods) {
    if (!is_critical(pod)) candidates.push_back({pod, measure(pod, still.front().unit)});
  }
  if (candidates.empty()) {
    log::warn("the disk is short, and no pod can be sent away", {{"node", facts_.name}});
    return;
  }
  rank_for_eviction(candidates, still.front());
  leaving_ = uid_of(candidates.front().pod);
  leaving_until_ = now + kPodLeaves;
  workers_.evict(leaving_, {eviction_message(candidates.front(), still.front()), true});
}

void NodeDisk::remove_dead_containers(const std::vector<Value>& pods) {
  std::set<std::string> active;
  for (const Value& pod : pods) active.emplace(uid_of(pod));
  for (const auto& [uid, containers] : known_) {
    // What a pod that goes on has from before is shown, and soon replaced.
    if (active.contains(uid)) continue;
    for (const auto& container : containers) {
      if (container.state != ContainerState::exited) continue;
      if (auto removed = containers_.remove_container(container.id); !removed) {
        log::warn("container cannot be removed",
                  {{"container", container.id}, {"error", removed.error().message()}});
      }
    }
  }
}

void NodeDisk::note_images() {
  const auto images = containers_.list_images();
  if (!images) return;
  std::set<std::string> used;
  for (const auto& [uid, containers] : known_) {
    for (const auto& container : containers) used.insert(container.image_id);
  }
  const Duration now = runtime_.clock.steady();
  std::map<std::string, ImageAge> seen;
  for (const auto& image : *images) {
    if (image.pinned) continue;
    const auto before = images_.find(image.id);
    ImageAge age = before == images_.end() ? ImageAge{now, Duration(0)} : before->second;
    const bool in_use = used.contains(image.id) ||
                        std::any_of(image.digests.begin(), image.digests.end(),
                                    [&](const auto& digest) { return used.contains(digest); });
    if (in_use) age.last_used = now;
    seen[image.id] = age;
  }
  images_ = std::move(seen);
}

void NodeDisk::collect_images(std::uint64_t bytes) {
  const auto images = containers_.list_images();
  if (!images) return;
  const Duration now = runtime_.clock.steady();
  std::vector<std::pair<ImageAge, const ImageInfo*>> unused;
  for (const auto& image : *images) {
    const auto age = images_.find(image.id);
    if (age == images_.end() || age->second.last_used == now) continue;
    if (now - age->second.first_seen < kYoungImage) continue;
    unused.emplace_back(age->second, &image);
  }
  std::sort(unused.begin(), unused.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.last_used, a.first.first_seen) <
           std::pair(b.first.last_used, b.first.first_seen);
  });
  std::uint64_t freed = 0;
  for (const auto& [age, image] : unused) {
    if (freed >= bytes) return;
    // One that another node's container has is kept, with an error.
    if (containers_.remove_image(image->id)) freed += image->size;
  }
}

void NodeDisk::collect_images_above_bound() {
  const Duration now = runtime_.clock.steady();
  if (now < next_image_look_) return;
  next_image_look_ = now + kImagePeriod;
  const FileSystemRoom room = options_.room(options_.images);
  if (room.capacity == 0) return;
  const std::uint64_t percent = 100 - room.available * 100 / room.capacity;
  if (options_.image_gc_high >= 100 || percent < static_cast<std::uint64_t>(options_.image_gc_high))
    return;
  const std::uint64_t wanted =
      room.capacity / 100 * static_cast<std::uint64_t>(100 - options_.image_gc_low);
  if (wanted > room.available) collect_images(wanted - room.available);
}

}  // namespace dibs::node
