#pragma once
// When a pod has to leave a node for the sake of its disk, which one, and in which words: the
// kubelet's. Functions of their arguments alone.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "base/result.h"
#include "json/value.h"
#include "node/pods/storage_usage.h"

namespace dibs::node {

inline constexpr const char* kEvicted = "Evicted";

/// The pod, one of its containers or one of its volumes has a limit.
bool has_storage_limits(const json::Value& pod);
/// The first limit that is exceeded, as the pod's status says it; "": none.
std::string exceeded_limit(const json::Value& pod, const PodUsage& usage);

/// `nodefs.available<10%`: an amount, or a part of the whole.
struct EvictionThreshold {
  std::string signal = {};
  std::optional<Quantity> amount = {};
  double part = 0;
};

/// As --eviction-hard has them, with commas between. "": none. Errors name what is wrong.
Result<std::vector<EvictionThreshold>> parse_thresholds(std::string_view text);

struct FileSystemRoom {
  std::uint64_t capacity = 0;
  std::uint64_t available = 0;
  std::uint64_t inodes = 0;  // 0: it does not count them
  std::uint64_t inodes_free = 0;
};

struct MetThreshold {
  UsageUnit unit = UsageUnit::bytes;
  std::int64_t threshold = 0;
  std::int64_t available = 0;

  /// "ephemeral-storage" or "inodes".
  std::string_view resource() const;
};

std::vector<MetThreshold> met_thresholds(const std::vector<EvictionThreshold>& thresholds,
                                         const FileSystemRoom& nodefs,
                                         const FileSystemRoom& imagefs);

struct EvictionCandidate {
  json::Value pod = {};
  PodUsage usage = {};  // in the unit of what is short
};

/// Priority of the system's own: never evicted, and taken under pressure.
bool is_critical(const json::Value& pod);
/// The first to go comes first: above its request, of low priority, most above its request.
void rank_for_eviction(std::vector<EvictionCandidate>& pods, const MetThreshold& met);
std::string eviction_message(const EvictionCandidate& pod, const MetThreshold& met);

}  // namespace dibs::node
