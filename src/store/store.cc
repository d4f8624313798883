#include "store/store.h"

namespace dibs::store {

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
