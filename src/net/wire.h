#pragma once
// Requests as they stand on the wire.

#include <string_view>

#include "base/result.h"
#include "net/http.h"

namespace dibs::net {

/// Errors: invalid, for a method, target or header that would not be one on the wire: names are
/// tokens, a target has neither spaces nor control characters, a value no control characters but
/// tabs. What was made of somebody's words can so never become a second header or request.
Result<> check_sendable(const Request& request);

/// The path and query of a target; of the absolute form that proxies send, too.
std::string_view origin_form(std::string_view target);

}  // namespace dibs::net
