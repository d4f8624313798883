#include "api/devices/selector.h"

#include <list>
#include <mutex>
#include <unordered_map>

#include "api/devices/selector_language.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

/// The release in which the length and the estimated cost of an expression became limited.
constexpr int kLimitsSince = 32;

Selector compile(std::string_view expression, const SelectorEnvironment& environment) {
  Selector made;
  const int release = environment.release;
  if (release >= kLimitsSince && expression.size() > kSelectorLengthLimit) {
    made.fault = SelectorFault::too_long;
    made.message = cat("may not be more than ", kSelectorLengthLimit, " bytes");
    return made;
  }
  cel::Compilation compiled =
      selector_language(environment).compile(expression, [release](const cel::ValuePath& path) {
        return device_size_bound(path, release);
      });
  made.type = compiled.type;
  made.estimated_cost = compiled.estimated_cost;
  if (compiled.program == nullptr) {
    made.fault = SelectorFault::invalid;
    made.message = cat("compilation failed: ", cel::format_issues(expression, compiled.issues));
    made.issues = std::move(compiled.issues);
    return made;
  }
  if (!is_selector_type(compiled.type, environment)) {
    made.fault = SelectorFault::invalid;
    made.message =
        cat("must evaluate to bool or the unknown type, not ", compiled.type.full_name());
    return made;
  }
  if (!compiled.program->constant_error.empty()) {
    made.fault = SelectorFault::internal;
    made.message = cat("program instantiation failed: ", compiled.program->constant_error);
    return made;
  }
  made.program = std::move(compiled.program);
  if (release >= kLimitsSince && made.estimated_cost > kSelectorCostLimit) {
    made.fault = SelectorFault::too_costly;
    made.message = "too complex, exceeds cost limit";
  }
  return made;
}

/// The selectors used last. Classes and claims of a cluster repeat a few expressions; compiling one
/// takes longer than asking it about a hundred devices.
class Cache {
 public:
  bool find(const std::string& key, Selector& out) {
    const std::lock_guard lock(mutex_);
    const auto found = index_.find(key);
    if (found == index_.end()) return false;
    entries_.splice(entries_.begin(), entries_, found->second);
    out = found->second->second;
    return true;
  }

  void put(const std::string& key, const Selector& selector) {
    const std::lock_guard lock(mutex_);
    if (index_.contains(key)) return;
    entries_.emplace_front(key, selector);
    index_.emplace(entries_.front().first, entries_.begin());
    if (entries_.size() <= kMost) return;
    index_.erase(entries_.back().first);
    entries_.pop_back();
  }

 private:
  static constexpr std::size_t kMost = 512;
  using Entries = std::list<std::pair<std::string, Selector>>;

  std::mutex mutex_;                                               // guards what follows
  Entries entries_;                                                // most recent first
  std::unordered_map<std::string_view, Entries::iterator> index_;  // keys live in the entries
};

Cache& cache() {
  static Cache made;
  return made;
}

std::string key_of(std::string_view expression, const SelectorEnvironment& environment) {
  std::string key;
  key.reserve(expression.size() + 2);
  key.push_back(static_cast<char>(environment.release));
  key.push_back(static_cast<char>('0' + (environment.stored ? 1 : 0) +
                                  (environment.consumable_capacity ? 2 : 0) +
                                  (environment.list_attributes ? 4 : 0)));
  key.append(expression);
  return key;
}

}  // namespace

Selector compile_selector(std::string_view expression, const SelectorEnvironment& environment) {
  // Longer ones are refused anyway, or come from a release that nobody runs at scale.
  if (expression.size() > kSelectorLengthLimit) return compile(expression, environment);
  const std::string key = key_of(expression, environment);
  Selector made;
  if (cache().find(key, made)) return made;
  made = compile(expression, environment);
  cache().put(key, made);
  return made;
}

void validate_selector(std::string_view expression, const SelectorEnvironment& environment,
                       const Path& path, FieldErrors& errors) {
  const Selector selector = compile_selector(expression, environment);
  switch (selector.fault) {
    case SelectorFault::none:
      return;
    case SelectorFault::too_long:
      return errors.too_long(path, kSelectorLengthLimit);
    case SelectorFault::invalid:
      return errors.invalid(path, expression, selector.message);
    case SelectorFault::internal:
      return errors.internal(path, selector.message);
    case SelectorFault::too_costly:
      return errors.forbidden(path, selector.message);
  }
}

}  // namespace dibs::api
