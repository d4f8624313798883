#include "server/fair_queues.h"

#include <algorithm>
#include <utility>

namespace dibs::server {
namespace {

/// Deals `count` different cards of `deck`.
std::vector<std::size_t> hand_of(std::uint64_t hash, std::size_t deck, std::size_t count) {
  std::vector<std::size_t> hand;
  for (std::size_t i = 0; i < count && i < deck; ++i) {
    std::size_t card = hash % (deck - i);
    hash /= deck - i;
    // Counts only the cards that are left.
    std::vector<std::size_t> dealt = hand;
    std::sort(dealt.begin(), dealt.end());
    for (const std::size_t other : dealt) card += other <= card ? 1 : 0;
    hand.push_back(card);
  }
  return hand;
}

}  // namespace

/// FNV-1a, then mixed: close texts must not have close hands.
std::uint64_t flow_hash(std::string_view schema, std::string_view distinguisher) {
  std::uint64_t hash = 14695981039346656037ULL;
  const auto add = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    hash = (hash ^ 0xffU) * 1099511628211ULL;
  };
  add(schema);
  add(distinguisher);
  hash ^= hash >> 33U;
  hash *= 0xff51afd7ed558ccdULL;
  hash ^= hash >> 33U;
  return hash;
}

FairQueues::Queue& FairQueues::shortest_of_hand(std::uint64_t flow) {
  std::size_t best = 0;
  const Queue* shortest = nullptr;
  for (const std::size_t i : hand_of(flow, shape_.queues, shape_.hand)) {
    const auto found = queues_.find(i);
    if (found == queues_.end() || found->second.items.empty()) return queues_[i];
    if (shortest == nullptr || found->second.seats < shortest->seats) {
      shortest = &found->second;
      best = i;
    }
  }
  return queues_[best];
}

void FairQueues::append(Queue& queue, Waiting waiting) {
  if (queue.items.empty()) queue.time = std::max(queue.time, time_);
  queue.seats += waiting.seats;
  queue.items.push_back(std::move(waiting));
  ++waiting_;
}

bool FairQueues::put(Waiting& waiting) {
  if (shape_.queues == 0) return false;
  Queue& queue = shortest_of_hand(waiting.flow);
  if (queue.items.size() >= shape_.length) return false;
  append(queue, std::move(waiting));
  return true;
}

std::map<std::size_t, FairQueues::Queue>::iterator FairQueues::first() {
  auto out = queues_.end();
  for (auto at = queues_.begin(); at != queues_.end();) {
    const Queue& queue = at->second;
    // One that is not ahead of the others has nothing to be remembered for.
    if (queue.items.empty() && queue.time <= time_) {
      at = queues_.erase(at);
      continue;
    }
    if (!queue.items.empty() && (out == queues_.end() || queue.time < out->second.time)) out = at;
    ++at;
  }
  return out;
}

unsigned FairQueues::next() const {
  const Queue* first = nullptr;
  if (waiting_ == 0) return 0;
  for (const auto& [number, queue] : queues_) {
    if (!queue.items.empty() && (first == nullptr || queue.time < first->time)) first = &queue;
  }
  return first == nullptr ? 0 : first->items.front().seats;
}

Waiting FairQueues::take() {
  Queue& queue = first()->second;
  Waiting out = std::move(queue.items.front());
  queue.items.pop_front();
  time_ = queue.time;
  queue.time += out.seats;
  queue.seats -= out.seats;
  --waiting_;
  return out;
}

std::vector<Waiting> FairQueues::withdraw(Duration since) {
  std::vector<Waiting> out;
  for (auto& [number, queue] : queues_) {
    // The oldest stand in front.
    while (!queue.items.empty() && queue.items.front().since <= since) {
      queue.seats -= queue.items.front().seats;
      out.push_back(std::move(queue.items.front()));
      queue.items.pop_front();
    }
  }
  waiting_ -= out.size();
  return out;
}

std::size_t FairQueues::active() const {
  return static_cast<std::size_t>(std::count_if(
      queues_.begin(), queues_.end(), [](const auto& one) { return !one.second.items.empty(); }));
}

void FairQueues::reshape(Shape shape) {
  if (shape == shape_) return;
  std::vector<Waiting> all;
  for (auto& [number, queue] : queues_) {
    for (Waiting& one : queue.items) all.push_back(std::move(one));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Waiting& a, const Waiting& b) { return a.since < b.since; });
  queues_.clear();
  waiting_ = 0;
  shape_ = shape;
  // A level that has no queues any more still starts those that wait.
  for (Waiting& one : all) {
    Queue& queue = shape_.queues == 0 ? queues_[0] : shortest_of_hand(one.flow);
    append(queue, std::move(one));
  }
}

}  // namespace dibs::server
