#include "drivers/nvidia/health.h"

#include "base/strings.h"

namespace dibs::drivers::nvidia {
namespace {

constexpr const char* kXid = "gpu.nvidia.com/xid";
constexpr const char* kLost = "gpu.nvidia.com/gpu-lost";
constexpr const char* kEcc = "gpu.nvidia.com/ecc";
constexpr const char* kRows = "gpu.nvidia.com/row-remap";
constexpr const char* kUnmonitored = "gpu.nvidia.com/unmonitored";
constexpr const char* kUnfit = "NoSchedule";
constexpr const char* kShownOnly = "None";

// A program did something wrong: the GPU goes on.
constexpr std::uint64_t kXidsOfPrograms[] = {13, 31, 43, 45, 68, 109};

}  // namespace

Health::Health(std::set<std::uint64_t> harmless_xids) : harmless_(std::move(harmless_xids)) {
  harmless_.insert(std::begin(kXidsOfPrograms), std::end(kXidsOfPrograms));
}

bool Health::put(Marks& marks, Mark mark) {
  Mark& kept = marks[mark.key];
  if (kept.key == mark.key && kept.value == mark.value && kept.effect == mark.effect) return false;
  // What a program did wrong afterwards does not make a broken GPU whole.
  if (kept.effect == kUnfit && mark.effect == kShownOnly) return false;
  kept = std::move(mark);
  return true;
}

bool Health::saw(const nvml::Event& event, const std::string& device, Time now) {
  Mark mark;
  switch (event.kind) {
    case nvml::EventKind::xid:
      mark = {kXid, cat(event.data), harmless_.contains(event.data) ? kShownOnly : kUnfit,
              cat("XID ", event.data), now};
      break;
    case nvml::EventKind::ecc_double:
      mark = {kEcc, "double-bit", kUnfit, "an error of memory that could not be corrected", now};
      break;
    case nvml::EventKind::ecc_single:
    case nvml::EventKind::other:
      return false;
  }
  const MutexLock lock(mutex_);
  return put(device.empty() ? gpus_[event.gpu_uuid] : devices_[device], std::move(mark));
}

bool Health::set_lost(const std::string& gpu_uuid, bool lost, Time now) {
  const MutexLock lock(mutex_);
  Marks& marks = gpus_[gpu_uuid];
  if (lost) return put(marks, {kLost, "", kUnfit, "the GPU is lost", now});
  if (!marks.contains(kLost)) return false;
  // It was reset, or is another card: what was wrong before is not any more, or comes again.
  marks.clear();
  return true;
}

bool Health::set_rows(const std::string& gpu_uuid, const nvml::RemappedRows& rows, Time now) {
  const MutexLock lock(mutex_);
  Marks& marks = gpus_[gpu_uuid];
  if (!rows.failed && !rows.pending) return marks.erase(kRows) > 0;
  return put(marks, {kRows, rows.failed ? "failed" : "pending", kUnfit,
                     rows.failed ? "a row of memory could not be replaced"
                                 : "a row of memory is replaced when the GPU is reset",
                     now});
}

bool Health::set_unmonitored(const std::string& gpu_uuid, const std::string& why, Time now) {
  const MutexLock lock(mutex_);
  Marks& marks = gpus_[gpu_uuid];
  if (why.empty()) return marks.erase(kUnmonitored) > 0;
  return put(marks, {kUnmonitored, "", kShownOnly, cat("its errors are not told: ", why), now});
}

bool Health::forget_device(const std::string& device) {
  const MutexLock lock(mutex_);
  return devices_.erase(device) > 0;
}

bool Health::is_lost(const std::string& gpu_uuid) const {
  const MutexLock lock(mutex_);
  const auto found = gpus_.find(gpu_uuid);
  return found != gpus_.end() && found->second.contains(kLost);
}

std::vector<Mark> Health::marks_of(const Part& part) const {
  const MutexLock lock(mutex_);
  Marks all;
  if (const auto own = devices_.find(part.name); own != devices_.end()) all = own->second;
  if (const auto of_gpu = gpus_.find(part.gpu_uuid); of_gpu != gpus_.end()) {
    for (const auto& [key, mark] : of_gpu->second) all.insert_or_assign(key, mark);
  }
  std::vector<Mark> out;
  for (auto& [key, mark] : all) out.push_back(std::move(mark));
  return out;
}

driver::DeviceHealth Health::health_of(const std::string& pool, const Part& part) const {
  driver::DeviceHealth out;
  out.pool = pool;
  out.device = part.name;
  out.health = driver::Health::healthy;
  for (const Mark& mark : marks_of(part)) {
    if (mark.effect == kUnfit) {
      if (out.health != driver::Health::unhealthy) out.message.clear();
      out.health = driver::Health::unhealthy;
      append(out.message, out.message.empty() ? "" : "; ", mark.message);
    } else if (mark.key == kUnmonitored && out.health == driver::Health::healthy) {
      out.health = driver::Health::unknown;
      out.message = mark.message;
    }
  }
  return out;
}

}  // namespace dibs::drivers::nvidia
