#include "scheduler/attempt.h"

#include <algorithm>

#include "base/strings.h"
#include "scheduler/scores.h"

namespace dibs::scheduler {
namespace {

/// As many nodes that can take a pod are compared.
constexpr std::size_t kEnough = 100;

}  // namespace

struct Placer::Search {
  const Pod& pod;
  const Profile& profile;
  FilterRun filters;
  Decision made;
  Reasons reasons;
  std::string error;
  std::vector<Candidate> batch;

  void note_unavailable(const std::vector<std::size_t>& claims) {
    for (const std::size_t claim : claims) {
      auto& all = made.unavailable;
      if (std::find(all.begin(), all.end(), claim) == all.end()) all.push_back(claim);
    }
  }

  /// What a node without the devices said.
  void refused(const NodeDevices& found) {
    if (found.kind == NodeDevices::Kind::failed) {
      // Other nodes may still do; upstream would give up the whole pod.
      if (error.empty()) error = found.reason;
      return;
    }
    reasons.add(found.reason, Plugin::dynamic_resources);
    note_unavailable(found.unavailable);
  }
};

bool Placer::try_batch(Search& search) {
  if (search.batch.empty()) return false;
  score_nodes(state_, search.pod, search.profile, search.batch);
  Decision& made = search.made;
  std::vector<NodeDevices> found(search.batch.size());
  const bool devices = made.run.ready == DeviceRun::Ready::go;
  if (devices && made.run.prioritized) {
    std::vector<Candidate> able;
    std::vector<NodeDevices> theirs;
    for (Candidate& candidate : search.batch) {
      NodeDevices here = devices_.check(made.run, *candidate.node);
      if (here.kind != NodeDevices::Kind::fits) {
        search.refused(here);
        continue;
      }
      candidate.preference = Devices::preference(made.run, here);
      able.push_back(candidate);
      theirs.push_back(std::move(here));
    }
    if (able.empty()) return false;
    score_preferences(search.profile, able);
    const auto best =
        std::max_element(able.begin(), able.end(),
                         [](const Candidate& a, const Candidate& b) { return a.score < b.score; });
    made.node = best->node;
    made.devices = std::move(theirs[static_cast<std::size_t>(best - able.begin())]);
    return true;
  }
  if (!devices) {
    made.node =
        std::max_element(search.batch.begin(), search.batch.end(),
                         [](const Candidate& a, const Candidate& b) { return a.score < b.score; })
            ->node;
    return true;
  }
  std::stable_sort(search.batch.begin(), search.batch.end(),
                   [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  for (const Candidate& candidate : search.batch) {
    NodeDevices here = devices_.check(made.run, *candidate.node);
    if (here.kind == NodeDevices::Kind::fits) {
      made.node = candidate.node;
      made.devices = std::move(here);
      return true;
    }
    search.refused(here);
  }
  return false;
}

Decision Placer::place(const Pod& pod, const Profile& profile, Time now) {
  Search search{pod,
                profile,
                FilterRun(state_, pod, profile,
                          [this, &profile](std::string_view name) {
                            return profile.devices && devices_.serves(name);
                          }),
                {},
                {},
                {},
                {}};
  Decision& made = search.made;
  const std::size_t count = state_.nodes().size();
  if (profile.devices) {
    made.run = devices_.prepare(pod, now, profile.binding_timeout);
    if (made.run.ready == DeviceRun::Ready::wait) {
      made.kind = Decision::Kind::waits;
      return std::move(search.made);
    }
  } else if (!pod.claims.empty()) {
    made.failure.message = cat("profile ", profile.name,
                               " does not have the plugin DynamicResources, which pods with "
                               "resource claims need");
    return std::move(search.made);
  }
  if (count == 0) {
    made.failure.message = "no nodes available to schedule pods";
    made.failure.plugins = ~PluginSet{0};
    return std::move(search.made);
  }
  if (made.run.ready == DeviceRun::Ready::rejected) {
    made.failure.message = unavailable_message(count, made.run.reason);
    made.failure.plugins = bit(Plugin::dynamic_resources);
    return std::move(search.made);
  }

  std::vector<NodeInfo*> order;
  // Room was made for it there.
  NodeInfo* nominated = state_.find(state_.nominated_node(pod.key));
  if (nominated != nullptr && search.filters.check(*nominated) == nullptr) {
    search.batch.push_back({nominated});
    if (try_batch(search)) {
      made.kind = Decision::Kind::placed;
      return std::move(search.made);
    }
    search.reasons = Reasons();
    search.batch.clear();
  }
  const std::size_t first = start_ % count;
  const std::size_t enough =
      std::max(kEnough, count * static_cast<std::size_t>(profile.percentage_to_score) / 100);
  for (std::size_t i = 0; i < count; ++i) {
    NodeInfo* node = state_.nodes()[(first + i) % count];
    if (const Refused* refused = search.filters.check(*node)) {
      search.reasons.add(*refused);
      if (refused->resolvable) made.resolvable.push_back(node);
    } else if (made.run.refused != nullptr && made.run.refused->still(*node)) {
      search.reasons.add(kNoDevices, Plugin::dynamic_resources);
    } else {
      search.batch.push_back({node});
    }
    const bool last = i + 1 == count;
    if (!last && search.batch.size() < enough) continue;
    if (try_batch(search)) {
      start_ = first + i + 1;
      made.kind = Decision::Kind::placed;
      return std::move(search.made);
    }
    search.batch.clear();
  }
  made.failure.plugins = search.reasons.plugins();
  if (!search.error.empty()) {
    made.failure.error = true;
    made.failure.message = cat("running \"DynamicResources\" filter plugin: ", search.error);
    made.failure.plugins |= bit(Plugin::dynamic_resources);
  } else {
    made.failure.message = unavailable_message(count, search.reasons.text());
  }
  return std::move(search.made);
}

}  // namespace dibs::scheduler
