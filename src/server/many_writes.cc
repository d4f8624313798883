#include "server/many_writes.h"

#include <optional>
#include <utility>

namespace dibs::server {

ManyWrites::ManyWrites(Objects& objects, Next next, std::function<bool(const Error&)> forgives)
    : objects_(objects), next_(std::move(next)), forgives_(std::move(forgives)) {}

void ManyWrites::run(std::function<void(Result<>)> done) {
  done_ = std::move(done);
  go_on();
}

void ManyWrites::go_on() {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(busy_, true)) return;
  }
  while (true) {
    while (do_one()) {
    }
    std::function<void(Result<>)> done;
    {
      const MutexLock lock(mutex_);
      if (!answers_.empty()) continue;
      busy_ = false;
      if (open_ == 0) done = std::exchange(done_, nullptr);
    }
    if (done) done(outcome_);
    return;
  }
}

bool ManyWrites::do_one() {
  std::optional<Answer> answer;
  {
    const MutexLock lock(mutex_);
    if (!answers_.empty()) {
      answer = std::move(answers_.front());
      answers_.pop_front();
    }
  }
  if (answer) {
    settle(*answer);
    return true;
  }
  if (all_begun_ || open_ == kAtOnce) return false;
  auto next = next_();
  if (!next.ok()) {
    note(next.error());
  } else if (*next) {
    begin(*next);
  } else {
    all_begun_ = true;
  }
  return true;
}

void ManyWrites::begin(const std::shared_ptr<Write>& write) {
  const auto prepared = objects_.prepare(*write);
  if (!prepared.ok()) return note(prepared.error());
  if (!write->op) return;
  ++open_;
  objects_.store().commit_async(
      write->transaction(), [self = shared_from_this(), write](Result<store::Revision> revision) {
        {
          const MutexLock lock(self->mutex_);
          self->answers_.push_back({write, std::move(revision)});
        }
        self->objects_.runtime().executor.post([self] { self->go_on(); });
      });
}

void ManyWrites::settle(const Answer& answer) {
  --open_;
  const auto over = objects_.settle(*answer.write, answer.revision);
  if (!over.ok()) return note(over.error());
  // Else somebody was faster.
  if (!*over && outcome_.ok()) begin(answer.write);
}

void ManyWrites::note(const Error& error) {
  if (forgives_(error)) return;
  if (outcome_.ok()) outcome_ = error;
  all_begun_ = true;
}

}  // namespace dibs::server
