#pragma once
// --metrics-bind-address: where a part of a cluster that runs alone serves its metrics and answers
// probes.

#include <functional>
#include <memory>
#include <string>

#include "base/metrics.h"
#include "base/result.h"
#include "net/http_server.h"

namespace dibs::cli {

/// Before anything is begun. Errors: bad_request.
Result<> check_part_port(const std::string& address);

/// Null where `address` is "". `registry` must outlive it, and gets what is told of the process.
/// Errors: of check_part_port(), unavailable for an address that is taken.
Result<std::unique_ptr<net::HttpServer>> open_part_port(const std::string& address,
                                                        metrics::Registry& registry,
                                                        std::function<bool()> ready);

}  // namespace dibs::cli
