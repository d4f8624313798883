#pragma once
// The lines of a file of records (docs/formats/usage.md).
//
//   dibs usage 1 MS             the first of a file, which begins then
//   + FROM CLAIM HOLDING        a claim holds this since then
//   - FROM TO CLAIM HOLDING     it did until then
//   = MS                        nothing else had changed until then

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "server/usage/table.h"

namespace dibs::server {

std::string head_line(std::int64_t at);
std::string begin_line(std::int64_t since, std::string_view claim, std::string_view holding);
std::string end_line(const UsageInterval& interval);
std::string known_line(std::int64_t at);

/// One line, without its break. Views into it.
struct UsageLine {
  enum class Kind : char { begin, end, known };
  Kind kind = Kind::known;
  UsageInterval interval;  // of `begin`: without an end; of `known`: its end alone
};
std::optional<UsageLine> parse_line(std::string_view line);
/// The time of a head line; nothing for what is none of this version.
std::optional<std::int64_t> parse_head(std::string_view line);

/// Whole lines of a file from `offset` up to `end`, until `take` returns false. Returns where what
/// follows the last line that was taken begins. Errors: unavailable.
Result<std::size_t> read_lines(const std::string& path, std::size_t offset, std::size_t end,
                               const std::function<bool(std::string_view line)>& take);

}  // namespace dibs::server
