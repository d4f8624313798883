#pragma once
// An end to waiting: who is not answered in time is told so, with a 504.

#include <memory>

#include "base/result.h"
#include "base/time.h"
#include "calls/call.h"
#include "runtime/runtime.h"

namespace dibs::server {

/// How long the request may take: what its parameter `timeout` says, and no more than `most`.
/// Errors: bad_request.
Result<Duration> timeout_of(const net::Target& target, Duration most);

/// The same way to answer, where what is not begun within `timeout` is a 504 and comes to nothing
/// after it. Zero: no end.
std::shared_ptr<calls::Exchange> timed(std::unique_ptr<calls::Exchange> exchange,
                                       runtime::Runtime& runtime, Duration timeout);

}  // namespace dibs::server
