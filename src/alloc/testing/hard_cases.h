#pragma once
// Problems that take a plain search longer than anyone waits, at the sizes that the API admits: 64
// or 128 devices in a slice, 32 devices in a claim, several claims. Tests hold their cost to the
// bound, benchmarks measure it.

#include <string>
#include <vector>

#include "json/value.h"

namespace dibs::alloc {

struct HardCase {
  std::string name;
  bool solvable = false;
  json::Value source;  // in the form of the recorded cases
};

std::vector<HardCase> hard_cases();

}  // namespace dibs::alloc
