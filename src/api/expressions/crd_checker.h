#pragma once
// x-kubernetes-validations when a definition is written: they must compile, and what they cost at
// worst, times how often their value can occur, must stay within limits for each rule and for all.

#include "api/structural/crd_schema.h"

namespace dibs::api {

CelChecker make_cel_checker();

}  // namespace dibs::api
