#pragma once
// The checks behind /healthz, /livez and /readyz.
//
// A check has a name of kube-apiserver's and tells how what that stands for is here, now. Anybody
// may ask whether all is well; why something is not is told to who may ask for that check alone,
// but for what is no secret and somebody outside can do something about.
//
// Filled before the first request; then thread-safe.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/http.h"

namespace dibs::server {

class Health {
 public:
  /// Asks how it is; `ready`: by /readyz.
  using Check = std::function<Result<>(bool ready)>;
  enum class Reason : char { withheld, told };

  /// Asked by all three.
  void add(std::string name, Check check, Reason reason = Reason::withheld);
  /// Asked by /readyz alone: a restart would not help.
  void add_readiness(std::string name, Check check, Reason reason = Reason::withheld);
  /// A step of the start, which is over.
  void add_done(std::initializer_list<std::string_view> names);

  /// `which`: "healthz", "livez" or "readyz"; `name`: one check alone.
  net::Response all(std::string_view which, const net::Target& target) const;
  net::Response one(std::string_view which, std::string_view name) const;

 private:
  struct Entry {
    std::string name;
    Check check;
    Reason reason = Reason::withheld;
    bool readiness = false;
  };
  bool asks(std::string_view which, const Entry& entry) const;

  std::vector<Entry> entries_;
};

}  // namespace dibs::server
