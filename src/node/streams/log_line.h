#pragma once
// Lines of container logs in CRI's format, "TIME STREAM P|F TEXT": P for a piece of a line that
// goes on in the next entry. And what a client wants of them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "net/http.h"

namespace dibs::node {

struct LogOptions {
  bool follow = false;
  bool previous = false;
  bool timestamps = false;
  std::optional<std::int64_t> since_seconds = {};
  std::optional<Time> since = {};
  std::optional<std::int64_t> tail_lines = {};
  std::optional<std::int64_t> limit_bytes = {};
  std::string stream = "All";  // or Stdout, Stderr
};

/// Errors: bad_request for what cannot be read, invalid for what cannot be done; the messages are
/// the kubelet's.
Result<LogOptions> parse_log_options(const net::Target& target);

struct LogLine {
  Time time = {};
  bool is_err = false;
  bool partial = false;
  std::string_view text = {};  // with its line break, unless partial
};

/// `line` with or without its line break. Nothing when it is not in the format.
std::optional<LogLine> parse_log_line(std::string_view line);

/// Chooses and shows lines one after the other.
class LogFormat {
 public:
  explicit LogFormat(const LogOptions& options)
      : timestamps_(options.timestamps),
        since_(options.since),
        stream_(options.stream),
        left_(options.limit_bytes) {}

  /// Appends what the client gets of a line. False when his limit is reached.
  bool add(std::string_view line, std::string& out);

 private:
  bool timestamps_;
  std::optional<Time> since_;
  std::string stream_;
  std::optional<std::int64_t> left_;
  bool at_line_start_ = true;
};

/// Nanoseconds, always nine digits, UTC.
std::string format_log_time(Time time);

/// Where the last `lines` lines of a file begin; `fd` is open for reading. An unfinished last line
/// counts.
std::int64_t find_tail(int fd, std::int64_t lines);

}  // namespace dibs::node
