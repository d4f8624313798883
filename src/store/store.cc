#include "store/store.h"

#include "store/commons.h"

namespace dibs::store {

Record::Record(Commons& commons, std::string_view key_bytes, std::string_view value_bytes,
               Revision created_at, Revision modified_at)
    : value(commons.values, key_bytes, value_bytes),
      key(value.key()),
      created(created_at),
      modified(modified_at),
      commons_(commons) {}

AttachmentPtr Record::attachment() const {
  {
    const MutexLock lock(commons_.attachment_mutex(*this));
    if (written_) return written_;
  }
  return commons_.recently_read(*this);
}

void Record::attach(AttachmentPtr what) const {
  const MutexLock lock(commons_.attachment_mutex(*this));
  written_.swap(what);  // what it was is freed by the caller, after unlocking
}

void Record::remember(AttachmentPtr what) const { commons_.keep_read(*this, std::move(what)); }

struct Event::Forms {
  std::vector<std::pair<std::uint64_t, SharedBytes>> all;
};

Event::~Event() { delete forms_.load(std::memory_order_relaxed); }

Mutex& Event::forms_mutex() const { return (now ? now : before)->commons_.forms_mutex(*this); }

SharedBytes Event::encoded(std::uint64_t form, const std::function<std::string()>& make) const {
  // Held while encoding: a second watcher of the same form is better off waiting than encoding
  // again.
  const MutexLock lock(forms_mutex());
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

void Event::forget_encoded() const {
  if (forms_.load(std::memory_order_relaxed) == nullptr) return;
  MutexLock lock(forms_mutex());
  Forms* forms = forms_.exchange(nullptr, std::memory_order_relaxed);
  lock.unlock();
  delete forms;
}

}  // namespace dibs::store
