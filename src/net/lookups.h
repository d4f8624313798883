#pragma once
// Names looked up beside those who wait for them: the system's resolver blocks its thread, and
// knows of no deadline.
//
// A name has a thread while it is looked up, so that one that nobody answers for holds up nobody
// else; whoever asks for it meanwhile gets the same answer. Beyond kMost names at once the others
// wait in line. Nobody waits for these threads to end: they hold what they touch.
//
// Thread-safe. Private to net.

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "net/dial.h"
#include "net/reach.h"

namespace dibs::net {

class Lookups {
 public:
  static constexpr std::size_t kMost = 32;
  using Addresses = Result<std::vector<SocketAddress>>;
  using Resolver = std::function<Addresses(const Url& url, Reach reach)>;
  using Found = std::function<void(const Addresses& addresses)>;

  explicit Lookups(Resolver resolver = resolve);

  /// `found` is called once, at once where there is nothing to be looked up, else on another thread
  /// and perhaps after this is destroyed. It must not block. Errors: as resolve().
  void find(const Url& url, Reach reach, Found found) const;
  /// The same, waited for. Errors: timeout at the deadline.
  Addresses find_by(const Url& url, Reach reach,
                    std::chrono::steady_clock::time_point deadline) const;

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

}  // namespace dibs::net
