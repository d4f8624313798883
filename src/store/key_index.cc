#include "store/key_index.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

namespace dibs::store {
namespace {

constexpr std::size_t kBlockSize = 512;

constexpr std::size_t kFirstSlots = 1024;

const RecordPtr kNoRecord;

std::size_t hash_of(std::string_view key) { return std::hash<std::string_view>()(key); }

std::size_t offset_of(const KeyBlock& block, std::string_view key) {
  auto at =
      std::lower_bound(block.entries.begin(), block.entries.end(), key,
                       [](const KeyEntry* entry, std::string_view k) { return entry->key() < k; });
  return static_cast<std::size_t>(at - block.entries.begin());
}

}  // namespace

const RecordPtr& KeyEntry::visible(Revision at) const {
  if (newest_.revision <= at) return newest_.record;
  if (older_ == nullptr) return kNoRecord;
  for (auto version = older_->rbegin(); version != older_->rend(); ++version) {
    if (version->revision <= at) return version->record;
  }
  return kNoRecord;
}

std::size_t KeyTable::home_of(std::size_t hash) const { return hash & (slots_.size() - 1); }

KeyEntry* KeyTable::find(std::string_view key) const {
  if (slots_.empty()) return nullptr;
  const std::size_t hash = hash_of(key);
  for (std::size_t at = home_of(hash);; at = (at + 1) & (slots_.size() - 1)) {
    KeyEntry* entry = slots_[at];
    if (entry == nullptr) return nullptr;
    if (entry->hash_ == hash && entry->key() == key) return entry;
  }
}

void KeyTable::add(KeyEntry* entry) {
  if (++size_ * 4 > slots_.size() * 3) grow();
  entry->hash_ = hash_of(entry->key());
  std::size_t at = home_of(entry->hash_);
  while (slots_[at] != nullptr) at = (at + 1) & (slots_.size() - 1);
  slots_[at] = entry;
}

void KeyTable::remove(const KeyEntry* entry) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t hole = home_of(entry->hash_);
  while (slots_[hole] != entry) hole = (hole + 1) & mask;
  // What stands behind the hole because its own place was taken moves up.
  for (std::size_t at = (hole + 1) & mask; slots_[at] != nullptr; at = (at + 1) & mask) {
    const std::size_t home = home_of(slots_[at]->hash_);
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    slots_[hole] = slots_[at];
    hole = at;
  }
  slots_[hole] = nullptr;
  --size_;
}

void KeyTable::grow() {
  std::vector<KeyEntry*> before(slots_.empty() ? kFirstSlots : slots_.size() * 2);
  before.swap(slots_);
  for (KeyEntry* entry : before) {
    if (entry == nullptr) continue;
    std::size_t at = home_of(entry->hash_);
    while (slots_[at] != nullptr) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = entry;
  }
}

KeyIndex::~KeyIndex() {
  for (const auto& block : blocks_) {
    for (KeyEntry* entry : block->entries) delete entry;
  }
}

void KeyIndex::add(KeyEntry* entry, Version version) {
  const bool was_live = entry != nullptr && entry->latest() != nullptr;
  const bool is_live = version.record != nullptr;
  const Revision revision = version.revision;
  if (entry == nullptr) {
    entry = insert(std::move(version));
  } else {
    if (entry->older_ == nullptr) entry->older_ = std::make_unique<std::vector<Version>>();
    entry->older_->push_back(std::exchange(entry->newest_, std::move(version)));
  }
  if (was_live == is_live) return;
  if (is_live) {
    ++entry->block_->live;
  } else {
    --entry->block_->live;
  }
  entry->block_->live_changed = std::max(entry->block_->live_changed, revision);
}

void KeyIndex::trim(std::string_view key, Revision revision, std::vector<RecordPtr>& dropped) {
  KeyEntry* entry = find(key);
  if (entry == nullptr) return;
  const auto goes = [&](const Version& version) {
    return version.revision < revision || (version.revision == revision && !version.record);
  };
  if (goes(entry->newest_)) {
    // Before its records, one of which has the key.
    unlink(entry);
    if (entry->older_ != nullptr) {
      for (Version& version : *entry->older_) dropped.push_back(std::move(version.record));
    }
    dropped.push_back(std::move(entry->newest_.record));
    delete entry;
    return;
  }
  if (entry->older_ == nullptr) return;
  auto& older = *entry->older_;
  // A removal needs a record before it, which has the key; without one it says nothing.
  const std::size_t most = older.size() - (entry->latest() ? 0 : 1);
  std::size_t drop = 0;
  while (drop < most && (goes(older[drop]) || !older[drop].record)) {
    if (older[drop].record) dropped.push_back(std::move(older[drop].record));
    ++drop;
  }
  if (drop == older.size()) {
    entry->older_ = nullptr;
  } else {
    older.erase(older.begin(), older.begin() + static_cast<std::ptrdiff_t>(drop));
  }
}

std::size_t KeyIndex::count(std::string_view prefix, std::string_view from, Revision at) const {
  const Position first = lower_bound(from < prefix ? prefix : from);
  const std::string end_key = prefix_end(prefix);
  const Position last = end_key.empty() ? Position{blocks_.size(), 0} : lower_bound(end_key);
  std::size_t total = 0;
  for (std::size_t i = first.block; i < blocks_.size() && i <= last.block; ++i) {
    const KeyBlock& block = *blocks_[i];
    const std::size_t begin = i == first.block ? first.offset : 0;
    const std::size_t end = i == last.block ? last.offset : block.entries.size();
    if (begin == 0 && end == block.entries.size() && block.live_changed <= at) {
      total += block.live;
      continue;
    }
    for (std::size_t k = begin; k < end; ++k) total += block.entries[k]->visible(at) ? 1 : 0;
  }
  return total;
}

KeyIndex::Position KeyIndex::lower_bound(std::string_view key) const {
  // The last block that starts at or before the key may hold it; all later blocks start after it.
  auto after = std::upper_bound(blocks_.begin(), blocks_.end(), key,
                                [](std::string_view k, const std::unique_ptr<KeyBlock>& block) {
                                  return k < block->entries.front()->key();
                                });
  if (after == blocks_.begin()) return {0, 0};
  const auto block = static_cast<std::size_t>(after - blocks_.begin()) - 1;
  const std::size_t offset = offset_of(*blocks_[block], key);
  if (offset == blocks_[block]->entries.size()) return {block + 1, 0};
  return {block, offset};
}

KeyEntry* KeyIndex::insert(Version version) {
  auto* entry = new KeyEntry;
  entry->newest_ = std::move(version);
  const std::string_view key = entry->key();
  by_key_.add(entry);

  if (blocks_.empty()) blocks_.push_back(std::make_unique<KeyBlock>());
  auto after = std::upper_bound(blocks_.begin(), blocks_.end(), key,
                                [](std::string_view k, const std::unique_ptr<KeyBlock>& one) {
                                  return !one->entries.empty() && k < one->entries.front()->key();
                                });
  if (after != blocks_.begin()) --after;
  KeyBlock& block = **after;
  const std::size_t offset = offset_of(block, key);
  block.entries.insert(block.entries.begin() + static_cast<std::ptrdiff_t>(offset), entry);
  entry->block_ = &block;
  if (block.entries.size() <= kBlockSize) return entry;

  // Keys that come in order leave full blocks behind them; others are halved.
  const std::size_t keep = offset + 1 == block.entries.size() ? offset : block.entries.size() / 2;
  auto right = std::make_unique<KeyBlock>();
  right->entries.assign(block.entries.begin() + static_cast<std::ptrdiff_t>(keep),
                        block.entries.end());
  block.entries.resize(keep);
  right->live_changed = block.live_changed;
  for (KeyEntry* moved : right->entries) {
    moved->block_ = right.get();
    if (moved != entry && moved->latest()) {
      ++right->live;
      --block.live;
    }
  }
  blocks_.insert(after + 1, std::move(right));
  return entry;
}

void KeyIndex::unlink(KeyEntry* entry) {
  by_key_.remove(entry);
  const Position position = lower_bound(entry->key());
  KeyBlock& block = *blocks_[position.block];
  block.entries.erase(block.entries.begin() + static_cast<std::ptrdiff_t>(position.offset));
  if (block.entries.empty()) {
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(position.block));
  } else if (position.block + 1 < blocks_.size() &&
             block.entries.size() + blocks_[position.block + 1]->entries.size() <= kBlockSize / 4) {
    KeyBlock& next = *blocks_[position.block + 1];
    for (KeyEntry* moved : next.entries) {
      moved->block_ = &block;
      block.entries.push_back(moved);
    }
    block.live += next.live;
    block.live_changed = std::max(block.live_changed, next.live_changed);
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(position.block) + 1);
  }
}

std::string prefix_end(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xff) end.pop_back();
  if (!end.empty()) end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

}  // namespace dibs::store
