#include "scheduler/attempt.h"

#include <algorithm>
#include <bit>

#include "base/strings.h"

namespace dibs::scheduler {
namespace {

/// As many nodes that can take a pod are compared.
constexpr std::size_t kEnough = 100;

bool worse(const Candidate& a, const Candidate& b) { return a.score < b.score; }

}  // namespace

struct Placer::Search {
  const Pod& pod;
  const Profile& profile;
  FilterRun filters;
  Decision made;
  Reasons reasons;
  std::string error;
  bool held = false;  // by the error: no other node will do
  std::vector<Candidate>& batch;
  /// Nodes that refused the same demand before, as bits; they are not asked.
  std::vector<std::uint64_t>& refusing;
  std::size_t first;  // node that is asked first
  /// Of Decision::resolvable, as numbers of nodes from `first` on.
  std::vector<std::size_t> resolvable;
  Consulted* consulted = nullptr;
  std::size_t early = 0;  // of consulted->nodes, found before all nodes were asked in turn

  bool collects() const { return consulted != nullptr && consulted->said == nullptr; }

  void note_unavailable(const std::vector<std::size_t>& claims) {
    for (const std::size_t claim : claims) {
      auto& all = made.unavailable;
      if (std::find(all.begin(), all.end(), claim) == all.end()) all.push_back(claim);
    }
  }

  /// Other nodes are asked, and what these said is heard again with them.
  void start_over() {
    reasons = Reasons(pod);
    error.clear();
    held = false;
    batch.clear();
    resolvable.clear();
  }

  /// What a node without the devices said.
  void refused(const NodeDevices& found) {
    if (found.kind == NodeDevices::Kind::failed) {
      if (error.empty()) error = found.reason;
      held = held || (found.holds && made.run.may_fail);
      return;
    }
    reasons.add(found.reason, Plugin::dynamic_resources);
    if (found.lacks_resources) reasons.also(Plugin::resources_fit);
    note_unavailable(found.unavailable);
  }
};

DeviceRun Placer::prepare(const Pod& pod, const Profile& profile, Time now) {
  if (!times_.clock) return devices_.prepare(pod, now, profile.binding_timeout);
  const Duration began = times_.clock();
  DeviceRun run = devices_.prepare(pod, now, profile.binding_timeout);
  const Duration took = times_.clock() - began;
  switch (run.ready) {
    case DeviceRun::Ready::none:
      break;  // it has nothing to do with the pod
    case DeviceRun::Ready::go:
      times_.took("PreFilter", "Success", took);
      break;
    case DeviceRun::Ready::wait:
    case DeviceRun::Ready::rejected:
      times_.took("PreFilter", "UnschedulableAndUnresolvable", took);
      break;
    case DeviceRun::Ready::failed:
      times_.took("PreFilter", "Error", took);
      break;
  }
  return run;
}

NodeDevices Placer::look_on(DeviceRun& run, const NodeInfo& node) {
  if (!times_.clock) return devices_.check(run, node);
  const Duration began = times_.clock();
  NodeDevices found = devices_.check(run, node);
  times_.took("Filter",
              found.kind == NodeDevices::Kind::fits      ? "Success"
              : found.kind == NodeDevices::Kind::refused ? "Unschedulable"
                                                         : "Error",
              times_.clock() - began);
  return found;
}

/// The filters let the pod onto the node; extenders may not.
void Placer::admit(Search& search, std::size_t index) {
  if (search.consulted == nullptr || search.consulted->said == nullptr) {
    search.batch.push_back({index});
    return;
  }
  const auto& said = search.consulted->said->nodes;
  const auto opinion = said.find(state_.nodes()[index]->name);
  if (opinion == said.end()) {
    search.made.unasked = true;
  } else if (!opinion->second.refused) {
    search.batch.push_back({index, opinion->second.score});
  } else {
    search.made.refused_outside = true;
    const std::size_t count = state_.nodes().size();
    if (opinion->second.resolvable) {
      search.resolvable.push_back((index + count - search.first) % count);
    }
    if (!opinion->second.reason.empty()) search.reasons.add(opinion->second.reason, 0);
  }
}

/// The nodes of the batch that have the devices are those that extenders are asked about.
bool Placer::collect(Search& search) {
  Decision& made = search.made;
  for (const Candidate& candidate : search.batch) {
    const NodeInfo& node = *state_.nodes()[candidate.index];
    if (made.run.ready == DeviceRun::Ready::go) {
      const NodeDevices here = look_on(made.run, node);
      if (here.kind != NodeDevices::Kind::fits) {
        search.refused(here);
        continue;
      }
    }
    auto& nodes = search.consulted->nodes;
    const auto end = nodes.begin() + static_cast<std::ptrdiff_t>(search.early);
    const bool known = std::any_of(nodes.begin(), end, [&](const json::Value& one) {
      return one["metadata"]["name"].as_string() == node.name;
    });
    if (!known) nodes.push_back(node.object);
  }
  return !search.consulted->nodes.empty();
}

/// Looks for devices on all nodes of the batch before one of them is chosen.
bool Placer::compare_devices(Search& search) {
  Decision& made = search.made;
  const std::vector<NodeInfo*>& nodes = state_.nodes();
  std::vector<Candidate> able;
  std::vector<NodeDevices> theirs;
  for (Candidate& candidate : search.batch) {
    NodeDevices here = look_on(made.run, *nodes[candidate.index]);
    if (here.kind != NodeDevices::Kind::fits) {
      search.refused(here);
      if (search.held) return false;
      continue;
    }
    candidate.preference = Devices::preference(made.run, here);
    able.push_back(candidate);
    theirs.push_back(std::move(here));
  }
  if (able.empty()) return false;
  if (made.run.prioritized) score_devices(state_, search.pod, search.profile, able);
  const auto best = std::max_element(able.begin(), able.end(), worse);
  made.node = nodes[best->index];
  made.devices = std::move(theirs[static_cast<std::size_t>(best - able.begin())]);
  if (made.run.asked.empty()) return true;
  for (const Candidate& candidate : able) made.candidates.push_back(nodes[candidate.index]->name);
  return true;
}

bool Placer::try_batch(Search& search) {
  std::vector<Candidate>& batch = search.batch;
  if (batch.empty()) return false;
  if (search.collects()) return collect(search);
  score_nodes(state_, search.pod, search.profile, batch);
  Decision& made = search.made;
  const std::vector<NodeInfo*>& nodes = state_.nodes();
  const bool devices = made.run.ready == DeviceRun::Ready::go;
  if (devices && (made.run.prioritized || made.run.may_fail || !made.run.asked.empty())) {
    return compare_devices(search);
  }
  // Mostly the first one does, so the rest is not put in order before that is known.
  const auto best = std::max_element(batch.begin(), batch.end(), worse);
  if (!devices) {
    made.node = nodes[best->index];
    return true;
  }
  const auto serves = [&](const Candidate& candidate) {
    NodeDevices here = look_on(made.run, *nodes[candidate.index]);
    if (here.kind != NodeDevices::Kind::fits) {
      search.refused(here);
      return false;
    }
    made.node = nodes[candidate.index];
    made.devices = std::move(here);
    return true;
  };
  if (serves(*best)) return true;
  batch.erase(best);
  std::stable_sort(batch.begin(), batch.end(),
                   [&](const Candidate& a, const Candidate& b) { return worse(b, a); });
  return std::any_of(batch.begin(), batch.end(), serves);
}

/// Nodes that drivers have been asked about come before those that they know nothing of: else a
/// large cluster would be asked about in a circle, and no answer ever used.
bool Placer::try_known(Search& search) {
  const DeviceRun& run = search.made.run;
  if (run.asked.empty()) return false;
  for (const std::string& name : run.standing.potential_nodes) {
    NodeInfo* node = state_.find(name);
    if (node != nullptr && search.filters.check(*node) == nullptr) admit(search, node->index);
  }
  if (try_batch(search)) return true;
  search.start_over();
  return false;
}

/// Asks nodes in turn; true when one takes the pod.
bool Placer::try_all(Search& search) {
  const std::size_t count = state_.nodes().size();
  const std::size_t enough =
      std::max(kEnough, count * static_cast<std::size_t>(search.profile.percentage_to_score) / 100);
  const std::vector<std::uint64_t>& refusing = search.refusing;
  // From the first node to the last, then from node 0 on.
  const std::size_t ends[2] = {count, search.first};
  std::size_t index = search.first;
  for (const std::size_t end : ends) {
    while (index < end) {
      const std::size_t word = index / 64;
      if (word < refusing.size()) {
        const std::uint64_t open = ~refusing[word] >> (index % 64);
        if (open == 0) {
          index = (word + 1) * 64;
          continue;
        }
        index += static_cast<std::size_t>(std::countr_zero(open));
        if (index >= end) break;
      }
      const std::size_t turn =
          index >= search.first ? index - search.first : index + count - search.first;
      if (const Refused* refused = search.filters.check_at(index)) {
        search.reasons.add(*refused);
        if (refused->resolvable) search.resolvable.push_back(turn);
      } else {
        admit(search, index);
      }
      ++index;
      if (search.batch.size() < enough || turn + 1 == count) continue;
      if (try_batch(search)) {
        if (!search.collects()) start_ = search.first + turn + 1;
        return true;
      }
      if (search.held) return false;
      search.batch.clear();
    }
    index = 0;
  }
  if (!try_batch(search)) return false;
  if (!search.collects()) start_ = search.first + count;
  return true;
}

/// No node takes the pod: those that were passed by count as well.
void Placer::give_reasons(Search& search) {
  Decision& made = search.made;
  const std::size_t count = state_.nodes().size();
  for (std::size_t word = 0; word < search.refusing.size(); ++word) {
    for (std::uint64_t left = search.refusing[word]; left != 0; left &= left - 1) {
      const std::size_t index = word * 64 + static_cast<std::size_t>(std::countr_zero(left));
      if (index >= count) break;
      const Refused* refused = search.filters.check_at(index);
      if (refused == nullptr) {
        search.reasons.add_no_devices();
        continue;
      }
      search.reasons.add(*refused);
      if (!refused->resolvable) continue;
      search.resolvable.push_back((index + count - search.first) % count);
    }
  }
  std::sort(search.resolvable.begin(), search.resolvable.end());
  for (const std::size_t turn : search.resolvable) {
    made.resolvable.push_back(state_.nodes()[(search.first + turn) % count]);
  }
  made.failure.plugins = search.reasons.plugins();
  // What changes an extender's mind nobody knows.
  if (made.refused_outside || made.unasked) made.failure.plugins = ~PluginSet{0};
  // The next attempt asks about others first.
  if (made.unasked) start_ = search.first + search.consulted->said->nodes.size();
  if (!search.error.empty()) {
    made.failure.error = true;
    made.failure.waits = !made.run.broken.empty();
    made.failure.message = cat("running \"DynamicResources\" filter plugin: ", search.error);
    made.failure.plugins |= bit(Plugin::dynamic_resources);
  } else {
    made.failure.message = unavailable_message(count, search.reasons.text());
  }
}

Decision Placer::place(const Pod& pod, const Profile& profile, Time now, Consulted* consulted) {
  const std::size_t count = state_.nodes().size();
  Search search{pod,
                profile,
                FilterRun(state_, pod, profile,
                          [this, &profile](std::string_view name) {
                            return profile.devices() && devices_.serves(name);
                          }),
                {},
                Reasons(pod),
                {},
                false,
                batch_,
                refusing_,
                count > 0 ? start_ % count : 0,
                {},
                consulted};
  search.batch.clear();
  Decision& made = search.made;
  if (profile.devices()) {
    made.run = prepare(pod, profile, now);
    if (made.run.ready == DeviceRun::Ready::wait) {
      made.kind = Decision::Kind::waits;
      return std::move(search.made);
    }
  } else if (!pod.shape->claims.empty() && !is_classic_release(release_)) {
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
  if (const VolumeRun* volumes = search.filters.volumes();
      volumes != nullptr && !volumes->reason.empty()) {
    made.failure.message = unavailable_message(count, volumes->reason);
    made.failure.plugins = bit(volumes->plugin);
    return std::move(search.made);
  }
  if (made.run.ready == DeviceRun::Ready::failed) {
    made.failure.error = true;
    made.failure.message = cat("running PreFilter plugin \"DynamicResources\": ", made.run.reason);
    made.failure.plugins = bit(Plugin::dynamic_resources);
    return std::move(search.made);
  }
  if (made.run.ready == DeviceRun::Ready::rejected) {
    made.failure.message = unavailable_message(count, made.run.reason);
    made.failure.plugins = bit(Plugin::dynamic_resources);
    return std::move(search.made);
  }

  // Room was made for it there; or drivers are about to allocate there.
  NodeInfo* first = state_.find(state_.nominated_node(pod.key));
  if (first == nullptr) first = state_.find(made.run.standing.selected_node);
  if (first != nullptr && search.filters.check(*first) == nullptr) {
    admit(search, first->index);
    // Extenders are asked about the others as well: they may refuse this one.
    if (try_batch(search) && !search.collects()) {
      made.kind = Decision::Kind::placed;
      return std::move(search.made);
    }
    search.start_over();
  }
  if (try_known(search) && !search.collects()) {
    made.kind = Decision::Kind::placed;
    return std::move(search.made);
  }
  if (search.collects()) search.early = consulted->nodes.size();
  search.refusing.clear();
  if (made.run.refused != nullptr) search.refusing = made.run.refused->nodes();
  if (try_all(search)) {
    made.kind = Decision::Kind::placed;
  } else {
    give_reasons(search);
  }
  return std::move(search.made);
}

}  // namespace dibs::scheduler
