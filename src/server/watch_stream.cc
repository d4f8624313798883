#include "server/watch_stream.h"

#include <algorithm>
#include <functional>

#include "api/schema/decode.h"
#include "base/span.h"
#include "base/strings.h"
#include "server/presenting.h"
#include "server/status.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

constexpr int kInitialTurn = 16;
constexpr Duration kBookmarkEvery = std::chrono::seconds(60);
constexpr Duration kBookmarkBeforeEnd = std::chrono::seconds(2);

}  // namespace

WatchStream::WatchStream(Watches& owner, std::shared_ptr<Context> context, ListOptions options,
                         Selection selection)
    : owner_(owner),
      context_(std::move(context)),
      options_(std::move(options)),
      selection_(std::move(selection)),
      name_(selection_.exact_name()) {
  const std::string form = form_of(*context_);
  form_ = std::hash<std::string>()(form) & ~std::uint64_t{7};
  begins_with_ =
      cat(form, "|", context_->info.name_space, "|",
          context_->info.legacy_watch ? context_->info.name : "", "|",
          context_->target.get("labelSelector"), "|", context_->target.get("fieldSelector"));
  first_ = context_->answer.form == Form::table;
}

void WatchStream::start(std::shared_ptr<net::BodyStream> body,
                        std::shared_ptr<calls::EventStream> events) {
  bool ended = false;
  {
    MutexLock lock(mutex_);
    body_ = std::move(body);
    events_ = std::move(events);
    ended = ended_;
  }
  // The server may have been closed since this stream was let in.
  if (ended) return body_->finish();
  std::weak_ptr<WatchStream> weak = weak_from_this();
  body_->on_closed([weak] {
    if (auto self = weak.lock()) self->stop(false);
  });
  body_->on_drained([weak] {
    if (auto self = weak.lock()) self->owner_.ready(weak);
  });
  arm_timers();
  begin();
  pump();
}

bool WatchStream::waits_for_state() {
  MutexLock lock(mutex_);
  return starting_ && !ended_ && !initial_ && !waits_;
}

Result<std::shared_ptr<InitialState>> WatchStream::read_state() const {
  return InitialState::read(owner_.store_, context_, selection_);
}

void WatchStream::adopt(const Result<std::shared_ptr<InitialState>>& state) {
  MutexLock lock(mutex_);
  if (ended_ || !starting_ || initial_) return;
  // From here on it costs what it sends.
  context_->seat.reset();
  if (!state.ok()) return fail(state.error());
  initial_ = *state;
  initial_bookmark_ = options_.bookmarks ? initial_->revision() : 0;
  follow(initial_->revision());
}

void WatchStream::send_initial() {
  MutexLock lock(mutex_);
  if (ended_ || !initial_ || !watch_) return;
  for (int turn = 0; next_piece_ < initial_->pieces(); ++turn) {
    if (body_->queued() >= kWatchInitialBytes) return;
    if (turn == kInitialTurn) return owner_.ready(weak_from_this());
    const auto piece = initial_->piece(next_piece_++, owner_.runtime_.clock.now());
    if (!body_->write(*piece)) {
      lock.unlock();
      return stop(false);
    }
    first_ = false;
  }
  initial_.reset();
  starting_ = false;
  if (auto revision = std::exchange(initial_bookmark_, 0); revision > 0)
    write_bookmark(revision, true);
  lock.unlock();
  pump();
}

void WatchStream::pump() {
  if (calls_out()) return owner_.ready(weak_from_this());
  MutexLock lock(mutex_);
  if (ended_ || !watch_ || starting_) return;
  while (body_->queued() < kWatchQueuedBytes) {
    store::Revision known = 0;
    auto events = watch_->next(kWatchBatch, &known);
    if (!events.ok()) {
      body_->write(share(error_event(*context_, too_old())));
      lock.unlock();
      stop(true);
      return;
    }
    if (events->empty()) {
      known_ = std::max(known_, known);
      return;
    }
    for (const store::EventPtr& event : *events) {
      known_ = event->revision;
      if (event->revision <= skip_until_) continue;
      if (!send(*event)) {
        lock.unlock();
        stop(false);
        return;
      }
    }
  }
}

void WatchStream::end() {
  if (calls_out()) {
    ends_ = true;
    return owner_.ready(weak_from_this());
  }
  pump();
  stop(true);
}

void WatchStream::stop(bool properly) {
  std::vector<runtime::TimerId> timers;
  std::unique_ptr<store::Watch> watch;
  std::shared_ptr<net::BodyStream> body;
  {
    MutexLock lock(mutex_);
    if (ended_) return;
    ended_ = true;
    timers.swap(timers_);
    watch = std::move(watch_);
    // start() may be about to set it, in another thread; then it ends it, too.
    body = body_;
  }
  for (auto id : timers) owner_.runtime_.timers.cancel(id);
  watch.reset();
  if (properly && body) body->finish();
  owner_.forget(shared_from_this());
}

Error WatchStream::too_old() const {
  return Error::expired(cat("too old resource version: ", options_.version, " (",
                            owner_.store_.compacted() + 1, ")"));
}

void WatchStream::begin() {
  store::Store& store = owner_.store_;
  bool from_state =
      options_.send_initial_events.value_or(!options_.version_given || options_.version == 0);
  store::Revision from = options_.version;
  MutexLock lock(mutex_);
  if (options_.send_initial_events.value_or(false) && options_.version > store.revision()) {
    fail(version_too_large(options_.version, store.revision()));
    return;
  }
  if (from_state) {
    starting_ = true;
    return owner_.ready(weak_from_this());
  }
  context_->seat.reset();
  if (!options_.version_given || options_.version == 0) {
    from = store.revision();
  } else if (from > store.revision()) {
    skip_until_ = from;
    from = store.revision();
  }
  follow(from);
}

std::string WatchStream::prefix() const {
  const std::string& name_space = context_->info.name_space;
  const bool known = name_ && !name_->empty() && (!resource().namespaced || !name_space.empty());
  return known ? resource().key(name_space, *name_) : resource().namespace_prefix(name_space);
}

void WatchStream::follow(store::Revision from) {
  known_ = from;
  std::weak_ptr<WatchStream> weak = weak_from_this();
  auto watch = owner_.store_.watch(prefix(), from, [&owner = owner_, weak] { owner.ready(weak); });
  if (!watch.ok()) return fail(too_old());
  watch_ = std::move(watch).value();
}

void WatchStream::fail(const Error& error) {
  starting_ = false;
  body_->write(share(error_event(*context_, error)));
  std::weak_ptr<WatchStream> weak = weak_from_this();
  owner_.runtime_.executor.post([weak] {
    if (auto self = weak.lock()) self->stop(true);
  });
}

void WatchStream::arm_timers() {
  std::int64_t seconds = options_.timeout_seconds.value_or(0);
  if (seconds <= 0)
    seconds = owner_.least_seconds_ +
              static_cast<std::int64_t>(owner_.runtime_.random.below(
                  static_cast<std::uint64_t>(std::max<std::int64_t>(1, owner_.least_seconds_))));
  const Duration whole = seconds_of(seconds);
  after(whole, [](WatchStream& self) { self.stop(true); });
  if (!options_.bookmarks) return;
  if (whole > kBookmarkBeforeEnd) {
    after(whole - kBookmarkBeforeEnd, [](WatchStream& self) { self.bookmark(); });
  }
  if (whole > kBookmarkEvery) after(kBookmarkEvery, &WatchStream::regular_bookmark);
}

void WatchStream::regular_bookmark(WatchStream& self) {
  self.bookmark();
  self.after(kBookmarkEvery, &WatchStream::regular_bookmark);
}

void WatchStream::after(Duration delay, void (*what)(WatchStream&)) {
  std::weak_ptr<WatchStream> weak = weak_from_this();
  auto id = owner_.runtime_.timers.after(delay, [weak, what] {
    if (auto self = weak.lock()) what(*self);
  });
  MutexLock lock(mutex_);
  if (timers_.size() > 4) timers_.erase(timers_.begin() + 2, timers_.end() - 1);
  timers_.push_back(id);
}

void WatchStream::bookmark() {
  pump();
  MutexLock lock(mutex_);
  if (ended_ || !watch_ || starting_) return;
  if (known_ > skip_until_) write_bookmark(known_, false);
}

void WatchStream::write_bookmark(store::Revision revision, bool initial_end) {
  std::vector<std::string> ignored;
  Value object = Value::object();
  if (!resource().custom) {
    auto empty = api::decode(Value::object(), *resource().schema, api::Strictness::ignore, ignored);
    if (empty.ok()) object = std::move(empty).value();
  }
  Value out = Value::object({{"kind", resource().kind}, {"apiVersion", resource().api_version()}});
  Value metadata = Value::object({{"resourceVersion", cat(revision)}});
  if (initial_end) {
    metadata.set("annotations", Value::object({{"k8s.io/initial-events-end", "true"}}));
  }
  out.set("metadata", std::move(metadata));
  for (const auto& [key, value] : object.members()) {
    if (key != "metadata" && key != "kind" && key != "apiVersion") out.set(key, value);
  }
  Context served_form = copy_for_bookmark();
  Resource as_served = resource();
  as_served.from_storage = nullptr;
  body_->write(
      share(present_event(served_form, as_served, "BOOKMARK", out, std::exchange(first_, false))));
}

Context WatchStream::copy_for_bookmark() const {
  Context copy;
  copy.answer = context_->answer;
  copy.target = context_->target;
  copy.now = context_->now;
  return copy;
}

bool WatchStream::may_match(std::string_view key) const {
  return !name_ || (key.ends_with(*name_) && key.size() > name_->size() &&
                    key[key.size() - name_->size() - 1] == '/');
}

bool WatchStream::send(const store::Event& event, const Served* served) {
  const auto change = change_of(event, served);
  if (!change) return true;
  // What leaves the selection is shown as it was, at the version of the change.
  const store::Record& record =
      *change == Change::deleted && event.before ? *event.before : *event.now;
  const Value* shown = served ? &served->at(&record) : nullptr;
  if (events_ && context_->answer.form != Form::table) {
    auto object = shown ? Result<Value>(*shown) : read_record(*context_, record);
    if (object.ok()) {
      if (record.modified != event.revision) {
        object->mut("metadata").set("resourceVersion", cat(event.revision));
      }
      if (!is_sent_as_stored(*context_, resource(), record.value))
        object = event_value(*context_, resource(), *object);
      if (!object.ok()) return false;
      return events_->write_event(change_name(*change), std::move(object).value(),
                                  record.value->size());
    }
  }
  const auto line = [&](bool columns) {
    context_->now = owner_.runtime_.clock.now();  // ages in tables
    return event_line(*context_, record, event.revision, *change, columns, shown);
  };
  // What a webhook made of it is not kept: its definition may change while the event is there.
  const bool first = std::exchange(first_, false);
  auto bytes = first || shown ? share(line(first))
                              : event.encoded(form_ | static_cast<std::uint64_t>(*change),
                                              [&] { return line(false); });
  return body_->write(std::move(bytes));
}

std::optional<Change> WatchStream::change_of(const store::Event& event,
                                             const Served* served) const {
  if (!may_match(event.key())) return std::nullopt;
  bool was = event.before != nullptr;
  bool is = event.now != nullptr;
  if (!selection_.everything()) {
    was = was && matches(*event.before, served);
    is = is && matches(*event.now, served);
  }
  if (!was && !is) return std::nullopt;
  return !was ? Change::added : !is ? Change::deleted : Change::modified;
}

bool WatchStream::matches(const store::Record& record, const Served* served) const {
  if (served) return selection_.matches(served->at(&record));
  auto object = decode_stored(record);
  if (!object.ok()) return false;
  auto shown = to_served(resource(), *object);
  return shown.ok() && selection_.matches(*shown);
}

}  // namespace dibs::server
