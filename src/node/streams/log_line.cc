#include "node/streams/log_line.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/strings.h"

namespace dibs::node {
namespace {

bool read_number(std::string_view text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// As Go reads a boolean parameter: absent, "false" and "0" are false, an empty value is true.
bool is_set(const net::Target& target, std::string_view name) {
  if (!target.has(name)) return false;
  const std::string_view value = target.get(name);
  return value != "false" && value != "0";
}

}  // namespace

Result<LogOptions> parse_log_options(const net::Target& target) {
  const Error unreadable = Error::bad_request(R"({"message": "Unable to decode query."})");
  const Error impossible = Error::invalid(R"({"message": "Invalid request."})");
  LogOptions out;
  out.follow = is_set(target, "follow");
  out.previous = is_set(target, "previous");
  out.timestamps = is_set(target, "timestamps");
  const auto number = [&](std::string_view name, std::optional<std::int64_t>& place) {
    if (!target.has(name)) return true;
    std::int64_t value = 0;
    if (!read_number(target.get(name), value)) return false;
    place = value;
    return true;
  };
  // "tail" is what clients of before the options wrote.
  if (const auto tail = target.get("tail"); !tail.empty() && tail != "all") {
    if (!number("tail", out.tail_lines)) return unreadable;
  }
  if (!number("tailLines", out.tail_lines) || !number("limitBytes", out.limit_bytes) ||
      !number("sinceSeconds", out.since_seconds)) {
    return unreadable;
  }
  if (const auto since = target.get("sinceTime"); !since.empty()) {
    auto time = parse_rfc3339(since);
    if (!time.ok()) return unreadable;
    out.since = *time;
  }
  if (target.has("stream")) out.stream = target.get("stream");
  if ((out.tail_lines && *out.tail_lines < 0) || (out.limit_bytes && *out.limit_bytes < 1) ||
      (out.since_seconds && (*out.since_seconds < 1 || out.since)) ||
      (out.stream != "All" && out.stream != "Stdout" && out.stream != "Stderr") ||
      (out.stream != "All" && out.tail_lines)) {
    return impossible;
  }
  return out;
}

std::optional<LogLine> parse_log_line(std::string_view line) {
  LogLine out;
  const auto word = [&]() -> std::string_view {
    const auto blank = line.find(' ');
    if (blank == std::string_view::npos) return std::exchange(line, {});
    const std::string_view first = line.substr(0, blank);
    line.remove_prefix(blank + 1);
    return first;
  };
  const auto time = parse_rfc3339(word());
  if (!time.ok()) return std::nullopt;
  out.time = *time;
  const std::string_view stream = word();
  if (stream != "stdout" && stream != "stderr") return std::nullopt;
  out.is_err = stream == "stderr";
  // Tags are separated by colons; only the first says something today.
  const std::string_view tag = word();
  if (tag.empty()) return std::nullopt;
  out.partial = tag.front() == 'P';
  out.text = line;
  if (out.partial && out.text.ends_with('\n')) out.text.remove_suffix(1);
  return out;
}

std::string format_log_time(Time time) {
  const std::string seconds = format_rfc3339(Time::from_seconds(time.seconds()));
  std::string fraction = std::to_string(time.nanoseconds - time.seconds() * 1'000'000'000);
  fraction.insert(0, 9 - fraction.size(), '0');
  return cat(std::string_view(seconds).substr(0, seconds.size() - 1), ".", fraction, "Z");
}

bool LogFormat::add(std::string_view line, std::string& out) {
  const auto parsed = parse_log_line(line);
  if (!parsed) return true;
  if (stream_ != "All" && (stream_ == "Stderr") != parsed->is_err) return true;
  if (since_ && parsed->time < *since_) return true;
  const bool line_start = std::exchange(at_line_start_, !parsed->partial);
  std::string shown;
  if (timestamps_ && line_start) shown = cat(format_log_time(parsed->time), " ");
  shown.append(parsed->text);
  if (!left_) {
    out.append(shown);
    return true;
  }
  const auto size = std::min<std::int64_t>(*left_, static_cast<std::int64_t>(shown.size()));
  out.append(shown, 0, static_cast<std::size_t>(size));
  *left_ -= size;
  return *left_ > 0;
}

std::int64_t find_tail(int fd, std::int64_t lines) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return 0;
  const std::int64_t size = info.st_size;
  if (lines <= 0) return size;
  constexpr std::int64_t kBlock = 64 * 1024;
  std::string block(kBlock, '\0');
  std::int64_t found = 0;
  std::int64_t end = size;
  while (end > 0) {
    const std::int64_t begin = std::max<std::int64_t>(0, end - kBlock);
    const auto got = ::pread(fd, block.data(), static_cast<std::size_t>(end - begin), begin);
    if (got <= 0) return 0;
    for (std::int64_t at = got - 1; at >= 0; --at) {
      if (block[static_cast<std::size_t>(at)] != '\n') continue;
      if (begin + at == size - 1) continue;  // ends the last line
      if (++found == lines) return begin + at + 1;
    }
    end = begin;
  }
  return 0;
}

}  // namespace dibs::node
