#include "dns/cache.h"

#include <algorithm>

namespace dibs::dns {
namespace {

constexpr std::size_t kOverhead = 128;  // of a record or an entry, about

template <typename Function>
void each_record(Message& message, const Function& function) {
  for (auto* section : {&message.answers, &message.authority, &message.additional}) {
    for (auto& record : *section) function(record);
  }
}

/// Seconds that it may be kept.
std::uint32_t lifetime(Message& answer) {
  const bool negative = answer.rcode == Rcode::name_error || answer.answers.empty();
  if (answer.truncated) return 0;
  if (answer.rcode != Rcode::no_error && answer.rcode != Rcode::name_error) return 0;
  std::uint32_t out = Cache::kLongest;
  if (negative) out = std::min(out, negative_ttl(answer).value_or(0));
  each_record(answer, [&](const Record& record) { out = std::min(out, record.ttl); });
  return out;
}

}  // namespace

std::optional<Message> Cache::find(const std::string& key, std::int64_t now) {
  const auto found = index_.find(key);
  if (found == index_.end()) return std::nullopt;
  const auto entry = found->second;
  if (now >= entry->until) {
    drop(entry);
    return std::nullopt;
  }
  entries_.splice(entries_.begin(), entries_, entry);
  Message out = entry->answer;
  const auto age = static_cast<std::uint32_t>((now - entry->since) / 1000);
  each_record(out, [&](Record& record) { record.ttl -= std::min(record.ttl, age); });
  return out;
}

void Cache::put(const std::string& key, const Message& answer, std::int64_t now) {
  if (const auto known = index_.find(key); known != index_.end()) drop(known->second);
  Entry made{key, answer, now, now, 2 * key.size() + kOverhead};
  const std::uint32_t seconds = lifetime(made.answer);
  if (seconds == 0) return;
  made.until = now + std::int64_t{seconds} * 1000;
  each_record(made.answer, [&](const Record& record) {
    made.bytes += record.data.size() + record.name.wire().size() + kOverhead;
  });
  if (made.bytes > kMostBytes / 16) return;
  bytes_ += made.bytes;
  entries_.push_front(std::move(made));
  index_[key] = entries_.begin();
  while (index_.size() > kMostEntries || bytes_ > kMostBytes) drop(std::prev(entries_.end()));
}

void Cache::drop(std::list<Entry>::iterator entry) {
  bytes_ -= entry->bytes;
  index_.erase(entry->key);
  entries_.erase(entry);
}

}  // namespace dibs::dns
