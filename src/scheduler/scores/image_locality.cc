// Nodes that have the pod's images already. A large image counts more, and one that few nodes have
// less: else all its pods would crowd there.

#include <algorithm>
#include <string>

#include "base/strings.h"
#include "scheduler/scores/score.h"

namespace dibs::scheduler {
namespace {

constexpr std::int64_t kMegabyte = 1024 * 1024;
/// Less than this is not worth waiting for.
constexpr std::int64_t kLeast = 23 * kMegabyte;
constexpr std::int64_t kMostPerContainer = 1000 * kMegabyte;

/// One of the pod's images that some nodes have.
struct Known {
  const NodeImage* image;
  std::int64_t worth;
};

void look_up(const ScoreRun& run, std::string_view name, std::vector<Known>& found) {
  const std::size_t colon = name.rfind(':');
  const std::size_t slash = name.rfind('/');
  const bool tagged =
      colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash);
  const NodeImage* image = run.state.image(tagged ? std::string(name) : cat(name, ":latest"));
  if (image == nullptr) return;
  const double share =
      static_cast<double>(image->nodes.size()) / static_cast<double>(run.state.nodes().size());
  found.push_back({image, static_cast<std::int64_t>(static_cast<double>(image->size) * share)});
}

void add(const ScoreRun& run, std::int64_t weight) {
  if (!run.state.knows_images()) return;
  const json::Value& spec = run.pod.object["spec"];
  std::vector<Known> known;
  for (const char* list : {"initContainers", "containers"}) {
    for (const json::Value& container : spec[list].items()) {
      look_up(run, container["image"].as_string(), known);
    }
  }
  for (const json::Value& volume : spec["volumes"].items()) {
    if (!volume["image"].is_object()) continue;
    look_up(run, volume["image"]["reference"].as_string(), known);
  }
  std::int64_t all = 0;
  for (const Known& one : known) all += one.worth;
  if (all <= kLeast) return;
  const std::size_t containers = spec["initContainers"].size() + spec["containers"].size();
  const std::int64_t most =
      kMostPerContainer * static_cast<std::int64_t>(std::max<std::size_t>(containers, 1));
  for (Candidate& candidate : run.candidates) {
    std::int64_t sum = 0;
    for (const Known& one : known) {
      if (one.image->nodes.contains(&run.node(candidate))) sum += one.worth;
    }
    sum = std::clamp(sum, kLeast, most);
    candidate.score += weight * (kMostScore * (sum - kLeast) / (most - kLeast));
  }
}

}  // namespace

extern const Score kImageLocality;
constinit const Score kImageLocality = {"ImageLocality", 1, add};

}  // namespace dibs::scheduler
