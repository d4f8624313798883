#include "store/key_index.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace dibs::store {
namespace {

constexpr std::size_t kBlockSize = 512;

const RecordPtr kNoRecord;

std::size_t offset_of(const KeyBlock& block, std::string_view key) {
  auto at =
      std::lower_bound(block.entries.begin(), block.entries.end(), key,
                       [](const KeyEntry* entry, std::string_view k) { return entry->key < k; });
  return static_cast<std::size_t>(at - block.entries.begin());
}

}  // namespace

const RecordPtr& KeyEntry::visible(Revision at) const {
  for (auto version = versions.rbegin(); version != versions.rend(); ++version) {
    if (version->revision <= at) return version->record;
  }
  return kNoRecord;
}

KeyEntry* KeyIndex::find(std::string_view key) const {
  auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second.get();
}

void KeyIndex::add(KeyEntry* entry, const std::string& key, Version version) {
  const bool was_live = entry != nullptr && entry->latest() != nullptr;
  const bool is_live = version.record != nullptr;
  const Revision revision = version.revision;
  if (entry == nullptr) entry = insert(key);
  entry->versions.push_back(std::move(version));
  if (was_live == is_live) return;
  if (is_live) {
    ++entry->block->live;
  } else {
    --entry->block->live;
  }
  entry->block->live_changed = std::max(entry->block->live_changed, revision);
}

void KeyIndex::trim(std::string_view key, Revision revision, std::vector<RecordPtr>& dropped) {
  KeyEntry* entry = find(key);
  if (entry == nullptr) return;
  auto& versions = entry->versions;
  std::size_t drop = 0;
  while (drop < versions.size() &&
         (versions[drop].revision < revision ||
          (versions[drop].revision == revision && !versions[drop].record))) {
    if (versions[drop].record) dropped.push_back(std::move(versions[drop].record));
    ++drop;
  }
  if (drop == versions.size()) {
    erase(entry);
    return;
  }
  versions.erase(versions.begin(), versions.begin() + static_cast<std::ptrdiff_t>(drop));
  if (versions.size() == 1) versions.shrink_to_fit();
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
                                  return k < block->entries.front()->key;
                                });
  if (after == blocks_.begin()) return {0, 0};
  const auto block = static_cast<std::size_t>(after - blocks_.begin()) - 1;
  const std::size_t offset = offset_of(*blocks_[block], key);
  if (offset == blocks_[block]->entries.size()) return {block + 1, 0};
  return {block, offset};
}

KeyEntry* KeyIndex::insert(const std::string& key) {
  auto owned = std::make_unique<KeyEntry>();
  KeyEntry* entry = owned.get();
  entry->key = key;
  by_key_.emplace(entry->key, std::move(owned));

  if (blocks_.empty()) blocks_.push_back(std::make_unique<KeyBlock>());
  auto after = std::upper_bound(blocks_.begin(), blocks_.end(), std::string_view(key),
                                [](std::string_view k, const std::unique_ptr<KeyBlock>& block) {
                                  return !block->entries.empty() && k < block->entries.front()->key;
                                });
  if (after != blocks_.begin()) --after;
  KeyBlock& block = **after;
  const std::size_t offset = offset_of(block, key);
  block.entries.insert(block.entries.begin() + static_cast<std::ptrdiff_t>(offset), entry);
  entry->block = &block;
  if (block.entries.size() <= kBlockSize) return entry;

  // Keys that come in order leave full blocks behind them; others are halved.
  const std::size_t keep = offset + 1 == block.entries.size() ? offset : block.entries.size() / 2;
  auto right = std::make_unique<KeyBlock>();
  right->entries.assign(block.entries.begin() + static_cast<std::ptrdiff_t>(keep),
                        block.entries.end());
  block.entries.resize(keep);
  right->live_changed = block.live_changed;
  for (KeyEntry* moved : right->entries) {
    moved->block = right.get();
    if (!moved->versions.empty() && moved->latest()) {
      ++right->live;
      --block.live;
    }
  }
  blocks_.insert(after + 1, std::move(right));
  return entry;
}

void KeyIndex::erase(KeyEntry* entry) {
  const Position position = lower_bound(entry->key);
  KeyBlock& block = *blocks_[position.block];
  block.entries.erase(block.entries.begin() + static_cast<std::ptrdiff_t>(position.offset));
  if (block.entries.empty()) {
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(position.block));
  } else if (position.block + 1 < blocks_.size() &&
             block.entries.size() + blocks_[position.block + 1]->entries.size() <= kBlockSize / 4) {
    KeyBlock& next = *blocks_[position.block + 1];
    for (KeyEntry* moved : next.entries) {
      moved->block = &block;
      block.entries.push_back(moved);
    }
    block.live += next.live;
    block.live_changed = std::max(block.live_changed, next.live_changed);
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(position.block) + 1);
  }
  // By a copy: the map's key is a view into the entry that goes.
  const std::string key = entry->key;
  by_key_.erase(key);
}

std::string prefix_end(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xff) end.pop_back();
  if (!end.empty()) end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

}  // namespace dibs::store
