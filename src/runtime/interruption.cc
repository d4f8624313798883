#include "runtime/interruption.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <utility>

namespace dibs::runtime {

Interruption::Interruption(const std::vector<int>& signals, Duration patience,
                           std::function<void()> last)
    : thread_([this, signals, patience, last = std::move(last)] {
        sigset_t ends;
        sigemptyset(&ends);
        for (const int number : signals) sigaddset(&ends, number);
        while (!over_) {
          const timespec moment = {.tv_sec = 0, .tv_nsec = 20'000'000};
          const int number = sigtimedwait(&ends, nullptr, &moment);
          if (number < 0) continue;
          const auto until = std::chrono::steady_clock::now() + patience;
          while (!over_ && std::chrono::steady_clock::now() < until) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
          }
          if (over_) {
            kill(getpid(), number);
            return;
          }
          last();
          std::_Exit(128 + number);
        }
      }) {}

Interruption::~Interruption() {
  over_ = true;
  thread_.join();
}

LastMoment::LastMoment(Duration patience, int status, std::function<void()> last)
    : thread_([this, patience, status, last = std::move(last)] {
        const auto until = std::chrono::steady_clock::now() + patience;
        while (!over_) {
          if (std::chrono::steady_clock::now() >= until) {
            if (last) last();
            std::_Exit(status);
          }
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
      }) {}

LastMoment::~LastMoment() {
  over_ = true;
  thread_.join();
}

}  // namespace dibs::runtime
