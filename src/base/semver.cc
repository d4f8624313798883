#include "base/semver.h"

#include <algorithm>
#include <charconv>

#include "base/strings.h"

namespace dibs {

namespace {

bool only_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool only_identifier(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
  });
}

bool has_leading_zero(std::string_view text) { return text.size() > 1 && text[0] == '0'; }

Result<std::uint64_t> parse_number(std::string_view text, std::string_view name,
                                   std::string_view capitalized) {
  if (!only_digits(text)) {
    return Error::bad_request(
        cat("Invalid character(s) found in ", name, " number ", quoted(text)));
  }
  if (has_leading_zero(text)) {
    return Error::bad_request(
        cat(capitalized, " number must not contain leading zeroes ", quoted(text)));
  }
  std::uint64_t number = 0;
  auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec == std::errc()) return number;
  return Error::bad_request(cat("strconv.ParseUint: parsing ", quoted(text),
                                text.empty() ? ": invalid syntax" : ": value out of range"));
}

Result<> check_prerelease(std::string_view text) {
  if (text.empty()) return Error::bad_request("Prerelease is empty");
  if (only_digits(text)) {
    if (!has_leading_zero(text)) return success();
    return Error::bad_request(
        cat("Numeric PreRelease version must not contain leading zeroes ", quoted(text)));
  }
  if (only_identifier(text)) return success();
  return Error::bad_request(cat("Invalid character(s) found in prerelease ", quoted(text)));
}

Result<> check_build(std::string_view text) {
  if (text.empty()) return Error::bad_request("Build meta data is empty");
  if (only_identifier(text)) return success();
  return Error::bad_request(cat("Invalid character(s) found in build meta data ", quoted(text)));
}

int compare_identifiers(std::string_view a, std::string_view b) {
  bool numeric_a = only_digits(a);
  bool numeric_b = only_digits(b);
  if (numeric_a != numeric_b) return numeric_a ? -1 : 1;
  if (numeric_a && a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  int order = a.compare(b);
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

}  // namespace

Result<SemanticVersion> SemanticVersion::parse(std::string_view text) {
  if (text.empty()) return Error::bad_request("Version string empty");
  std::size_t first = text.find('.');
  std::size_t second = first == text.npos ? text.npos : text.find('.', first + 1);
  if (second == text.npos) return Error::bad_request("No Major.Minor.Patch elements found");
  SemanticVersion version;
  DIBS_TRY(version.major, parse_number(text.substr(0, first), "major", "Major"));
  DIBS_TRY(version.minor,
           parse_number(text.substr(first + 1, second - first - 1), "minor", "Minor"));
  std::string_view rest = text.substr(second + 1);
  std::string_view build;
  std::string_view prerelease;
  bool has_build = false;
  bool has_prerelease = false;
  if (std::size_t plus = rest.find('+'); plus != rest.npos) {
    has_build = true;
    build = rest.substr(plus + 1);
    rest = rest.substr(0, plus);
  }
  if (std::size_t dash = rest.find('-'); dash != rest.npos) {
    has_prerelease = true;
    prerelease = rest.substr(dash + 1);
    rest = rest.substr(0, dash);
  }
  DIBS_TRY(version.patch, parse_number(rest, "patch", "Patch"));
  if (has_prerelease) {
    for (std::string_view piece : split(prerelease, '.')) {
      DIBS_CHECK(check_prerelease(piece));
      version.prerelease.emplace_back(piece);
    }
  }
  if (has_build) {
    for (std::string_view piece : split(build, '.')) {
      DIBS_CHECK(check_build(piece));
      version.build.emplace_back(piece);
    }
  }
  return version;
}

Result<SemanticVersion> SemanticVersion::parse_tolerant(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  // Only the first two dots separate numbers; whatever comes after them is the patch's own problem.
  std::vector<std::string> numbers;
  while (numbers.size() < 2 && text.find('.') != text.npos) {
    const std::size_t dot = text.find('.');
    numbers.emplace_back(text.substr(0, dot));
    text.remove_prefix(dot + 1);
  }
  numbers.emplace_back(text);
  for (std::string& number : numbers) {
    if (number.size() < 2) continue;
    number.erase(0, std::min(number.find_first_not_of('0'), number.size()));
    if (number.empty() || number[0] < '0' || number[0] > '9') number.insert(0, "0");
  }
  if (numbers.size() < 3 && numbers.back().find_first_of("+-") != std::string::npos) {
    return Error::bad_request("Short version cannot contain PreRelease/Build meta data");
  }
  while (numbers.size() < 3) numbers.emplace_back("0");
  return parse(join(numbers, "."));
}

std::string SemanticVersion::str() const {
  std::string out = cat(major, '.', minor, '.', patch);
  if (!prerelease.empty()) append(out, '-', join(prerelease, "."));
  if (!build.empty()) append(out, '+', join(build, "."));
  return out;
}

int SemanticVersion::compare(const SemanticVersion& other) const {
  if (major != other.major) return major < other.major ? -1 : 1;
  if (minor != other.minor) return minor < other.minor ? -1 : 1;
  if (patch != other.patch) return patch < other.patch ? -1 : 1;
  if (prerelease.empty() || other.prerelease.empty()) {
    return static_cast<int>(prerelease.empty()) - static_cast<int>(other.prerelease.empty());
  }
  for (std::size_t i = 0; i < std::min(prerelease.size(), other.prerelease.size()); ++i) {
    int order = compare_identifiers(prerelease[i], other.prerelease[i]);
    if (order != 0) return order;
  }
  if (prerelease.size() == other.prerelease.size()) return 0;
  return prerelease.size() < other.prerelease.size() ? -1 : 1;
}

}  // namespace dibs
