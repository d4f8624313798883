#pragma once
// Drivers may be written in another style: what they throw is one more error.

#include <exception>

#include "base/result.h"
#include "base/strings.h"

namespace dibs::driver {

/// The outcome of `call`, which returns a Result.
template <typename Call>
auto guarded(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& thrown) {
    return Error::internal(cat("the driver threw: ", thrown.what()));
  } catch (...) {
    return Error::internal("the driver threw something that is no exception");
  }
}

}  // namespace dibs::driver
