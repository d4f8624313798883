#include "store/testing/book.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace dibs::store::testing {
namespace {

Error wrong(std::string text) { return Error::internal(std::move(text)); }

std::string show(const std::vector<Effect>& effects) {
  std::string out;
  for (const Effect& effect : effects) {
    out += cat(" ", effect.key,
               effect.value ? cat("=", effect.value->substr(0, 12), "(", effect.value->size(), ")")
                            : " gone");
  }
  return out;
}

Effect effect_of(const Event& event) {
  Effect effect{std::string(event.key()), {}};
  if (event.now) {
    effect.value.emplace();
    event.now->value->append_to(*effect.value);
  }
  return effect;
}

}  // namespace

std::vector<Effect> Book::effects(const std::vector<Op>& ops, const State& state) {
  std::vector<Effect> found;
  for (const Op& op : ops) {
    if (op.value) {
      found.push_back({op.key, std::string(*op.value)});
    } else if (state.contains(op.key)) {
      found.push_back({op.key, {}});
    }
  }
  return found;
}

void Book::apply(State& state, Revision revision, const std::vector<Effect>& effects) {
  for (const Effect& effect : effects) {
    if (!effect.value) {
      state.erase(effect.key);
      continue;
    }
    auto [place, is_new] = state.try_emplace(effect.key);
    if (is_new) place->second.created = revision;
    place->second.value = *effect.value;
    place->second.modified = revision;
  }
}

Book::State Book::state_at(Revision revision) const {
  if (revision >= last_) return state_;
  State state;
  for (const auto& [at, effects] : history_) {
    if (at > revision) break;
    apply(state, at, effects);
  }
  return state;
}

void Book::enter(Revision revision, std::vector<Effect> effects) {
  apply(state_, revision, effects);
  history_[revision] = std::move(effects);
  last_ = revision;
  told(revision);
}

Result<> Book::acknowledged(const std::vector<Op>& ops, Revision revision) {
  ++acknowledgements_;
  for (const Op& op : ops) {
    const auto found = state_.find(op.key);
    const Revision is = found == state_.end() ? 0 : found->second.modified;
    if (op.expected && *op.expected != is) {
      return wrong(cat("revision ", revision, " was acknowledged though ", op.key, " was at ", is,
                       ", not ", *op.expected));
    }
  }
  auto changed = effects(ops, state_);
  if (changed.empty()) {
    if (revision == last_) return success();
    return wrong(cat("nothing was changed at revision ", revision, " after ", last_));
  }
  if (revision != last_ + 1) {
    return wrong(cat("revision ", revision, " was given after ", last_));
  }
  enter(revision, std::move(changed));
  return success();
}

void Book::watched(const std::vector<EventPtr>& events) {
  for (const auto& event : events) {
    watched_[event->revision].push_back(effect_of(*event));
    seen_ = event->revision;
    told(event->revision);
  }
}

Result<> Book::adopt(Revision revision, const std::vector<Effect>& shown) {
  if (revision != last_ + 1) {
    return wrong(cat("revision ", revision, " is shown after ", last_, ":", show(shown)));
  }
  const auto same = [&](const std::vector<Op>& ops) { return effects(ops, state_) == shown; };
  const auto found = std::find_if(unknown_.begin(), unknown_.end(), same);
  if (found == unknown_.end()) {
    return wrong(cat("revision ", revision, " shows what no transaction wrote:", show(shown)));
  }
  unknown_.erase(found);
  enter(revision, shown);
  return success();
}

/// A watch from there shows all that was written since, and nothing else.
Result<> Book::check_events(Store& store, Revision from, bool may_adopt) {
  DIBS_TRY(auto watch, store.watch("/", from, [] {}));
  std::map<Revision, std::vector<Effect>> shown;
  while (true) {
    DIBS_TRY(const auto events, watch->next(7));
    if (events.empty()) break;
    for (const auto& event : events) {
      if (!shown.empty() && event->revision < shown.rbegin()->first) {
        return wrong(cat("revision ", event->revision, " is shown after a later one"));
      }
      shown[event->revision].push_back(effect_of(*event));
    }
  }
  for (const auto& [revision, effects] : shown) {
    if (revision > last_ && may_adopt) DIBS_CHECK(adopt(revision, effects));
    const auto known = history_.find(revision);
    if (known == history_.end()) {
      return wrong(cat("revision ", revision, " shows what was not written:", show(effects)));
    }
    if (known->second != effects) {
      return wrong(
          cat("revision ", revision, " shows", show(effects), " instead of", show(known->second)));
    }
  }
  for (auto at = history_.upper_bound(from); at != history_.end(); ++at) {
    if (!shown.contains(at->first)) {
      return wrong(cat("revision ", at->first, " is missing from ", from, ":", show(at->second)));
    }
  }
  return success();
}

Result<> Book::check_listing(Store& store, Revision at) const {
  DIBS_TRY(const auto listing, store.range({.prefix = "/", .at = at}));
  State shown;
  for (const auto& record : listing.records) {
    Version version{{}, record->created, record->modified};
    record->value->append_to(version.value);
    shown[std::string(record->key)] = std::move(version);
  }
  const State is = state_at(at);
  if (shown == is) return success();
  for (const auto& [key, version] : is) {
    if (!shown.contains(key)) return wrong(cat(key, " is missing at revision ", at));
    if (shown[key] != version) {
      return wrong(cat(key, " is ", shown[key].value.substr(0, 12), " of ", shown[key].modified,
                       " at revision ", at, " instead of ", version.value.substr(0, 12), " of ",
                       version.modified));
    }
  }
  return wrong(cat("there is more than was written at revision ", at));
}

Result<> Book::check_watched() const {
  for (const auto& [revision, effects] : watched_) {
    const auto known = history_.find(revision);
    if (known == history_.end() || known->second != effects) {
      return wrong(cat("a watcher has seen at revision ", revision, show(effects), " instead of",
                       known == history_.end() ? " nothing" : show(known->second)));
    }
  }
  for (const auto& [revision, effects] : history_) {
    if (!watched_.empty() && revision > watched_.begin()->first && revision <= seen_ &&
        !watched_.contains(revision)) {
      return wrong(cat("a watcher has not seen revision ", revision, ":", show(effects)));
    }
  }
  return success();
}

Result<> Book::check(Store& store, bool opened) {
  // The store may forget history meanwhile, by itself.
  for (int tries = 0;; ++tries) {
    auto checked = check_now(store, opened);
    if (checked.ok() || checked.error().code() != Code::expired || tries == 20) return checked;
  }
}

Result<> Book::check_now(Store& store, bool opened) {
  const Revision compacted = store.compacted();
  const Revision now = store.revision();
  if (now < told_) return wrong(cat("the revision is ", now, ", but ", told_, " was told"));
  DIBS_CHECK(check_events(store, compacted, opened));
  if (opened) unknown_.clear();
  if (now != last_) return wrong(cat("the revision is ", now, " instead of ", last_));
  for (const Revision at : {now, std::max(compacted, now - 3), compacted}) {
    if (at > 0 && (history_.empty() || at >= history_.begin()->first)) {
      DIBS_CHECK(check_listing(store, at));
    }
  }
  if (seen_ >= compacted) DIBS_CHECK(check_events(store, seen_, false));
  if (now - 2 >= compacted) DIBS_CHECK(check_events(store, now - 2, false));
  return check_watched();
}

}  // namespace dibs::store::testing
