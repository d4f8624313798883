#pragma once
// From a question's bytes to the answer's: out of the zone, from other servers, or through both
// where a name of the cluster is an alias of one outside.
//
// On the thread of the forwarder's loop.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/metrics.h"
#include "dns/clients.h"
#include "dns/forwarder.h"
#include "dns/zone.h"
#include "runtime/runtime.h"

namespace dibs::dns {

class Responder {
 public:
  /// The longest question that is read: one has hardly more than 300 bytes.
  static constexpr std::size_t kLongestQuestion = 4096;
  /// Told once, perhaps at once; never for what is no question.
  using Reply = std::function<void(std::string bytes)>;

  /// All outlive it. `metrics` may be null.
  Responder(const Zone& zone, Forwarder& forwarder, Clients& clients, runtime::Random& random,
            metrics::Registry* metrics);

  /// `address`: of who asks. False when he asks too much, must not ask, or asks nothing: no answer
  /// comes.
  bool handle(std::string_view bytes, const std::string& address, std::int64_t now, bool stream,
              Reply reply);

 private:
  struct Asked;

  void proceed(const std::shared_ptr<Asked>& asked, const Question& question);
  void forward(const std::shared_ptr<Asked>& asked, const Question& question);
  void shuffle(std::vector<Record>& records);
  static void send(const Asked& asked);
  void count(std::size_t what);

  const Zone& zone_;
  Forwarder& forwarder_;
  Clients& clients_;
  runtime::Random& random_;
  std::vector<metrics::Counter*> counters_;
};

}  // namespace dibs::dns
