#include "server/fair_queues.h"

#include <algorithm>

namespace dibs::server {
namespace {

/// FNV-1a, then mixed: close texts must not have close hands.
std::uint64_t hash_of(const Flow& flow) {
  std::uint64_t hash = 14695981039346656037ULL;
  const auto add = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    hash = (hash ^ 0xffU) * 1099511628211ULL;
  };
  add(flow.schema);
  add(flow.distinguisher);
  hash ^= hash >> 33U;
  hash *= 0xff51afd7ed558ccdULL;
  hash ^= hash >> 33U;
  return hash;
}

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

FairQueues::FairQueues(const PriorityLevel& level, unsigned seats)
    : level_(level), seats_(seats), queues_(level.queues) {}

FairQueues::Queue* FairQueues::shortest_of_hand(const Flow& flow) {
  Queue* shortest = nullptr;
  for (const std::size_t i : hand_of(hash_of(flow), queues_.size(), level_.hand)) {
    Queue& queue = queues_[i];
    if (shortest == nullptr || queue.seats < shortest->seats) shortest = &queue;
  }
  return shortest;
}

FairQueues::Place FairQueues::enter(const Flow& flow, Waiting& waiting, bool may_wait) {
  if (!is_limited() || (waiting_ == 0 && has_room(waiting.seats))) {
    in_use_ += waiting.seats;
    return Place::seat;
  }
  Queue* queue = may_wait ? shortest_of_hand(flow) : nullptr;
  if (queue == nullptr || queue->items.size() >= level_.queue_length) return Place::none;
  if (queue->items.empty()) queue->time = std::max(queue->time, time_);
  queue->seats += waiting.seats;
  queue->items.push_back(std::move(waiting));
  ++waiting_;
  return Place::queue;
}

void FairQueues::leave(unsigned seats) { in_use_ -= std::min(in_use_, seats); }

std::optional<Waiting> FairQueues::next() {
  Queue* first = nullptr;
  for (Queue& queue : queues_) {
    if (!queue.items.empty() && (first == nullptr || queue.time < first->time)) first = &queue;
  }
  if (first == nullptr || !has_room(first->items.front().seats)) return std::nullopt;
  Waiting out = std::move(first->items.front());
  first->items.pop_front();
  time_ = first->time;
  first->time += out.seats;
  first->seats -= out.seats;
  in_use_ += out.seats;
  --waiting_;
  return out;
}

std::vector<Waiting> FairQueues::withdraw(Duration since) {
  std::vector<Waiting> out;
  for (Queue& queue : queues_) {
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

}  // namespace dibs::server
