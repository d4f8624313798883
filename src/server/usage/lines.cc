#include "server/usage/lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/strings.h"

namespace dibs::server {
namespace {

constexpr std::string_view kHead = "dibs usage 1 ";
constexpr std::size_t kBlock = std::size_t{1} << 18;

/// Takes a number and the blank behind it, or the end.
bool take_number(std::string_view& text, std::int64_t& out) {
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, out);
  if (read.ec != std::errc() || (read.ptr != end && *read.ptr != ' ')) return false;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  if (!text.empty()) text.remove_prefix(1);
  return true;
}

/// Closes what it holds.
struct Descriptor {
  explicit Descriptor(int number) : number(number) {}
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  const int number;
};

}  // namespace

std::string head_line(std::int64_t at) { return cat(kHead, at, "\n"); }

std::string begin_line(std::int64_t since, std::string_view claim, std::string_view holding) {
  return cat("+ ", since, " ", claim, " ", holding, "\n");
}

std::string end_line(const UsageInterval& one) {
  return cat("- ", one.from, " ", one.to, " ", one.claim, " ", one.holding, "\n");
}

std::string known_line(std::int64_t at) { return cat("= ", at, "\n"); }

std::optional<std::int64_t> parse_head(std::string_view line) {
  std::int64_t at = 0;
  if (!line.starts_with(kHead)) return std::nullopt;
  line.remove_prefix(kHead.size());
  return take_number(line, at) && line.empty() ? std::optional(at) : std::nullopt;
}

std::optional<UsageLine> parse_line(std::string_view line) {
  if (line.size() < 3 || line[1] != ' ') return std::nullopt;
  UsageLine made;
  UsageInterval& interval = made.interval;
  const char sign = line[0];
  line.remove_prefix(2);
  if (sign == '=')
    return take_number(line, interval.to) && line.empty() ? std::optional(made) : std::nullopt;
  if ((sign != '+' && sign != '-') || !take_number(line, interval.from)) return std::nullopt;
  if (sign == '-' && !take_number(line, interval.to)) return std::nullopt;
  made.kind = sign == '+' ? UsageLine::Kind::begin : UsageLine::Kind::end;
  const auto blank = line.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  interval.claim = line.substr(0, blank);
  interval.holding = line.substr(blank + 1);
  return made;
}

Result<std::size_t> read_lines(const std::string& path, std::size_t offset, std::size_t end,
                               const std::function<bool(std::string_view line)>& take) {
  const auto failed = [&] {
    return Error::unavailable(cat(path, ": cannot read it: ", std::strerror(errno)));
  };
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number < 0) return failed();
  std::string text;
  std::size_t begins = offset;  // of `text`
  while (offset < end) {
    const std::size_t kept = text.size();
    text.resize(kept + std::min(kBlock, end - offset));
    const ssize_t got =
        ::pread(file.number, text.data() + kept, text.size() - kept, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) {
      text.resize(kept);
      continue;
    }
    if (got < 0) return failed();
    text.resize(kept + static_cast<std::size_t>(got));
    if (got == 0) break;
    offset += static_cast<std::size_t>(got);
    std::size_t at = 0;
    for (auto next = text.find('\n'); next != std::string::npos; next = text.find('\n', at)) {
      if (!take(std::string_view(text).substr(at, next - at))) return begins + at;
      at = next + 1;
    }
    text.erase(0, at);
    begins += at;
  }
  return begins;
}

}  // namespace dibs::server
