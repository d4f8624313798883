#include "server/list_options.h"

#include <charconv>

#include "api/schema/field_error.h"
#include "base/strings.h"
#include "json/parse.h"
#include "server/request_info.h"

namespace dibs::server {

using json::Value;

Result<std::int64_t> parse_query_number(std::string_view text) {
  std::int64_t number = 0;
  auto digits = text.starts_with('+') ? text.substr(1) : text;
  auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (code == std::errc::result_out_of_range) {
    return Error::bad_request(
        cat("strconv.ParseInt: parsing ", quoted(text), ": value out of range"));
  }
  if (code != std::errc() || end != digits.data() + digits.size()) {
    return Error::bad_request(cat("strconv.ParseInt: parsing ", quoted(text), ": invalid syntax"));
  }
  return number;
}

namespace {

constexpr std::string_view kTokenVersion = "meta.k8s.io/v1";

void check_match(const net::Target& target, bool watch, api::FieldErrors& errors) {
  auto match = target.get("resourceVersionMatch");
  auto version = target.get("resourceVersion");
  api::Path path("resourceVersionMatch");
  bool initial = target.has("sendInitialEvents");
  if (!watch) {
    if (!match.empty()) {
      if (version.empty()) {
        errors.forbidden(path,
                         "resourceVersionMatch is forbidden unless resourceVersion is provided");
      }
      if (!target.get("continue").empty()) {
        errors.forbidden(path, "resourceVersionMatch is forbidden when continue is provided");
      }
      if (match != "Exact" && match != "NotOlderThan") {
        errors.not_supported(path, match, {"Exact", "NotOlderThan", ""});
      }
      if (match == "Exact" && version == "0") {
        errors.forbidden(path,
                         "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
      }
    }
    if (initial)
      errors.forbidden(api::Path("sendInitialEvents"), "sendInitialEvents is forbidden for list");
    return;
  }
  if (initial && match != "NotOlderThan") {
    errors.forbidden(path,
                     "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
  }
  if (!match.empty()) {
    if (!initial) {
      errors.forbidden(
          path, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    }
    if (match != "NotOlderThan") errors.not_supported(path, match, {"NotOlderThan"});
  }
  if (!target.get("continue").empty()) {
    errors.forbidden(path, "resourceVersionMatch is forbidden when continue is provided");
  }
}

}  // namespace

std::optional<std::string> resource_version_fault(std::string_view text) {
  std::uint64_t number = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  const char* why = nullptr;
  if (code == std::errc::result_out_of_range) {
    why = "value out of range";
  } else if (code != std::errc() || end != text.data() + text.size()) {
    why = "invalid syntax";
  }
  if (!why) return std::nullopt;
  return cat("resourceVersion: Invalid value: ", quoted(text), ": strconv.ParseUint: parsing ",
             quoted(text), ": ", why);
}

Result<ListOptions> ListOptions::parse(const net::Target& target, bool watch) {
  ListOptions options;
  if (target.has("limit")) {
    DIBS_TRY(auto limit, parse_query_number(target.get("limit")));
    options.limit = limit > 0 ? static_cast<std::size_t>(limit) : 0;
  }
  if (target.has("timeoutSeconds")) {
    DIBS_TRY(options.timeout_seconds, parse_query_number(target.get("timeoutSeconds")));
  }
  api::FieldErrors errors;
  check_match(target, watch, errors);
  if (!errors.empty()) return errors.to_error("ListOptions", "meta.k8s.io", "");

  options.continue_token = target.get("continue");
  options.bookmarks = query_flag(target, "allowWatchBookmarks");
  if (target.has("sendInitialEvents"))
    options.send_initial_events = query_flag(target, "sendInitialEvents");
  auto match = target.get("resourceVersionMatch");
  options.match = match == "Exact"          ? VersionMatch::exact
                  : match == "NotOlderThan" ? VersionMatch::not_older
                                            : VersionMatch::unset;
  auto version = target.get("resourceVersion");
  if (!version.empty()) {
    if (auto fault = resource_version_fault(version)) {
      if (watch) return Error::plain(*fault);
      return Error::bad_request(cat("invalid resource version: ", *fault));
    }
    options.version_given = true;
    std::from_chars(version.data(), version.data() + version.size(), options.version);
  }
  return options;
}

std::string ContinueToken::encode() const {
  return base64url_encode(
      json::write(Value::object({{"v", kTokenVersion}, {"rv", version}, {"start", start}})));
}

Result<ContinueToken> ContinueToken::decode(const std::string& token) {
  auto bad = [](std::string_view why) {
    return Error::bad_request(cat("invalid continue token: continue key is not valid: ", why));
  };
  std::string text;
  if (!base64url_decode(token, text)) {
    std::size_t at = 0;
    while (at < token.size() && (std::isalnum(static_cast<unsigned char>(token[at])) ||
                                 token[at] == '-' || token[at] == '_')) {
      ++at;
    }
    return bad(cat("illegal base64 data at input byte ", at));
  }
  auto value = json::parse(text);
  if (!value.ok()) return bad(value.error().message());
  if ((*value)["v"].as_string() != kTokenVersion) {
    return bad(cat("server does not recognize this encoded version ", (*value)["v"].as_string()));
  }
  ContinueToken out{(*value)["rv"].as_int(), (*value)["start"].str()};
  if (out.version == 0) {
    return bad(cat("incorrect encoded start resourceVersion (version ", kTokenVersion, ")"));
  }
  if (out.start.empty()) return bad(cat("encoded start key empty (version ", kTokenVersion, ")"));
  // A path that climbs out of the resource's prefix is not one that we gave.
  for (std::string_view part : split(out.start, '/')) {
    if (part == "..") return bad(out.start);
  }
  return out;
}

Error version_too_large(store::Revision wanted, store::Revision current) {
  ErrorDetails details;
  details.causes.push_back({"ResourceVersionTooLarge", "Too large resource version", ""});
  details.retry_after_seconds = 1;
  return {Code::timeout,
          cat("Timeout: Too large resource version: ", wanted, ", current: ", current),
          std::move(details)};
}

}  // namespace dibs::server
