#include "store/store.h"

#include <array>
#include <mutex>

namespace dibs::store {
namespace {

using Locks = std::array<std::mutex, 64>;

/// Shared by all attachments, and others by all memos: one each would weigh more than most of them
/// gain.
std::mutex& lock_of(Locks& locks, const void* of) {
  return locks[(std::hash<const void*>()(of) >> 6) % locks.size()];
}

Locks attachment_locks;
Locks memo_locks;

std::atomic<std::uint64_t> next_serial{1};

}  // namespace

Record::Record(std::string_view key_bytes, std::string_view value_bytes, Revision created_at,
               Revision modified_at)
    : value(key_bytes, value_bytes),
      key(value.key()),
      created(created_at),
      modified(modified_at),
      serial(next_serial.fetch_add(1, std::memory_order_relaxed)) {}

Attachment::Ptr Attachment::get() const {
  std::lock_guard lock(lock_of(attachment_locks, this));
  return what_;
}

void Attachment::set(Ptr what) const {
  std::lock_guard lock(lock_of(attachment_locks, this));
  what_.swap(what);  // what it was is freed by the caller, after unlocking
}

struct Memo::Forms {
  std::vector<std::pair<std::uint64_t, SharedBytes>> all;
};

Memo::~Memo() { delete forms_.load(std::memory_order_relaxed); }

SharedBytes Memo::get(std::uint64_t form, const std::function<std::string()>& make) const {
  // Held while encoding: a second watcher of the same form is better off waiting than encoding
  // again.
  std::lock_guard lock(lock_of(memo_locks, this));
  Forms* forms = forms_.load(std::memory_order_relaxed);
  if (forms == nullptr) {
    forms = new Forms;
    forms_.store(forms, std::memory_order_relaxed);
  }
  for (const auto& [known, bytes] : forms->all) {
    if (known == form) return bytes;
  }
  forms->all.emplace_back(form, share(make()));
  return forms->all.back().second;
}

void Memo::forget() const {
  if (forms_.load(std::memory_order_relaxed) == nullptr) return;
  std::unique_lock lock(lock_of(memo_locks, this));
  Forms* forms = forms_.exchange(nullptr, std::memory_order_relaxed);
  lock.unlock();
  delete forms;
}

}  // namespace dibs::store
