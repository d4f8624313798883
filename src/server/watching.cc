#include "server/watching.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <thread>

#include "api/schema/decode.h"
#include "base/span.h"
#include "base/strings.h"
#include "server/conversion.h"
#include "server/event_lines.h"
#include "server/initial_state.h"
#include "server/list_options.h"
#include "server/presenting.h"
#include "server/selection.h"
#include "server/status.h"
#include "server/stored.h"
#include "server/warnings.h"

namespace dibs::server {
namespace {

constexpr std::size_t kBatch = 128;
constexpr std::size_t kQueuedBytes = 1 << 20;
// Of the state at the start a little at a time: there may be a thousand who want it.
constexpr std::size_t kInitialBytes = 64 * 1024;
constexpr int kInitialTurn = 16;
constexpr Duration kBookmarkEvery = std::chrono::seconds(60);
constexpr Duration kBookmarkBeforeEnd = std::chrono::seconds(2);
// Who finds too many waiting for a webhook asks again after this, and up to twice as much.
constexpr std::int64_t kRetryMilliseconds = 50;

template <class T>
bool is_busy(const Result<T>& result) {
  return !result.ok() && result.error().code() == Code::too_many_requests;
}

}  // namespace

class WatchStream : public std::enable_shared_from_this<WatchStream> {
 public:
  WatchStream(Watches& owner, std::shared_ptr<Context> context, ListOptions options,
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

  /// Sends through `events`, where the client takes those, and through `body`, which may be the
  /// same stream.
  void start(std::shared_ptr<net::BodyStream> body, std::shared_ptr<calls::EventStream> events) {
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

  /// True until it has got the state that it begins with.
  bool is_starting() const { return starting_; }
  bool waits_for_state() {
    MutexLock lock(mutex_);
    return starting_ && !ended_ && !initial_ && !waits_;
  }
  /// Equal for those that begin with the same.
  const std::string& begins_with() const { return begins_with_; }
  Result<std::shared_ptr<InitialState>> read_state() const {
    return InitialState::read(owner_.store_, context_, selection_);
  }

  void adopt(const Result<std::shared_ptr<InitialState>>& state) {
    MutexLock lock(mutex_);
    if (ended_ || !starting_ || initial_) return;
    // From here on it costs what it sends.
    context_->seat.reset();
    if (!state.ok()) return fail(state.error());
    initial_ = *state;
    initial_bookmark_ = options_.bookmarks ? initial_->revision() : 0;
    follow(initial_->revision());
  }

  /// Sends of the state at the start what the socket has room for. Called from the owner's tasks.
  void send_initial() {
    MutexLock lock(mutex_);
    if (ended_ || !initial_ || !watch_) return;
    for (int turn = 0; next_piece_ < initial_->pieces(); ++turn) {
      if (body_->queued() >= kInitialBytes) return;
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

  /// The same where a webhook converts: nobody waits for the lock while it is asked.
  void send_initial_converted() {
    for (;;) {
      std::shared_ptr<InitialState> initial;
      std::size_t next = 0;
      {
        MutexLock lock(mutex_);
        if (ended_ || !initial_ || !watch_ || waits_) return;
        // The end of it calls nobody.
        if (next_piece_ == initial_->pieces()) break;
        if (body_->queued() >= kInitialBytes) return;
        initial = initial_;
        next = next_piece_;
      }
      const auto piece = initial->piece(next, owner_.runtime_.clock.now());
      if (is_busy(piece)) return try_later();
      MutexLock lock(mutex_);
      if (ended_) return;
      if (!piece.ok()) body_->write(share(error_event(*context_, piece.error())));
      if (!piece.ok() || !body_->write(*piece)) {
        lock.unlock();
        return stop(!piece.ok());
      }
      ++next_piece_;
      first_ = false;
    }
    send_initial();
  }

  /// Every step of it waits for a webhook, so it has a task of its own.
  bool calls_out() const { return resource().conversion != nullptr; }
  /// True for whoever is to post that task; one that runs goes round once more.
  bool take_turn() { return turn_.exchange(Turn::again) == Turn::none; }
  void run_alone() {
    for (;;) {
      turn_ = Turn::runs;
      const bool ends = ends_;  // read before the events: what came before the end is among them
      if (waits_for_state()) {
        if (const auto alike = owner_.begin_reading(*this)) {
          const auto state = read_state();
          is_busy(state) ? try_later() : adopt(state);
          for (const auto& one : *alike) {
            if (is_busy(state)) break;
            one->adopt(state);
            owner_.ready(one);
          }
          owner_.end_reading(*this);
        } else {
          give_up_seat();
          try_later();
        }
      }
      if (is_starting()) send_initial_converted();
      pump_converted();
      if (ends && !is_put_off()) return stop(true);
      Turn expected = Turn::runs;
      if (turn_.compare_exchange_strong(expected, Turn::none)) return;
    }
  }

  void give_up_seat() {
    MutexLock lock(mutex_);
    context_->seat.reset();
  }

  bool is_put_off() {
    MutexLock lock(mutex_);
    return waits_;
  }

  /// Sends what there is. Called from the owner's task, one at a time.
  void pump() {
    if (calls_out()) return owner_.ready(weak_from_this());
    MutexLock lock(mutex_);
    if (ended_ || !watch_ || starting_) return;
    while (body_->queued() < kQueuedBytes) {
      store::Revision known = 0;
      auto events = watch_->next(kBatch, &known);
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

  /// The same where a webhook converts, on a thread of its own: nobody waits for the lock while the
  /// webhook is asked.
  void pump_converted() {
    for (;;) {
      std::vector<store::EventPtr> events;
      {
        MutexLock lock(mutex_);
        if (ended_ || !watch_ || starting_ || waits_ || body_->queued() >= kQueuedBytes) return;
        events.swap(put_off_);
        store::Revision known = 0;
        auto next = events.empty() ? watch_->next(kBatch, &known) : std::move(events);
        if (!next.ok()) {
          body_->write(share(error_event(*context_, too_old())));
        } else if (next->empty()) {
          known_ = std::max(known_, known);
          return;
        } else {
          events = std::move(next).value();
        }
      }
      if (events.empty()) return stop(true);
      auto served = converted(events);
      MutexLock lock(mutex_);
      if (ended_) return;
      if (is_busy(served)) {
        put_off_ = std::move(events);
        lock.unlock();
        return try_later();
      }
      bool open = served.ok();
      if (!open) body_->write(share(error_event(*context_, served.error())));
      for (std::size_t i = 0; open && i < events.size(); ++i) {
        known_ = events[i]->revision;
        if (known_ > skip_until_) open = send(*events[i], &*served);
      }
      lock.unlock();
      if (!open) return stop(!served.ok());
    }
  }

  /// Sends what there is, and ends.
  void end() {
    if (calls_out()) {
      ends_ = true;
      return owner_.ready(weak_from_this());
    }
    pump();
    stop(true);
  }

  bool is_under(const std::string& prefix) const { return resource().storage_prefix == prefix; }

  void stop(bool properly) {
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

 private:
  const Resource& resource() const { return *context_->resource; }
  Error too_old() const {
    return Error::expired(cat("too old resource version: ", options_.version, " (",
                              owner_.store_.compacted() + 1, ")"));
  }

  void begin() {
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

  /// Where the selection names one object, and can say where it lies, changes of others wake
  /// nobody.
  std::string prefix() const {
    const std::string& name_space = context_->info.name_space;
    const bool known = name_ && !name_->empty() && (!resource().namespaced || !name_space.empty());
    return known ? resource().key(name_space, *name_) : resource().namespace_prefix(name_space);
  }

  /// Whatever happens after that revision.
  void follow(store::Revision from) DIBS_REQUIRES(mutex_) {
    known_ = from;
    std::weak_ptr<WatchStream> weak = weak_from_this();
    auto watch =
        owner_.store_.watch(prefix(), from, [&owner = owner_, weak] { owner.ready(weak); });
    if (!watch.ok()) return fail(too_old());
    watch_ = std::move(watch).value();
  }

  /// The stream began before its fault was known, so the fault is an event.
  void fail(const Error& error) {
    starting_ = false;
    body_->write(share(error_event(*context_, error)));
    std::weak_ptr<WatchStream> weak = weak_from_this();
    owner_.runtime_.executor.post([weak] {
      if (auto self = weak.lock()) self->stop(true);
    });
  }

  void arm_timers() {
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

  static void regular_bookmark(WatchStream& self) {
    self.bookmark();
    self.after(kBookmarkEvery, &WatchStream::regular_bookmark);
  }

  void after(Duration delay, void (*what)(WatchStream&)) {
    std::weak_ptr<WatchStream> weak = weak_from_this();
    auto id = owner_.runtime_.timers.after(delay, [weak, what] {
      if (auto self = weak.lock()) what(*self);
    });
    MutexLock lock(mutex_);
    if (timers_.size() > 4) timers_.erase(timers_.begin() + 2, timers_.end() - 1);
    timers_.push_back(id);
  }

  void bookmark() {
    pump();
    MutexLock lock(mutex_);
    if (ended_ || !watch_ || starting_) return;
    if (known_ > skip_until_) write_bookmark(known_, false);
  }

  void write_bookmark(store::Revision revision, bool initial_end) DIBS_REQUIRES(mutex_) {
    std::vector<std::string> ignored;
    Value object = Value::object();
    if (!resource().custom) {
      auto empty =
          api::decode(Value::object(), *resource().schema, api::Strictness::ignore, ignored);
      if (empty.ok()) object = std::move(empty).value();
    }
    Value out =
        Value::object({{"kind", resource().kind}, {"apiVersion", resource().api_version()}});
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
    body_->write(share(
        present_event(served_form, as_served, "BOOKMARK", out, std::exchange(first_, false))));
  }

  Context copy_for_bookmark() const {
    Context copy;
    copy.answer = context_->answer;
    copy.target = context_->target;
    copy.now = context_->now;
    return copy;
  }

  /// Goes on when fewer wait for the webhook: whoever watches is not to begin anew for that.
  void try_later() {
    {
      MutexLock lock(mutex_);
      if (std::exchange(waits_, true)) return;
    }
    const auto more = owner_.runtime_.random.below(kRetryMilliseconds);
    after(std::chrono::milliseconds(kRetryMilliseconds + static_cast<std::int64_t>(more)),
          [](WatchStream& self) {
            {
              MutexLock lock(self.mutex_);
              self.waits_ = false;
            }
            self.owner_.ready(self.weak_from_this());
          });
  }

  bool may_match(std::string_view key) const {
    return !name_ || (key.ends_with(*name_) && key.size() > name_->size() &&
                      key[key.size() - name_->size() - 1] == '/');
  }

  using Served = std::map<const store::Record*, Value>;

  /// The objects of events as a webhook converts them, in one call, unless it has done so for
  /// somebody else who watches.
  Result<Served> converted(const std::vector<store::EventPtr>& events) const {
    RecentlyConverted& recent = resource().conversion->recent();
    const std::string_view form = context_->request.omits_managed_fields ? "kept" : "whole";
    const auto name_of = [&](const store::Record& record) {
      return cat(resource().version, "|", form, "|", record.modified, "|", record.key);
    };
    Served out;
    std::vector<const store::Record*> records;
    std::vector<Value> objects;
    std::vector<bool> asks;
    const auto add = [&](const store::RecordPtr& record) -> Result<> {
      if (!record) return success();
      if (auto known = recent.find(name_of(*record))) {
        out[record.get()] = std::move(*known);
        return success();
      }
      DIBS_TRY(Value object, read_record(*context_, *record));
      asks.push_back(object["apiVersion"].as_string() != resource().api_version());
      records.push_back(record.get());
      objects.push_back(std::move(object));
      return success();
    };
    for (const store::EventPtr& event : events) {
      if (!may_match(event->key())) continue;
      DIBS_CHECK(add(event->now));
      // What was there before is only looked at where it may have left a selection.
      if (!event->now || !selection_.everything()) DIBS_CHECK(add(event->before));
    }
    DIBS_TRY(objects, to_served_all(resource(), std::move(objects)));
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (asks[i]) recent.keep(name_of(*records[i]), objects[i], records[i]->value->size());
      out[records[i]] = std::move(objects[i]);
    }
    return out;
  }

  /// False when the client is gone.
  bool send(const store::Event& event, const Served* served = nullptr) DIBS_REQUIRES(mutex_) {
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

  /// What the event is to this client; nothing when it does not concern it.
  std::optional<Change> change_of(const store::Event& event, const Served* served) const {
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

  bool matches(const store::Record& record, const Served* served) const {
    if (served) return selection_.matches(served->at(&record));
    auto object = decode_stored(record);
    if (!object.ok()) return false;
    auto shown = to_served(resource(), *object);
    return shown.ok() && selection_.matches(*shown);
  }

  Watches& owner_;
  std::shared_ptr<Context> context_;
  ListOptions options_;
  Selection selection_;
  std::optional<std::string> name_;
  std::uint64_t form_ = 0;
  std::string begins_with_;
  std::shared_ptr<net::BodyStream> body_;
  std::shared_ptr<calls::EventStream> events_;  // null: the client takes bytes

  Mutex mutex_;
  std::unique_ptr<store::Watch> watch_ DIBS_GUARDED_BY(mutex_);
  std::vector<runtime::TimerId> timers_ DIBS_GUARDED_BY(mutex_);
  std::atomic<bool> starting_ = false;
  std::shared_ptr<InitialState> initial_ DIBS_GUARDED_BY(mutex_);  // until it is sent
  std::size_t next_piece_ DIBS_GUARDED_BY(mutex_) = 0;
  store::Revision initial_bookmark_ DIBS_GUARDED_BY(mutex_) = 0;
  store::Revision known_ DIBS_GUARDED_BY(mutex_) = 0;
  store::Revision skip_until_ DIBS_GUARDED_BY(mutex_) = 0;
  bool first_ DIBS_GUARDED_BY(mutex_) = false;  // the first event of a Table carries its columns
  bool ended_ DIBS_GUARDED_BY(mutex_) = false;
  std::vector<store::EventPtr> put_off_ DIBS_GUARDED_BY(mutex_);  // to be converted later
  bool waits_ DIBS_GUARDED_BY(mutex_) = false;                    // until then
  /// Of the task of one that calls out.
  enum class Turn : char { none, runs, again };
  std::atomic<Turn> turn_ = Turn::none;
  std::atomic<bool> ends_ = false;
};

Watches::Watches(runtime::Runtime& runtime, store::Store& store, Duration least)
    : runtime_(runtime),
      least_seconds_(std::chrono::duration_cast<std::chrono::seconds>(least).count()),
      store_(store),
      most_starters_(std::max(1U, std::thread::hardware_concurrency() / 2)) {}

Watches::~Watches() { close(); }

void Watches::open(std::shared_ptr<Context> context, std::shared_ptr<calls::Exchange> exchange) {
  auto options = ListOptions::parse(context->target, true);
  if (!options.ok()) return exchange->respond(status_response(options.error()));
  auto selection = Selection::parse(context->target, *context->resource);
  if (!selection.ok()) return exchange->respond(status_response(selection.error()));
  if (context->info.legacy_watch && !context->info.name.empty())
    selection->require_name(context->info.name);

  auto stream = std::make_shared<WatchStream>(*this, context, std::move(options).value(),
                                              std::move(selection).value());
  {
    MutexLock lock(mutex_);
    if (closed_) {
      exchange->respond(status_response(try_again_error("the server is shutting down")));
      return;
    }
    streams_.insert(stream);
  }
  net::Response head;
  const bool protobuf = context->answer.media == Media::protobuf;
  head.headers.add("Content-Type", protobuf ? cat(kProtobuf, ";stream=watch") : "application/json");
  head.headers.add("Cache-Control", "no-cache, private");
  add_warnings(context->warnings, head.headers);
  if (auto events = exchange->stream_events(head)) return stream->start(events, events);
  stream->start(exchange->stream(std::move(head)), nullptr);
}

void Watches::ready(std::weak_ptr<WatchStream> weak) {
  const auto stream = weak.lock();
  if (stream == nullptr) return;
  if (stream->calls_out()) {
    if (stream->take_turn()) runtime_.executor.post([stream] { stream->run_alone(); });
    return;
  }
  const bool starting = stream->is_starting();
  {
    MutexLock lock(mutex_);
    if (starting) {
      starting_.push_back(std::move(weak));
      if (starters_ == most_starters_) return;
      ++starters_;
    } else {
      ready_.push_back(std::move(weak));
      if (serving_) return;
      serving_ = true;
    }
  }
  runtime_.executor.post([this, starting] { starting ? serve_starting() : serve_ready(); });
}

void Watches::serve_ready() {
  for (;;) {
    std::vector<std::weak_ptr<WatchStream>> batch;
    {
      MutexLock lock(mutex_);
      if (ready_.empty()) {
        serving_ = false;
        return;
      }
      batch.swap(ready_);
    }
    for (auto& weak : batch) {
      if (auto stream = weak.lock()) stream->pump();
    }
  }
}

void Watches::serve_starting() {
  for (;;) {
    std::shared_ptr<WatchStream> stream;
    {
      MutexLock lock(mutex_);
      if (starting_.empty()) {
        --starters_;
        return;
      }
      stream = starting_.front().lock();
      starting_.pop_front();
    }
    if (stream == nullptr) continue;
    if (stream->waits_for_state()) {
      // All of them asked before it is read, so for none of them it is too old.
      const auto alike = alike_to(*stream);
      const auto state = stream->read_state();
      stream->adopt(state);
      for (const auto& one : alike) one->adopt(state);
    }
    stream->send_initial();
  }
}

std::vector<std::shared_ptr<WatchStream>> Watches::alike_to(const WatchStream& stream) {
  std::vector<std::shared_ptr<WatchStream>> out;
  MutexLock lock(mutex_);
  for (const auto& weak : starting_) {
    auto other = weak.lock();
    if (other && other->begins_with() == stream.begins_with()) out.push_back(std::move(other));
  }
  return out;
}

std::optional<std::vector<std::shared_ptr<WatchStream>>> Watches::begin_reading(
    const WatchStream& stream) {
  std::vector<std::shared_ptr<WatchStream>> out;
  MutexLock lock(mutex_);
  if (!reading_.insert(stream.begins_with()).second) return std::nullopt;
  for (const auto& other : streams_) {
    if (other.get() == &stream || !other->calls_out() || !other->is_starting()) continue;
    if (other->begins_with() == stream.begins_with()) out.push_back(other);
  }
  return out;
}

void Watches::end_reading(const WatchStream& stream) {
  MutexLock lock(mutex_);
  reading_.erase(stream.begins_with());
}

void Watches::forget(const std::shared_ptr<WatchStream>& stream) {
  MutexLock lock(mutex_);
  streams_.erase(stream);
}

void Watches::end(const std::string& prefix) {
  std::vector<std::shared_ptr<WatchStream>> streams;
  {
    MutexLock lock(mutex_);
    for (const auto& stream : streams_) {
      if (stream->is_under(prefix)) streams.push_back(stream);
    }
  }
  for (const auto& stream : streams) stream->end();
}

void Watches::close() {
  std::unordered_set<std::shared_ptr<WatchStream>> streams;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    streams = streams_;
  }
  for (const auto& stream : streams) stream->stop(true);
}

std::size_t Watches::count() const {
  MutexLock lock(mutex_);
  return streams_.size();
}

}  // namespace dibs::server
