#pragma once
// The question of GET /dibs/usage, and its answer as JSON or CSV (docs/usage.md).

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "net/http.h"
#include "server/usage/log.h"
#include "server/usage/table.h"

namespace dibs::server {

inline constexpr std::string_view kUsagePath = "/dibs/usage";
inline bool is_usage_path(std::string_view path) { return path == kUsagePath; }

/// "90m", "1h30m", "7d", "2d12h": a Go duration above zero, with days before it. Errors:
/// bad_request.
Result<Duration> parse_span(std::string_view text);
/// "namespace,class". Errors: bad_request.
Result<std::vector<UsageBy>> parse_usage_by(std::string_view text);

struct UsageQuery {
  UsageTable::Plan plan;
  bool csv = false;
};
/// Errors: bad_request, naming the parameter.
Result<UsageQuery> parse_usage_query(const net::Target& target, std::string_view accept, Time now);

/// Where the past is known by days alone: whole days, or the time that is known better, where the
/// question goes into more than days tell.
void fit_to_records(UsageTable::Plan& plan, std::int64_t exact_since);

net::Response usage_response(const UsageTable& table, bool csv);

}  // namespace dibs::server
