#pragma once
// What a simulated container does, read from its command line.
//
// Not a shell: it knows the few commands that examples and tests are made of, so that their logs
// and exit codes look right without a process. `sleep 5; exit 3` ends after 5 s with 3; loops,
// servers and everything else that is unknown run until they are stopped.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace dibs::node {

struct SimScript {
  std::string out = {};
  std::string err = {};
  /// Until it ends by itself.
  Duration run = Duration::zero();
  bool endless = false;
  int exit_code = 0;
  /// It takes SIGTERM and ends with 0.
  bool graceful = false;
  /// It does not hear SIGTERM: only its grace period ends it.
  bool deaf = false;
};

using SimEnv = std::vector<std::pair<std::string, std::string>>;

/// `words` is the command with its arguments. With `probe` unknown commands end at once with 0, as
/// those of probes and of exec do.
SimScript read_script(const std::vector<std::string>& words, const SimEnv& env, bool probe);

}  // namespace dibs::node
