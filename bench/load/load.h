#pragma once
// Many connections that each send their next request when the last is answered, and streams that
// wait for the same event.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "load/connection.h"

namespace dibs::bench {

/// A request with places for a number of seven digits; the numbers run from `first` on.
struct Work {
  std::string request;
  std::size_t number_at = std::string::npos;
  std::vector<std::size_t> also_at;  // the same number again
  std::uint64_t first = 0;
  std::uint64_t count = 0;  // numbers to use; 0: no end
  bool again = false;       // from `first` after the last number, instead of stopping
  double seconds = 0;       // stop then; 0: when the numbers are used up
  int expected_status = 200;
  int other_status = 0;  // taken as well
};

struct Outcome {
  std::uint64_t done = 0;
  double seconds = 0;
  double middle_ms = 0;          // latency
  double late_ms = 0;            // the slowest hundredth begins there
  double own_cpu = 0;            // seconds that this program spent
  std::uint64_t all_rounds = 0;  // done, where this is the best of several

  double rate() const { return static_cast<double>(done) / seconds; }
};

class Load {
 public:
  /// Opens all connections; they stay open between runs.
  Load(const TlsSettings& settings, std::size_t connections, std::size_t threads);
  ~Load();
  Outcome run(const Work& work);

 private:
  std::vector<std::vector<std::unique_ptr<Connection>>> shares_;  // by thread
};

/// Watches, open and waiting.
class Watchers {
 public:
  /// Of one target, all open.
  Watchers(const TlsSettings& settings, std::size_t count, const std::string& target);
  /// One for each target, none open yet: open() asks for all of them at once and waits until each
  /// had so many events.
  Watchers(const TlsSettings& settings, const std::vector<std::string>& targets);
  void open(std::uint64_t events);
  ~Watchers();
  Watchers(const Watchers&) = delete;
  Watchers& operator=(const Watchers&) = delete;
  /// Sends `request` on `writer` and gives the milliseconds until the last watcher had its event.
  double fan_out(Connection& writer, const std::string& request);

 private:
  void wait_for(std::uint64_t events, bool heads_only);

  int epoll_ = -1;
  std::vector<std::string> requests_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

void write_number(std::string& text, std::size_t at, std::uint64_t number);

}  // namespace dibs::bench
