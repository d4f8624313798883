#include "store/testing/kill_loop.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <ctime>
#include <random>
#include <thread>
#include <vector>

#include "base/strings.h"
#include "store/sqlite_store.h"

namespace dibs::store::testing {
namespace {

constexpr int kWriters = 3;
constexpr std::int64_t kSlots = 16;  // keys of each writer

Error wrong(std::string text) { return Error::internal(std::move(text)); }

/// What the child tells. Shorter than what a pipe takes at once.
struct Told {
  std::int64_t writer = -1;  // -1: the store is open
  std::int64_t number = 0;
  Revision revision = 0;
};

std::string counter_key(int writer) { return cat("/counter/", writer); }
std::string slot_key(int writer, std::int64_t number) {
  return cat("/slot/", writer, "/", number % kSlots);
}

/// The number that a value begins with; -1 when there is none.
std::int64_t number_in(const RecordPtr& record) {
  if (!record) return -1;
  std::string text;
  record->value->append_to(text);
  return std::strtoll(text.c_str(), nullptr, 10);
}

SqliteOptions options_in(const std::string& folder) {
  SqliteOptions options;
  options.path = folder + "/store.db";
  options.history.events = 200;
  options.checkpoint_pages = 12;
  options.max_wal_pages = 60;
  options.ballast_bytes = 1 << 20;
  return options;
}

[[noreturn]] void be_the_child(const std::string& folder, int out) {
  auto opened = open_sqlite_store(options_in(folder));
  if (!opened.ok()) ::_exit(1);
  Store& store = **opened;
  const auto tell = [out](const Told& told) {
    if (::write(out, &told, sizeof(told)) != sizeof(told)) ::_exit(2);
  };
  tell({-1, 0, store.revision()});
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      for (std::int64_t n = number_in(store.get(counter_key(writer))) + 1;; ++n) {
        std::string text = cat(n, " ", std::string(static_cast<std::size_t>(n % 7) * 2000, 'x'));
        std::vector<Op> ops{{counter_key(writer), share(std::to_string(n)), {}},
                            {slot_key(writer, n), share(std::move(text)), {}}};
        // One that goes, so that there is more to forget.
        if (n % 5 == 0) ops.push_back({slot_key(writer, n + 1), nullptr, {}});
        const auto done = store.commit(std::move(ops));
        if (!done.ok()) ::_exit(3);
        tell({writer, n, *done});
      }
    });
  }
  for (auto& writer : writers) writer.join();
  ::_exit(0);
}

class KillLoop {
 public:
  KillLoop(std::string folder, std::uint64_t seed) : folder_(std::move(folder)), random_(seed) {
    last_.fill(-1);
  }

  Result<> cycle() {
    DIBS_CHECK(live_and_die());
    if (random_() % 2 == 0) DIBS_CHECK(check());
    return success();
  }
  Result<> check();
  const KillTally& tally() const { return tally_; }

 private:
  Result<> live_and_die();

  const std::string folder_;
  std::mt19937_64 random_;
  std::array<std::int64_t, kWriters> last_;  // acknowledged
  Revision told_ = 0;
  Revision checked_ = 0;
  KillTally tally_;
};

Result<> KillLoop::live_and_die() {
  int fds[2];
  if (::pipe(fds) != 0) return wrong("no pipe");
  const pid_t child = ::fork();
  if (child < 0) return wrong("no process");
  if (child == 0) {
    ::close(fds[0]);
    be_the_child(folder_, fds[1]);
  }
  ::close(fds[1]);
  // A part of them while the file is opened, the others some writes after that.
  const std::size_t answers = random_() % 4 == 0 ? 0 : 1 + random_() % 12;
  const std::size_t before = tally_.acknowledged;
  bool is_open = false;
  const auto hear = [&] {
    Told told;
    if (::read(fds[0], &told, sizeof(told)) != sizeof(told)) return false;
    told_ = std::max(told_, told.revision);
    if (told.writer < 0) {
      is_open = true;
    } else {
      ++tally_.acknowledged;
      auto& last = last_[static_cast<std::size_t>(told.writer)];
      last = std::max(last, told.number);
    }
    return true;
  };
  while (answers > 0 && tally_.acknowledged - before < answers) {
    if (!hear()) break;
  }
  const timespec moment{0, static_cast<long>(random_() % 6'000) * 1000};
  ::nanosleep(&moment, nullptr);
  ::kill(child, SIGKILL);
  while (hear()) {
  }
  ::close(fds[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFSIGNALED(status)) return wrong(cat("the process ended with ", WEXITSTATUS(status)));
  ++tally_.kills;
  if (!is_open) ++tally_.while_opening;
  return success();
}

Result<> KillLoop::check() {
  ++tally_.checks;
  DIBS_TRY(auto store, open_sqlite_store(options_in(folder_)));
  const Revision now = store->revision();
  if (now < told_) return wrong(cat("the revision is ", now, ", but ", told_, " was told"));
  for (int writer = 0; writer < kWriters; ++writer) {
    const auto counter = store->get(counter_key(writer));
    const std::int64_t n = number_in(counter);
    const std::int64_t last = last_[static_cast<std::size_t>(writer)];
    if (n < last) return wrong(cat(counter_key(writer), " is ", n, ", acknowledged was ", last));
    for (std::int64_t k = std::max<std::int64_t>(0, n - kSlots + 2); k <= n; ++k) {
      const auto slot = store->get(slot_key(writer, k));
      if (number_in(slot) != k) return wrong(cat(slot_key(writer, k), " lacks ", k));
      if (k == n && slot->modified != counter->modified) {
        return wrong(cat(slot_key(writer, k), " and its counter are of two transactions"));
      }
    }
  }
  // From what was seen last, or what is left of it: each revision once, in order.
  Revision at = std::max(checked_, store->compacted());
  DIBS_TRY(auto watch, store->watch("/", at, [] {}));
  while (true) {
    DIBS_TRY(const auto events, watch->next(100));
    if (events.empty()) break;
    for (const auto& event : events) {
      if (event->revision != at && event->revision != at + 1 && at != 0) {
        return wrong(cat("a watch shows ", event->revision, " after ", at));
      }
      at = event->revision;
    }
  }
  if (at != now) return wrong(cat("a watch ends at ", at, " instead of ", now));
  checked_ = now;
  told_ = std::max(told_, now);
  return success();
}

}  // namespace

std::string show(const KillTally& tally) {
  return cat(tally.kills, " kills (", tally.while_opening, " while opening), ", tally.checks,
             " checks, ", tally.acknowledged, " acknowledged writes");
}

Result<KillTally> run_kills(const std::string& folder, std::size_t cycles, std::uint64_t seed) {
  KillLoop loop(folder, seed);
  for (std::size_t i = 0; i < cycles; ++i) {
    auto done = loop.cycle();
    if (!done.ok()) return done.error().within(cat("kill ", i, ", seed ", seed));
  }
  DIBS_CHECK(loop.check());
  return loop.tally();
}

}  // namespace dibs::store::testing
