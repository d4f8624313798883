#pragma once
// The query of a list or watch, checked.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http.h"
#include "store/store.h"

namespace dibs::server {

enum class VersionMatch : char { unset, exact, not_older };

struct ListOptions {
  std::size_t limit = 0;
  std::string continue_token;
  bool version_given = false;  // and not ""
  store::Revision version = 0;
  VersionMatch match = VersionMatch::unset;
  std::optional<std::int64_t> timeout_seconds;
  bool bookmarks = false;
  std::optional<bool> send_initial_events;

  /// Errors: bad_request and invalid, as the API words them. `watch`: the rules of watches.
  static Result<ListOptions> parse(const net::Target& target, bool watch);
};

/// Where a listing goes on: base64url of JSON, as every client hands it back unseen.
struct ContinueToken {
  store::Revision version = 0;  // -1: whatever is current
  std::string start;            // key below the prefix

  std::string encode() const;
  static Result<ContinueToken> decode(const std::string& token);
};

/// A number of a query. Errors: bad_request, in Go's words.
Result<std::int64_t> parse_query_number(std::string_view text);

/// A resourceVersion that this server has not reached.
Error version_too_large(store::Revision wanted, store::Revision current);

/// "resourceVersion: Invalid value: …" of a version that is no number; nothing when it is one.
std::optional<std::string> resource_version_fault(std::string_view text);

}  // namespace dibs::server
