#include "server/usage/recorder.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "server/status.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

// Changes gather for so long.
constexpr Duration kGather = std::chrono::milliseconds(200);
// A server that dies has its claims held until then, at most so long ago.
constexpr Duration kMark = std::chrono::seconds(10);
// A clock that differs by more from the time that has passed was set.
constexpr std::int64_t kClockWasSet = 2000;

std::int64_t milliseconds(Time time) { return time.nanoseconds / 1'000'000; }
std::int64_t milliseconds(Duration time) { return time.count() / 1'000'000; }

/// When the server that allocated it did so; `otherwise` where it does not say, or says the future.
std::int64_t allocated_at(const Value& claim, std::int64_t otherwise) {
  const Value& text = claim["status"]["allocation"]["allocationTimestamp"];
  if (!text.is_string()) return otherwise;
  const auto time = parse_rfc3339(text.as_string());
  return time.ok() ? std::min(otherwise, milliseconds(*time)) : otherwise;
}

}  // namespace

UsageRecorder::UsageRecorder(runtime::Runtime& runtime, store::Store& store,
                             ResourceTable& resources, std::string folder, UsageLimits limits)
    : runtime_(runtime),
      store_(store),
      resources_(resources),
      log_(std::move(folder), limits),
      wakes_([this] { look(false); }) {}

void UsageRecorder::start() {
  wakes_.begin();
  {
    auto found = log_.open();
    const MutexLock lock(mutex_);
    if (found.ok()) {
      held_ = std::move(found->held);
      known_ = marked_ = found->known;
      usable_ = success();
    } else {
      usable_ = Error::unavailable(cat("usage is not recorded: ", found.error().message()));
      log::error("usage is not recorded", {{"error", found.error()}});
      return;
    }
  }
  wake();
  schedule();
}

void UsageRecorder::schedule() {
  const MutexLock lock(mutex_);
  if (stopped_) return;
  timer_ = runtime_.timers.after(kMark, [this] {
    look(true);
    schedule();
  });
}

void UsageRecorder::stop() {
  runtime::TimerId timer = 0;
  std::unique_ptr<StoreFollower> claims;
  std::unique_ptr<StoreFollower> slices;
  wakes_.end();
  look(true);
  {
    const MutexLock lock(mutex_);
    if (std::exchange(stopped_, true)) return;
    usable_ = Error::unavailable("the server is shutting down");
    timer = timer_;
    // Watches end without the lock that those who wake take.
    claims = std::move(claims_);
    slices = std::move(slices_);
  }
  runtime_.timers.cancel(timer);
}

std::int64_t UsageRecorder::now() const { return milliseconds(runtime_.clock.now()); }

void UsageRecorder::wake() {
  {
    const MutexLock lock(woken_mutex_);
    if (!woken_) woken_ = now();
  }
  wakes_.wake(
      [this](std::function<void()> task) { runtime_.timers.after(kGather, std::move(task)); });
}

void UsageRecorder::follow(std::string_view plural, std::unique_ptr<StoreFollower>& follower) {
  if (follower) return;
  const auto resource = resources_.get()->find_plural("resource.k8s.io", plural);
  if (!resource) return;
  const auto ready = [this] { wake(); };
  follower = std::make_unique<StoreFollower>(store_, resource->storage_prefix, ready);
}

Result<> UsageRecorder::catch_up() {
  if (!usable_.ok()) return usable_;
  {
    const MutexLock lock(woken_mutex_);
    changed_ = std::exchange(woken_, std::nullopt).value_or(now());
  }
  follow("resourceslices", slices_);
  follow("resourceclaims", claims_);
  if (log_.is_full()) {
    if (known_ == 0) known_ = now();
    log_.begin_file(known_, held_);
    marked_ = known_;
  }
  mind_clock();
  // First what devices are, then who has them.
  if (slices_) {
    slices_->catch_up([this]() DIBS_REQUIRES(mutex_) { shares_.clear(); },
                      [this](const std::string& key, const store::Record* now)
                          DIBS_REQUIRES(mutex_) {
                            if (now == nullptr) return shares_.remove_slice(key);
                            if (const auto slice = decode_stored(*now); slice.ok())
                              shares_.put_slice(key, *slice);
                          });
  }
  if (claims_) {
    claims_->catch_up([this]() DIBS_REQUIRES(mutex_) { seen_.emplace(); },
                      [this](const std::string& key, const store::Record* now)
                          DIBS_REQUIRES(mutex_) { take_claim(key, now); });
  }
  end_unseen();
  known_ = now();
  steady_ = runtime_.clock.steady();
  if (!held_.empty() && known_ - marked_ >= kMark / std::chrono::milliseconds(1)) {
    log_.add_known(known_);
    marked_ = known_;
  }
  return success();
}

void UsageRecorder::mind_clock() {
  const std::int64_t at = now();
  // How long the server was down it does not know, only that it was not less than nothing.
  const std::int64_t expected =
      steady_ ? known_ + milliseconds(runtime_.clock.steady() - *steady_) : std::max(known_, at);
  if (std::abs(at - expected) <= kClockWasSet) return;
  log::info("the clock was set, or the machine slept: usage goes on from here",
            {{"seconds", (at - expected) / 1000}, {"claims", held_.size()}});
  for (auto& [key, hold] : held_) {
    log_.add_end({hold.since, std::max(hold.since, expected), key, hold.holding});
    hold.since = at;
    log_.add_begin(key, hold);
  }
  log_.add_known(at);
  changed_ = known_ = marked_ = at;
}

void UsageRecorder::take_claim(const std::string& key, const store::Record* now) {
  if (now == nullptr) return change(key, "", 0);
  const auto claim = decode_stored(*now);
  if (!claim.ok()) return;
  const auto before = held_.find(key);
  std::string holding =
      holding_of(*claim, shares_, before == held_.end() ? "" : before->second.holding);
  if (!seen_) return change(key, std::move(holding), changed_);
  // Told anew: of what happened since it was last seen nobody knows when it did.
  if (!holding.empty()) seen_->insert(key);
  const bool same = before != held_.end() && uid_of(before->second.holding) == uid_of(holding);
  change(key, std::move(holding), same ? known_ : allocated_at(*claim, changed_));
}

void UsageRecorder::change(const std::string& key, std::string holding, std::int64_t began) {
  const auto before = held_.find(key);
  if (before != held_.end()) {
    UsageHold& was = before->second;
    if (was.holding == holding) return;
    const std::int64_t at = seen_ ? known_ : changed_;
    log_.add_end({was.since, std::max(was.since, at), key, was.holding});
    held_.erase(before);
  }
  if (holding.empty()) return;
  const UsageHold& hold = held_[key] = {began, std::move(holding)};
  log_.add_begin(key, hold);
}

void UsageRecorder::end_unseen() {
  if (!seen_) return;
  std::vector<std::string> gone;
  for (const auto& [key, hold] : held_) {
    if (!seen_->contains(key)) gone.push_back(key);
  }
  for (const std::string& key : gone) change(key, "", 0);
  seen_.reset();
}

void UsageRecorder::look(bool syncs) {
  const MutexLock file(flush_mutex_);
  {
    const MutexLock lock(mutex_);
    if (stopped_ || !catch_up().ok()) return;
  }
  const auto flushed = log_.flush();
  if (syncs) log_.sync();
  const MutexLock lock(mutex_);
  if (std::exchange(failing_, !flushed.ok()) || flushed.ok()) return;
  log::error("usage cannot be recorded, tried again", {{"error", flushed.error()}});
}

Result<Response> UsageRecorder::answer(const Context& context) {
  if (context.request.method != "GET") return method_not_allowed_error();
  const auto accept = context.request.headers.get("Accept");
  DIBS_TRY(UsageQuery query, parse_usage_query(context.target, accept, runtime_.clock.now()));
  std::optional<UsageLog::View> view;
  std::vector<std::pair<std::string, UsageHold>> held;
  std::int64_t known = 0;
  {
    const MutexLock lock(mutex_);
    DIBS_CHECK(catch_up());
    view = log_.view();
    // Summed up without the lock, under which what happens now is recorded.
    held.assign(held_.begin(), held_.end());
    known = known_;
  }
  fit_to_records(query.plan, view->exact_since());
  UsageTable table(query.plan);
  for (const auto& [claim, hold] : held) table.add({hold.since, known, claim, hold.holding});
  wake();
  if (query.plan.from < view->exact_since()) view->read_sums(table);
  DIBS_CHECK(view->read(table));
  if (table.is_full()) {
    return Error::bad_request(
        cat("more than ", UsageTable::kMostRows, " rows, or ", UsageTable::kMostParts,
            " parts of them: ask for less time, a longer step or fewer columns"));
  }
  return Response(usage_response(table, query.csv));
}

}  // namespace dibs::server
