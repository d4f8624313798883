#include "server/plugins/write_turns.h"

#include <utility>

namespace dibs::server {

class WriteTurns::Turn : public Ticket {
 public:
  Turn(std::shared_ptr<WriteTurns> turns, std::string thing)
      : turns_(std::move(turns)), thing_(std::move(thing)) {}
  ~Turn() override { turns_->end(thing_); }

 private:
  const std::shared_ptr<WriteTurns> turns_;
  const std::string thing_;
};

bool WriteTurns::take(const std::string& thing, Write& write, std::function<void()> go_on) {
  const MutexLock lock(mutex_);
  const auto [line, is_free] = lines_.try_emplace(thing);
  if (!is_free) {
    line->second.push_back({write, std::move(go_on)});
    return false;
  }
  write.tickets.push_back(std::make_unique<Turn>(shared_from_this(), thing));
  return true;
}

void WriteTurns::end(const std::string& thing) {
  std::function<void()> go_on;
  {
    const MutexLock lock(mutex_);
    const auto line = lines_.find(thing);
    if (line->second.empty()) {
      lines_.erase(line);
      return;
    }
    Waiting next = std::move(line->second.front());
    line->second.pop_front();
    next.write.tickets.push_back(std::make_unique<Turn>(shared_from_this(), thing));
    go_on = std::move(next.go_on);
  }
  go_on();
}

}  // namespace dibs::server
