#include "bench/load.h"

#include <atomic>

#include "base/mutex.h"
#include "base/strings.h"

namespace dibs::bench {
namespace {

constexpr Duration kNever{-1};

std::string_view text_after(std::string_view json, std::string_view label) {
  const auto at = json.find(label);
  if (at == std::string_view::npos) return {};
  json.remove_prefix(at + label.size());
  return json.substr(0, json.find('"'));
}

}  // namespace

client::Request body_request(std::string method, std::string target, std::string body) {
  client::Request made = client::make_request(std::move(method), std::move(target));
  made.headers.add("Content-Type", "application/json");
  made.body = std::move(body);
  return made;
}

Result<> send_many(client::Client& client, std::size_t count, std::size_t window,
                   const std::function<client::Request(std::size_t)>& request,
                   const std::function<void(std::size_t, const client::Response&)>& answered) {
  struct Shared {
    Mutex mutex;
    CondVar done;
    std::size_t next DIBS_GUARDED_BY(mutex) = 0;
    std::size_t open DIBS_GUARDED_BY(mutex) = 0;
    Result<> outcome DIBS_GUARDED_BY(mutex) = success();
  };
  const auto shared = std::make_shared<Shared>();
  std::function<void()> send = [&, shared] {
    std::size_t index = 0;
    {
      MutexLock lock(shared->mutex);
      if (shared->next >= count || !shared->outcome.ok()) return;
      index = shared->next++;
      ++shared->open;
    }
    client.transport().send_async(request(index),
                                  [&, shared, index](const Result<client::Response>& answer) {
                                    Result<> outcome = success();
                                    if (!answer.ok()) {
                                      outcome = answer.error();
                                    } else if (answer->status >= 300) {
                                      outcome = client::read_answer(*answer).error();
                                    } else if (answered) {
                                      answered(index, *answer);
                                    }
                                    if (!outcome.ok()) {
                                      MutexLock lock(shared->mutex);
                                      if (shared->outcome.ok()) shared->outcome = outcome;
                                    }
                                    send();
                                    MutexLock lock(shared->mutex);
                                    // Under the lock: the waiting thread may end this call at once.
                                    if (--shared->open == 0) shared->done.notify_all();
                                  });
  };
  {
    MutexLock lock(shared->mutex);
    ++shared->open;  // so that it does not end while the first ones are sent
  }
  for (std::size_t i = 0; i < std::min(window, count); ++i) send();
  MutexLock lock(shared->mutex);
  --shared->open;
  shared->done.wait(lock, [&]() DIBS_REQUIRES(shared->mutex) { return shared->open == 0; });
  return shared->outcome;
}

std::string quick_key(std::string_view json) {
  const auto metadata = json.find("\"metadata\":{");
  if (metadata == std::string_view::npos) return {};
  json.remove_prefix(metadata);
  const std::string_view name = text_after(json, "\"name\":\"");
  const std::string_view name_space = text_after(json, "\"namespace\":\"");
  return client::key_of(name_space, name);
}

struct PodFollower::State {
  explicit State(const runtime::Clock& time) : clock(time) {}

  struct Times {
    Duration sent = kNever;
    Duration bound = kNever;
  };

  const runtime::Clock& clock;
  mutable Mutex mutex;
  mutable CondVar changed;
  /// Of which one time is known.
  std::unordered_map<std::string, Times> pods DIBS_GUARDED_BY(mutex);
  std::vector<double> times DIBS_GUARDED_BY(mutex);
  std::size_t bound DIBS_GUARDED_BY(mutex) = 0;
  Duration last DIBS_GUARDED_BY(mutex){0};
  std::function<void(const std::string&)> on_bound DIBS_GUARDED_BY(mutex);

  void note(const std::string& key, Duration sent, Duration at) DIBS_REQUIRES(mutex) {
    const auto [found, fresh] = pods.try_emplace(key);
    Times& pod = found->second;
    if (sent != kNever) pod.sent = sent;
    if (at != kNever) pod.bound = at;
    if (pod.sent == kNever || pod.bound == kNever) return;
    times.push_back(std::chrono::duration<double>(pod.bound - pod.sent).count());
    pods.erase(found);
  }

  std::string line;  // of a stream of text, as far as it has come

  void text(std::string_view bytes) {
    while (true) {
      const auto end = bytes.find('\n');
      line.append(bytes.substr(0, end));
      if (end == std::string_view::npos) return;
      if (text_after(line, "\"type\":\"") == "ADDED") got_node(quick_key(line));
      line.clear();
      bytes.remove_prefix(end + 1);
    }
  }

  void got_node(const std::string& key) {
    const Duration now = clock.steady();
    std::function<void(const std::string&)> tell;
    {
      MutexLock lock(mutex);
      note(key, kNever, now);
      ++bound;
      last = now;
      tell = on_bound;
    }
    changed.notify_all();
    if (tell) tell(key);
  }
};

PodFollower::PodFollower(client::Client& client, runtime::Runtime& runtime)
    : state_(std::make_shared<State>(runtime.clock)) {
  client::WatchOptions options;
  options.field_selector = "spec.nodeName!=";
  stream_ = client.transport().open_stream(
      client::watch_request({"", "v1", "pods"}, "", options),
      {.opened = {},
       .data = [state = state_](std::string_view bytes) { state->text(bytes); },
       .event =
           [state = state_](std::string_view type, const json::Value& pod) {
             if (type == "ADDED") state->got_node(client::key_of(pod));
           },
       .ended = {}});
}

PodFollower::~PodFollower() = default;

void PodFollower::created(const std::string& key, Duration sent) {
  MutexLock lock(state_->mutex);
  state_->note(key, sent, kNever);
}

void PodFollower::on_bound(std::function<void(const std::string& key)> bound) {
  MutexLock lock(state_->mutex);
  state_->on_bound = std::move(bound);
}

std::size_t PodFollower::bound() const {
  MutexLock lock(state_->mutex);
  return state_->bound;
}

bool PodFollower::wait_for(std::size_t bound, Duration timeout) const {
  MutexLock lock(state_->mutex);
  return state_->changed.wait_for(
      lock, timeout, [&]() DIBS_REQUIRES(state_->mutex) { return state_->bound >= bound; });
}

std::vector<double> PodFollower::take_times() {
  MutexLock lock(state_->mutex);
  return std::exchange(state_->times, {});
}

Duration PodFollower::last_bound() const {
  MutexLock lock(state_->mutex);
  return state_->last;
}

}  // namespace dibs::bench
