// Attempts for pods that extenders judge.
#include <algorithm>

#include "base/strings.h"
#include "scheduler/core.h"

namespace dibs::scheduler {

bool Scheduler::Core::still_waits(const Pod& pod) const {
  const auto found = waiting.find(pod.key);
  return found != waiting.end() && found->second->uid == pod.uid && queue.is_out(pod) &&
         !is_binding(pod);
}

void Scheduler::Core::next_to_ask() {
  while (!asking && !to_ask.empty()) {
    // The most important of them; among equals the one that waits longest.
    const auto next = std::min_element(
        to_ask.begin(), to_ask.end(),
        [](const auto& a, const auto& b) { return a.pod->priority > b.pod->priority; });
    const Queue::Popped popped = *next;
    to_ask.erase(next);
    if (still_waits(*popped.pod)) ask_extenders(popped);
  }
}

void Scheduler::Core::ask_extenders(const Queue::Popped& popped) {
  const Duration began = now();
  const Profile* profile = profile_of(*popped.pod);
  Consulted consulted;
  queue.judged(popped.pod->key);
  Decision decision = placer.place(*popped.pod, *profile, runtime.clock.now(), &consulted);
  if (decision.kind != Decision::Kind::placed) {
    return conclude(popped, *profile, decision, began);
  }
  asking = true;
  extenders->ask(popped.pod, std::move(consulted.nodes),
                 [this, popped, began](const Opinions& said) {
                   asking = false;
                   answered(popped, said, began);
                   next_to_ask();
                   kick();
                 });
}

void Scheduler::Core::answered(Queue::Popped popped, const Opinions& said, Duration began) {
  if (!still_waits(*popped.pod)) return;
  popped.pod = waiting.at(popped.pod->key);  // it may have changed
  const Profile* profile = profile_of(*popped.pod);
  if (!said.error.empty()) {
    Decision failed;
    failed.failure.error = true;
    failed.failure.message = said.error;
    return conclude(popped, *profile, failed, began);
  }
  Consulted consulted;
  consulted.said = &said;
  queue.judged(popped.pod->key);
  Decision decision = placer.place(*popped.pod, *profile, runtime.clock.now(), &consulted);
  conclude(popped, *profile, decision, began);
}

void Scheduler::Core::ask_about_victims(const Queue::Popped& popped, Decision& decision,
                                        const std::string& more, const Preemption& found) {
  const auto find = [this](const std::string& node, std::string_view uid) -> PodPtr {
    const NodeInfo* info = state.find(node);
    if (info == nullptr) return nullptr;
    for (const PodPtr& pod : info->pods) {
      if (pod->uid == uid) return pod;
    }
    return nullptr;
  };
  auto kept = std::make_shared<Decision>(std::move(decision));
  extenders->ask_about_victims(
      popped.pod, found.options, find,
      [this, popped, kept, more](const Result<std::vector<Victims>>& left) {
        if (!still_waits(*popped.pod)) return;
        Queue::Popped current = popped;
        current.pod = waiting.at(popped.pod->key);  // it may have changed
        Preemption chosen;
        if (left.ok()) {
          chosen = choose_victims(*left);
        } else {
          chosen.message = cat("preemption: ", left.error().message());
        }
        park(current, *kept, more, chosen);
        kick();
      });
}

}  // namespace dibs::scheduler
