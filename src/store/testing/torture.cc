#include "store/testing/torture.h"

#include <sqlite3.h>

#include <atomic>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/strings.h"

namespace dibs::store::testing {
namespace {

constexpr const char* kPath = "/store.db";
constexpr Revision kFirst = 1000;

Error wrong(std::string text) { return Error::internal(std::move(text)); }

}  // namespace

/// What is written in one life. Each step begins when all of the one before is answered, in the
/// thread that answered last: so groups are the same in every run.
class Torture::Work {
 public:
  Work(Torture& torture, Store& store) : torture_(torture), store_(store) {}

  Result<> run() {
    auto watch = store_.watch("/", std::max(torture_.book_.seen(), store_.compacted()), [] {});
    if (!watch.ok()) return watch.error();
    {
      const MutexLock lock(mutex_);
      watch_ = std::move(watch).value();
    }
    step();
    finished_.get_future().wait();
    const MutexLock lock(mutex_);
    if (wrong_) return *wrong_;
    return success();
  }

 private:
  std::uint64_t random(std::uint64_t below) { return torture_.random_() % below; }

  std::string key() { return cat("/k/", random(12)); }

  std::string value() {
    constexpr std::size_t kSizes[] = {0, 10, 200, 3000, 9000, 40000};
    std::string text = cat(torture_.next_value_++, ":");
    text.resize(text.size() + random(kSizes[random(6)] + 1), 'v');
    for (std::size_t i = 10; i < text.size(); i += 7) text[i] = static_cast<char>('a' + i % 26);
    return text;
  }

  std::vector<Op> transaction() {
    std::vector<Op> ops;
    const auto count = random(3) == 0 ? 2 + random(4) : 1;
    const bool removes = random(4) == 0;
    while (ops.size() < count) {
      Op op{key(), nullptr, {}};
      if (std::any_of(ops.begin(), ops.end(), [&](const Op& one) { return one.key == op.key; })) {
        continue;
      }
      if (!removes || (count > 1 && random(2) == 0)) op.value = share(value());
      if (random(4) == 0) {
        const auto record = store_.get(op.key);
        op.expected = record ? record->modified : 0;
      }
      op.frees = removes && random(2) == 0;
      ops.push_back(std::move(op));
    }
    return ops;
  }

  void step() {
    std::vector<std::vector<Op>> group;
    {
      const MutexLock lock(mutex_);
      watch_events();
      if (steps_++ == torture_.options_.steps || wrong_ || torture_.disk_.is_down()) {
        watch_.reset();
        finished_.set_value();
        return;
      }
      const Revision now = store_.revision();
      torture_.book_.told(now);
      if (random(6) == 0 && now > store_.compacted()) {
        (void)store_.compact(now - static_cast<Revision>(random(
                                       static_cast<std::uint64_t>(now - store_.compacted()))));
      }
      group.resize(random(3) == 0 ? 1 + random(5) : 1);
      for (auto& ops : group) ops = transaction();
      left_ = group.size();
    }
    for (auto& ops : group) {
      store_.commit_async(ops, [this, ops](Result<Revision> answer) {
        if (answered(ops, answer)) step();
      });
    }
  }

  /// True for the last of a step.
  bool answered(const std::vector<Op>& ops, const Result<Revision>& answer) {
    const MutexLock lock(mutex_);
    if (answer.ok()) {
      if (auto entered = torture_.book_.acknowledged(ops, *answer); !entered.ok()) {
        wrong_ = entered.error();
      }
    } else if (answer.error().code() == Code::unavailable) {
      torture_.book_.failed(ops);
    } else if (answer.error().code() != Code::conflict) {
      wrong_ = wrong(cat("a write was answered: ", answer.error().message()));
    }
    return --left_ == 0;
  }

  void watch_events() DIBS_REQUIRES(mutex_) {
    Revision complete = 0;
    auto events = watch_->next(1000, &complete);
    if (!events.ok()) {
      wrong_ = wrong(cat("a watch ended: ", events.error().message()));
      return;
    }
    torture_.book_.told(complete);
    torture_.book_.watched(*events);
  }

  Torture& torture_;
  Store& store_;
  std::promise<void> finished_;
  Mutex mutex_;
  std::unique_ptr<Watch> watch_ DIBS_GUARDED_BY(mutex_);
  std::optional<Error> wrong_ DIBS_GUARDED_BY(mutex_);
  std::size_t left_ DIBS_GUARDED_BY(mutex_) = 0;
  int steps_ DIBS_GUARDED_BY(mutex_) = 0;
};

Torture::Torture(const TortureOptions& options)
    : options_(options),
      disk_(options.seed, options.sector),
      random_(options.seed * 7919 + 1),
      book_(kFirst) {}
Torture::~Torture() = default;

SqliteOptions Torture::store_options() {
  SqliteOptions store;
  store.path = kPath;
  store.disk = &disk_;
  store.first_revision = kFirst;
  store.room_interval = std::chrono::milliseconds(1);
  store.checkpoint_pages = options_.chores ? 6 : 1 << 20;
  store.max_wal_pages = options_.chores ? 40 : 16;
  if (options_.chores) store.history.events = 40;
  if (options_.ballast) store.ballast_bytes = 1 << 20;
  return store;
}

/// A fault of the disk must not be taken for a damaged file.
Result<> Torture::check_refusal(const Error& error, const std::optional<Plan>& plan) const {
  if (!disk_.has_failed()) return wrong(cat("refused without a fault: ", error.message()));
  const bool may_look_damaged = plan && plan->fault == Fault::short_read;
  if (error.code() != Code::unavailable && !may_look_damaged) {
    return wrong(cat("a fault of the disk was called: ", error.message()));
  }
  return success();
}

Result<> Torture::works_again(Store& store) {
  Result<Revision> answer = Revision{0};
  for (int tries = 0; tries < 5000; ++tries) {
    std::vector<Op> ops{{"/k/again", share(std::to_string(next_value_++)), {}}};
    answer = store.commit(ops);
    if (answer.ok()) {
      DIBS_CHECK(store.health());
      DIBS_CHECK(store.room());
      return book_.acknowledged(ops, *answer);
    }
    book_.failed(std::move(ops));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return wrong(cat("refuses writes after the fault is over: ", answer.error().message()));
}

Result<> Torture::live(const std::optional<Plan>& plan, End end) {
  if (plan) disk_.plan(*plan);
  auto opened = open_sqlite_store(store_options());
  Result<> outcome = success();
  if (opened.ok()) {
    Store& store = **opened;
    outcome = book_.check(store, true);
    if (outcome.ok()) outcome = Work(*this, store).run();
    met_fault_ = disk_.has_failed();
    if (outcome.ok()) outcome = book_.check(store, false);
    if (!disk_.is_down()) {
      disk_.mend();
      if (outcome.ok()) outcome = works_again(store);
      if (outcome.ok()) outcome = book_.check(store, false);
      if (end != End::close) disk_.crash(end == End::kill ? Fault::kill : Fault::power_loss);
    }
    // The plan may have been for the closing.
    (*opened)->close();
    opened->reset();
  } else {
    met_fault_ = disk_.has_failed();
    outcome = check_refusal(opened.error(), plan);
  }
  if (disk_.is_down()) disk_.restart();
  disk_.mend();
  return outcome;
}

Result<> Torture::look() {
  DIBS_TRY(auto store, open_sqlite_store(store_options()));
  auto outcome = book_.check(*store, true);
  disk_.crash(Fault::power_loss);
  store.reset();
  disk_.restart();
  return outcome;
}

Result<> Torture::check_end() {
  DIBS_CHECK(live({}, End::close));
  return check_file();
}

/// docs/formats/store.md, by the letter.
Result<> Torture::check_file() {
  sqlite3* db = nullptr;
  const int opened = sqlite3_open_v2(kPath, &db, SQLITE_OPEN_READWRITE, disk_.vfs());
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> closer(db, sqlite3_close);
  if (opened != SQLITE_OK) return wrong("SQLite cannot open the file");
  struct Found {
    std::string problem;
    std::int64_t compacted = 0;
    std::int64_t last = 0;
    std::map<std::string, std::int64_t> created;
  } found;
  const auto each = [&](const char* sql, int (*row)(void*, int, char**, char**)) {
    char* message = nullptr;
    sqlite3_exec(db, sql, row, &found, &message);
    if (message != nullptr) found.problem = message;
    sqlite3_free(message);
  };
  each("PRAGMA integrity_check", [](void* to, int, char** columns, char**) {
    if (std::string_view(columns[0]) != "ok") static_cast<Found*>(to)->problem = columns[0];
    return 0;
  });
  each("SELECT value FROM meta WHERE name = 'compacted'",
       [](void* to, int, char** columns, char**) {
         static_cast<Found*>(to)->compacted = std::stoll(columns[0]);
         return 0;
       });
  each("SELECT position >> 16, key, value IS NULL, created FROM log ORDER BY position",
       [](void* to, int, char** columns, char**) {
         auto& f = *static_cast<Found*>(to);
         const std::int64_t revision = std::stoll(columns[0]);
         const bool removed = columns[2][0] == '1';
         const std::int64_t created = std::stoll(columns[3]);
         auto before = f.created.find(columns[1]);
         const bool existed = before != f.created.end() && before->second != 0;
         if ((created == 0) != removed || created > revision) f.problem = "created";
         if (revision > f.compacted) {
           if (removed && !existed) f.problem = "a removal of nothing";
           if (!removed && created != (existed ? before->second : revision)) {
             f.problem = "created of another life";
           }
         }
         f.created[columns[1]] = created;
         f.last = revision;
         return 0;
       });
  if (!found.problem.empty()) return wrong(cat("the file: ", found.problem));
  if (std::max(found.compacted, found.last) != book_.last()) {
    return wrong(cat("the file ends at ", found.last, " instead of ", book_.last()));
  }
  return success();
}

}  // namespace dibs::store::testing
