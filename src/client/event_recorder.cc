#include "client/event_recorder.h"

#include <deque>
#include <map>

#include "base/mutex.h"
#include "base/strings.h"
#include "client/gate.h"

namespace dibs::client {
namespace {

constexpr Duration kSeriesEnd = std::chrono::minutes(6);
constexpr std::size_t kMaxNote = 1024;
constexpr int kTries = 12;
constexpr Duration kRetry = std::chrono::seconds(10);
// Series remembered; beyond that the oldest are forgotten and start anew when they come back.
constexpr std::size_t kMaxSeries = 4096;

const Gvr kEvents{"events.k8s.io", "v1", "events"};
const Gvr kCoreEvents{"", "v1", "events"};

std::string cut(std::string note) {
  if (note.size() <= kMaxNote) return note;
  std::size_t end = kMaxNote - 3;
  // Not in the middle of a character.
  while (end > 0 && (static_cast<unsigned char>(note[end]) & 0xc0) == 0x80) --end;
  note.resize(end);
  return note + "...";
}

}  // namespace

json::Value object_reference(const json::Value& object) {
  const json::Value& metadata = object["metadata"];
  if (metadata.is_null()) return object;
  auto out = json::Value::object({{"kind", object["kind"]}});
  if (const auto& name_space = metadata["namespace"]; name_space.is_string()) {
    out.set("namespace", name_space);
  }
  out.set("name", metadata["name"]);
  if (metadata["uid"].is_string()) out.set("uid", metadata["uid"]);
  out.set("apiVersion", object["apiVersion"]);
  if (metadata["resourceVersion"].is_string()) {
    out.set("resourceVersion", metadata["resourceVersion"]);
  }
  return out;
}

struct EventRecorder::State : std::enable_shared_from_this<EventRecorder::State> {
  State(Client& api, runtime::Runtime& world, EventRecorderOptions how)
      : client(api), runtime(world), options(std::move(how)) {}

  struct Series {
    std::string name_space;
    std::string name;
    json::Value event;  // as first written
    int count = 1;
    Time last;
    bool queued = false;  // a write of it waits in the queue
    bool written = false;
  };

  Client& client;
  runtime::Runtime& runtime;
  const EventRecorderOptions options;
  Gate gate;

  mutable Mutex mutex;
  std::map<std::string, std::shared_ptr<Series>> series DIBS_GUARDED_BY(mutex);
  std::deque<std::shared_ptr<Series>> queue DIBS_GUARDED_BY(mutex);
  bool sending DIBS_GUARDED_BY(mutex) = false;
  int tries DIBS_GUARDED_BY(mutex) = 0;
  std::uint64_t dropped DIBS_GUARDED_BY(mutex) = 0;
  std::optional<runtime::TimerId> timer DIBS_GUARDED_BY(mutex);

  void record(EventInput input) {
    const Time now = runtime.clock.now();
    const json::Value regarding = object_reference(input.regarding);
    const json::Value related =
        input.related.is_null() ? json::Value() : object_reference(input.related);
    const std::string note = cut(std::move(input.note));
    const std::string key =
        cat(regarding["kind"].as_string(), '\n', regarding["namespace"].as_string(), '\n',
            regarding["name"].as_string(), '\n', regarding["uid"].as_string(), '\n',
            regarding["fieldPath"].as_string(), '\n', related["name"].as_string(), '\n',
            related["uid"].as_string(), '\n', input.warning, '\n', input.reason, '\n', input.action,
            '\n', note);
    {
      const MutexLock lock(mutex);
      forget_old(now);
      auto& entry = series[key];
      if (entry != nullptr && now - entry->last <= kSeriesEnd) {
        ++entry->count;
        entry->last = now;
        if (entry->queued) return;
      } else {
        entry = make(now, regarding, related, input, note);
      }
      if (queue.size() >= options.max_queued) {
        ++dropped;
        if (!entry->written) series.erase(key);
        return;
      }
      entry->queued = true;
      queue.push_back(entry);
      if (sending) return;
      sending = true;
    }
    send();
  }

  void forget_old(Time now) DIBS_REQUIRES(mutex) {
    if (series.size() < kMaxSeries) return;
    std::erase_if(series, [&](const auto& item) { return now - item.second->last > kSeriesEnd; });
    if (series.size() >= kMaxSeries) series.clear();
  }

  std::shared_ptr<Series> make(Time now, const json::Value& regarding, const json::Value& related,
                               const EventInput& input, const std::string& note) {
    auto out = std::make_shared<Series>();
    out->name_space = regarding["namespace"].as_string();
    if (out->name_space.empty()) out->name_space = "default";
    char hex[17];
    std::size_t length = 0;
    for (int shift = 60; shift >= 0; shift -= 4) {
      hex[length++] =
          "0123456789abcdef"[(static_cast<std::uint64_t>(now.nanoseconds) >> shift) & 15];
    }
    std::string_view suffix(hex, length);
    while (suffix.size() > 1 && suffix.front() == '0') suffix.remove_prefix(1);
    // Two events of one moment still need two names.
    out->name = cat(regarding["name"].as_string().substr(0, 200), '.', suffix,
                    runtime::make_suffix(runtime.random, 3));
    out->last = now;
    out->event = json::Value::object(
        {{"apiVersion", "events.k8s.io/v1"},
         {"kind", "Event"},
         {"metadata", json::Value::object({{"name", out->name}, {"namespace", out->name_space}})},
         {"eventTime", format_rfc3339_micro(now)},
         {"reportingController", options.controller},
         {"reportingInstance", options.instance},
         {"action", input.action},
         {"reason", input.reason},
         {"regarding", regarding},
         {"note", note},
         {"type", input.warning ? "Warning" : "Normal"}});
    if (options.core) {
      out->event =
          json::Value::object({{"apiVersion", "v1"},
                               {"kind", "Event"},
                               {"metadata", out->event["metadata"]},
                               {"involvedObject", regarding},
                               {"reason", input.reason},
                               {"message", note},
                               {"source", json::Value::object({{"component", options.controller}})},
                               {"firstTimestamp", format_rfc3339(now)},
                               {"type", out->event["type"]},
                               {"reportingComponent", options.controller},
                               {"reportingInstance", options.host}});
      if (!options.host.empty()) out->event.mut("source").set("host", options.host);
    }
    if (!related.is_null()) out->event.set("related", related);
    return out;
  }

  /// How often and when last, in the words of the form that is written.
  json::Value times(const Series& entry) const {
    if (options.core) {
      return json::Value::object(
          {{"count", entry.count}, {"lastTimestamp", format_rfc3339(entry.last)}});
    }
    return json::Value::object(
        {{"series",
          json::Value::object(
              {{"count", entry.count}, {"lastObservedTime", format_rfc3339_micro(entry.last)}})}});
  }

  void send() {
    std::shared_ptr<Series> entry;
    Request request;
    {
      const MutexLock lock(mutex);
      if (queue.empty() || gate.closed()) {
        sending = false;
        return;
      }
      entry = queue.front();
      const Gvr& gvr = options.core ? kCoreEvents : kEvents;
      if (entry->written) {
        request =
            patch_request(gvr, entry->name_space, entry->name, PatchType::merge, times(*entry));
      } else {
        json::Value event = entry->event;
        if (entry->count > 1 || options.core) {
          const json::Value repeated = times(*entry);
          for (const auto& [key, value] : repeated.members()) event.set(key, value);
        }
        request = create_request(gvr, entry->name_space, event);
      }
      // What is recorded from here on is not in this request.
      entry->queued = false;
    }
    client.call(std::move(request), [self = shared_from_this(), entry](Result<json::Value> answer) {
      GateEntry inside(self->gate);
      if (inside) self->on_answer(*entry, answer);
    });
  }

  void on_answer(Series& entry, const Result<json::Value>& answer) {
    bool later = false;
    {
      const MutexLock lock(mutex);
      if (answer) {
        entry.written = true;
        tries = 0;
        queue.pop_front();
      } else if (answer.error().code() == Code::not_found && entry.written) {
        // The Event has expired on the server: write it again whole.
        entry.written = false;
      } else if (is_passing(answer.error()) && ++tries < kTries) {
        later = true;
      } else {
        ++dropped;
        tries = 0;
        queue.pop_front();
      }
    }
    if (!later) return send();
    const std::weak_ptr<State> weak = weak_from_this();
    const auto id = runtime.timers.after(kRetry, [weak] {
      if (const auto self = weak.lock()) self->send();
    });
    const MutexLock lock(mutex);
    timer = id;
  }

  static bool is_passing(const Error& error) {
    switch (error.code()) {
      case Code::unavailable:
      case Code::timeout:
      case Code::server_timeout:
      case Code::too_many_requests:
      case Code::internal:
      case Code::plain:
        return true;
      default:
        return false;
    }
  }
};

EventRecorder::EventRecorder(Client& client, runtime::Runtime& runtime,
                             EventRecorderOptions options)
    : state_(std::make_shared<State>(client, runtime, std::move(options))) {}

EventRecorder::~EventRecorder() {
  state_->gate.close();
  const MutexLock lock(state_->mutex);
  if (state_->timer) state_->runtime.timers.cancel(*state_->timer);
}

void EventRecorder::record(EventInput event) { state_->record(std::move(event)); }

std::uint64_t EventRecorder::dropped() const {
  const MutexLock lock(state_->mutex);
  return state_->dropped;
}

bool EventRecorder::idle() const {
  const MutexLock lock(state_->mutex);
  return !state_->sending;
}

}  // namespace dibs::client
