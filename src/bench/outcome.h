#pragma once

#include <string>

namespace dibs::bench {

/// What a command prints, and its exit status.
struct Outcome {
  int status = 0;
  std::string output = {};
  std::string errors = {};
};

}  // namespace dibs::bench
