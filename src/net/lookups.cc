#include "net/lookups.h"

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/strings.h"

namespace dibs::net {

struct Lookups::State {
  struct Name {
    Url url;
    Reach reach = Reach::anywhere;
    std::vector<Found> waiting;
  };

  explicit State(Resolver use) : resolver(std::move(use)) {}

  const Resolver resolver;
  Mutex mutex;
  std::map<std::string, Name> names DIBS_GUARDED_BY(mutex);  // in line, or looked up now
  std::deque<std::string> line DIBS_GUARDED_BY(mutex);
  std::size_t threads DIBS_GUARDED_BY(mutex) = 0;
};

Lookups::Lookups(Resolver resolver) : state_(std::make_shared<State>(std::move(resolver))) {}

void Lookups::find(const Url& url, Reach reach, Found found) const {
  if (!needs_lookup(url)) return found(state_->resolver(url, reach));
  const std::string key =
      cat(url.dialled_host(), ":", url.dialled_port(), "/", static_cast<int>(reach));
  {
    const MutexLock lock(state_->mutex);
    State::Name& name = state_->names[key];
    name.waiting.push_back(std::move(found));
    if (name.waiting.size() > 1) return;
    name.url = url;
    name.reach = reach;
    state_->line.push_back(key);
    if (state_->threads == kMost) return;
    ++state_->threads;
  }
  std::thread([state = state_] { run(state); }).detach();
}

void Lookups::run(const std::shared_ptr<State>& state) {
  for (;;) {
    std::string key;
    Url url;
    Reach reach = Reach::anywhere;
    {
      const MutexLock lock(state->mutex);
      if (state->line.empty()) {
        --state->threads;
        return;
      }
      key = std::move(state->line.front());
      state->line.pop_front();
      const State::Name& name = state->names.find(key)->second;
      url = name.url;
      reach = name.reach;
    }
    const Addresses addresses = state->resolver(url, reach);
    std::vector<Found> waiting;
    {
      const MutexLock lock(state->mutex);
      waiting = std::move(state->names.extract(key).mapped().waiting);
    }
    for (const Found& found : waiting) found(addresses);
  }
}

Lookups::Addresses Lookups::find_by(const Url& url, Reach reach,
                                    std::chrono::steady_clock::time_point deadline) const {
  if (!needs_lookup(url)) return state_->resolver(url, reach);
  struct Answer {
    Mutex mutex;
    CondVar came;
    std::optional<Addresses> addresses DIBS_GUARDED_BY(mutex);
  };
  const auto answer = std::make_shared<Answer>();
  find(url, reach, [answer](const Addresses& addresses) {
    const MutexLock lock(answer->mutex);
    answer->addresses = addresses;
    answer->came.notify_all();
  });
  MutexLock lock(answer->mutex);
  const auto is_there = [&]()
                            DIBS_REQUIRES(answer->mutex) { return answer->addresses.has_value(); };
  if (answer->came.wait_until(lock, deadline, is_there)) return std::move(*answer->addresses);
  return Error::timeout(cat("dial tcp: lookup ", url.dialled_host(), ": i/o timeout"));
}

}  // namespace dibs::net
