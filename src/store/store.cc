#include "store/store.h"

#include <array>
#include <functional>

namespace dibs::store {
namespace {

/// Shared by all attachments: one each would weigh more than most records gain.
std::mutex& attachment_lock(const void* of) {
  static std::array<std::mutex, 64> locks;
  return locks[(std::hash<const void*>()(of) >> 6) % locks.size()];
}

}  // namespace

Attachment::Ptr Attachment::get() const {
  std::lock_guard lock(attachment_lock(this));
  return what_;
}

void Attachment::set(Ptr what) const {
  std::lock_guard lock(attachment_lock(this));
  what_.swap(what);  // what it was is freed by the caller, after unlocking
}

SharedBytes Memo::get(std::uint64_t form, const std::function<std::string()>& make) const {
  // Held while encoding: a second watcher of the same form is better off waiting than encoding
  // again.
  std::lock_guard lock(mutex_);
  for (const auto& [known, bytes] : forms_) {
    if (known == form) return bytes;
  }
  forms_.emplace_back(form, share(make()));
  return forms_.back().second;
}

}  // namespace dibs::store
