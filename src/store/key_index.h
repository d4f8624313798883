#pragma once
// The ordered index of keys, each with its chain of versions.
//
// A hash finds one key; sorted blocks of keys give order. A block knows how many of its keys are
// alive and when that number last changed, so counting a prefix looks at blocks, not at keys, for
// the current state and mostly for older ones too.
//
// Not thread-safe: Mvcc guards it.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.h"

namespace dibs::store {

struct Version {
  Revision revision = 0;
  RecordPtr record;  // null: removed
};

struct KeyBlock;

/// One key. Most have one version, so that has a place of its own, and the key is that of a record:
/// a removal always has one before it.
class KeyEntry {
 public:
  std::string_view key() const { return (newest_.record ? newest_ : older_->back()).record->key; }
  /// The record as of `at`, or null.
  const RecordPtr& visible(Revision at) const;
  const Version& newest() const { return newest_; }
  const RecordPtr& latest() const { return newest_.record; }

 private:
  friend class KeyIndex;
  friend class KeyTable;
  Version newest_;
  std::unique_ptr<std::vector<Version>> older_;  // oldest first; null when there is none
  KeyBlock* block_ = nullptr;
  std::size_t hash_ = 0;
};

/// Entries by hash: open addressing, a pointer each.
class KeyTable {
 public:
  KeyEntry* find(std::string_view key) const;
  /// It must not be there.
  void add(KeyEntry* entry);
  void remove(const KeyEntry* entry);
  std::size_t size() const { return size_; }

 private:
  std::size_t home_of(std::size_t hash) const;
  void grow();

  std::vector<KeyEntry*> slots_;  // a power of two of them, a quarter at least null
  std::size_t size_ = 0;
};

struct KeyBlock {
  std::vector<KeyEntry*> entries;  // sorted by key
  std::size_t live = 0;            // entries whose latest version is a record
  Revision live_changed = 0;       // the last revision at which `live` changed
};

class KeyIndex {
 public:
  KeyIndex() = default;
  ~KeyIndex();
  KeyIndex(const KeyIndex&) = delete;
  KeyIndex& operator=(const KeyIndex&) = delete;

  KeyEntry* find(std::string_view key) const { return by_key_.find(key); }
  /// Appends a version to `entry`, which is what find() gave for its key. Null makes an entry; then
  /// the version has a record.
  void add(KeyEntry* entry, Version version);
  /// Drops all versions of the key older than `revision`, and the one of `revision` too when it is
  /// a removal; then an entry without versions goes. What was dropped is moved to `dropped`, so
  /// that the caller can free it after unlocking.
  void trim(std::string_view key, Revision revision, std::vector<RecordPtr>& dropped);

  /// Calls `visit(entry)` in key order from the first key >= `from` while the key is under `prefix`
  /// and visit returns true.
  template <typename Visit>
  void walk(std::string_view prefix, std::string_view from, Visit visit) const {
    auto [block, offset] = lower_bound(from < prefix ? prefix : from);
    for (; block < blocks_.size(); ++block, offset = 0) {
      const auto& entries = blocks_[block]->entries;
      for (; offset < entries.size(); ++offset) {
        if (!entries[offset]->key().starts_with(prefix)) return;
        if (!visit(*entries[offset])) return;
      }
    }
  }

  /// How many keys under `prefix`, from `from` on, were alive at `at`.
  std::size_t count(std::string_view prefix, std::string_view from, Revision at) const;
  std::size_t size() const { return by_key_.size(); }

 private:
  struct Position {
    std::size_t block;
    std::size_t offset;
  };
  /// The first entry with a key >= `key`; {blocks_.size(), 0} when there is none.
  Position lower_bound(std::string_view key) const;
  KeyEntry* insert(Version version);
  /// Out of the order and the table; the entry is still whole.
  void unlink(KeyEntry* entry);

  KeyTable by_key_;                                // owns them
  std::vector<std::unique_ptr<KeyBlock>> blocks_;  // none of them empty
};

/// The first key after all keys with this prefix; "" when there is no such key.
std::string prefix_end(std::string_view prefix);

}  // namespace dibs::store
