#pragma once
// An exchange whose answers, whoever makes them, have some more header fields.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calls/call.h"

namespace dibs::server {

/// The same, with these fields in place of any of their names. Events in the process have no head.
std::unique_ptr<calls::Exchange> headed(std::unique_ptr<calls::Exchange> exchange,
                                        std::vector<std::pair<std::string, std::string>> fields);

}  // namespace dibs::server
