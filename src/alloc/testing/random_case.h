#pragma once
// Random allocation problems for tests and benchmarks, in the form of the recorded cases: small,
// and full of the things that make search hard (equal devices, constraints, counters, shared
// capacity, alternatives, faults).

#include <cstdint>

#include "json/value.h"

namespace dibs::alloc {

struct RandomCaseOptions {
  int pools = 2;
  int devices = 8;   // per pool, at most
  int claims = 2;    // at most
  int requests = 3;  // per claim, at most
  int count = 3;     // devices per request, at most
  bool counters = true;
  bool capacity = true;
  bool faults = true;
  bool lists = true;
};

json::Value random_case(std::uint64_t seed, const RandomCaseOptions& options = {});

}  // namespace dibs::alloc
