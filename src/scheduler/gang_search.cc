#include "scheduler/gang_search.h"

#include <algorithm>

#include "base/strings.h"

namespace dibs::scheduler {
namespace {

using json::Value;

/// As many nodes that can take a pod are compared; further ones come after them.
constexpr std::size_t kEnough = 100;

}  // namespace

std::string GangPlacer::Search::put(std::size_t i, NodeInfo& node) {
  ++tries;
  GangMember& one = member(i);
  VolumePlan volumes;
  if (one.pod->claims_volumes) {
    const VolumeRun run = state.volumes().prepare(*one.pod, profile.filters());
    if (const auto cause = state.volumes().plan(run, node, volumes)) return words_of(*cause);
  }
  std::string refused = claims.take(i, node);
  if (!refused.empty()) return refused;
  state.volumes().reserve(volumes);
  one.volumes = std::move(volumes);
  one.node = &node;
  state.add_pod(one.counted(), node.name);
  quorum.add(one.group, node);
  stack.push_back(i);
  ++made.placed;
  return {};
}

void GangPlacer::Search::take_back() {
  GangMember& one = member(stack.back());
  NodeInfo& node = *one.node;
  state.remove_pod(one.pod->key);
  quorum.remove(one.group);
  claims.give_back(stack.back(), node);
  state.volumes().release(one.volumes);
  one.node = nullptr;
  stack.pop_back();
  --made.placed;
}

void GangPlacer::Search::take_back_to(std::size_t size) {
  while (stack.size() > size) take_back();
}

const std::map<std::string, std::vector<std::size_t>>& GangPlacer::Search::values_of(
    const std::string& key) {
  const auto [at, fresh] = by_label.try_emplace(key);
  if (!fresh) return at->second;
  for (const NodeInfo* node : state.nodes()) {
    if (const Value* label = node->label(key)) at->second[label->str()].push_back(node->index);
  }
  return at->second;
}

GangPlacer::Search::Places GangPlacer::Search::places_of(std::size_t group) {
  static const std::vector<std::size_t> kNowhere;
  Places least = nullptr;
  for (std::size_t at = group; at != GangOrder::kNone; at = quorum.parent(at)) {
    const std::string* value = quorum.value(at);
    if (quorum.key(at).empty() || value == nullptr || (alone && at != 0)) continue;
    const auto& values = values_of(quorum.key(at));
    const auto found = values.find(*value);
    const auto& list = found != values.end() ? found->second : kNowhere;
    if (least == nullptr || list.size() < least->size()) least = &list;
  }
  return least;
}

GangPlacer::Search::Walk GangPlacer::Search::walk_over(std::size_t group) {
  Walk walk;
  walk.places = places_of(group);
  walk.count = walk.places != nullptr ? walk.places->size() : state.nodes().size();
  walk.first = owner.start_;
  if (walk.places != nullptr) {
    const auto at = std::lower_bound(walk.places->begin(), walk.places->end(),
                                     owner.start_ % std::max<std::size_t>(1, state.nodes().size()));
    walk.first = static_cast<std::size_t>(at - walk.places->begin());
  }
  return walk;
}

std::set<std::string> GangPlacer::Search::domains_of(std::size_t group) {
  std::set<std::string> out;
  for (Walk walk = walk_over(group); !walk.is_over();) {
    const NodeInfo& node = *state.nodes()[walk.next()];
    ++looks;
    if (quorum.allows(group, node, false)) out.insert(node.label(quorum.key(group))->str());
  }
  return out;
}

std::vector<Candidate> GangPlacer::Search::candidates(std::size_t i, Walk& walk, Reasons& reasons) {
  GangMember& one = member(i);
  std::vector<Candidate> found;
  if (walk.is_over()) return found;
  FilterRun filters(state, *one.pod, profile, [this](std::string_view name) {
    return profile.devices() && devices.serves(name);
  });
  if (const VolumeRun* volumes = filters.volumes();
      volumes != nullptr && !volumes->reason.empty()) {
    reasons.add(volumes->reason, volumes->plugin, walk.count);
    walk.done = walk.count;
    return found;
  }
  while (!walk.is_over() && found.size() < kEnough) {
    const std::size_t index = walk.next();
    ++looks;
    if (!quorum.allows(one.group, *state.nodes()[index], alone)) continue;
    if (const Refused* refused = filters.check_at(index)) {
      reasons.add(*refused);
    } else {
      found.push_back({index});
    }
  }
  if (found.size() > 1) score_nodes(state, *one.pod, profile, found);
  std::stable_sort(found.begin(), found.end(),
                   [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  return found;
}

bool GangPlacer::Search::put_anywhere(std::size_t i) {
  GangMember& one = member(i);
  Reasons reasons(*one.pod);
  one.unavailable.clear();
  if (is_exhausted()) {
    one.failure = Failure();
    one.failure.message = "not tried";
    return false;
  }
  Walk walk = walk_over(one.group);
  for (auto next = candidates(i, walk, reasons); !next.empty();
       next = candidates(i, walk, reasons)) {
    for (const Candidate& candidate : next) {
      NodeInfo& node = *state.nodes()[candidate.index];
      const std::string refused = put(i, node);
      if (refused.empty()) {
        owner.start_ = candidate.index + 1;
        return true;
      }
      if (!made.error.empty()) return false;
      reasons.add(refused, Plugin::dynamic_resources);
      if (is_exhausted()) break;
    }
    if (is_exhausted()) break;
  }
  one.failure = Failure();
  one.failure.plugins = reasons.plugins();
  one.failure.message = unavailable_message(nodes_asked(one.group), reasons.text());
  return false;
}

std::size_t GangPlacer::Search::nodes_asked(std::size_t group) {
  std::size_t asked = 0;
  for (Walk walk = walk_over(group); !walk.is_over();) {
    ++looks;
    if (quorum.allows(group, *state.nodes()[walk.next()], alone)) ++asked;
  }
  return asked;
}

}  // namespace dibs::scheduler
