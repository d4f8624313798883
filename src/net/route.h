#pragma once
// Which of the kernel's routes leads to an address.
//
// A cluster's own addresses, of pods and of Services, have routes of their own on a machine that
// can reach them. Where only the default route is left for one, packets to it go to whoever is
// behind the next router, and a stranger answers.
//
// Any thread; blocks no longer than a system call does.

#include <string_view>

#include "base/result.h"

namespace dibs::net {

/// True where packets to that IPv4 or IPv6 address leave by the default route. False where another
/// route has it, or none. Errors: invalid for what is no address; unavailable when the kernel does
/// not say.
Result<bool> is_by_default_route(std::string_view address);

/// The same, of the kernel's answer to RTM_GETROUTE with RTM_F_FIB_MATCH.
Result<bool> read_route(std::string_view answer);

}  // namespace dibs::net
