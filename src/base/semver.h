#pragma once
// Versions of semver.org 2.0.0: strict parsing and the order of precedence.

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace dibs {

struct SemanticVersion {
  std::uint64_t major = 0;
  std::uint64_t minor = 0;
  std::uint64_t patch = 0;
  std::vector<std::string> prerelease;
  std::vector<std::string> build;

  static Result<SemanticVersion> parse(std::string_view text);
  /// Also takes a leading "v", missing minor and patch, and leading zeros in the three numbers.
  static Result<SemanticVersion> parse_tolerant(std::string_view text);

  std::string str() const;
  /// -1, 0, 1 by precedence; build metadata does not count.
  int compare(const SemanticVersion& other) const;
  friend bool operator==(const SemanticVersion& a, const SemanticVersion& b) {
    return a.compare(b) == 0;
  }
  friend std::strong_ordering operator<=>(const SemanticVersion& a, const SemanticVersion& b) {
    return a.compare(b) <=> 0;
  }
};

}  // namespace dibs
