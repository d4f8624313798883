#include <optional>
#include <utility>

#include "base/names.h"
#include "base/strings.h"
#include "drivers/net/ipam/selection.h"

namespace dibs::drivers::net {
namespace {

/// What is longer names no pool that can be, and costs.
constexpr std::size_t kLongest = kDns1123SubdomainMaxLength;

/// One piece of a pattern: any number of characters, or one of a class.
struct Piece {
  bool star = false;
  bool any = false;
  bool negated = false;
  std::vector<std::pair<char, char>> ranges = {};

  bool matches(char c) const {
    if (c == '/') return false;  // as in paths
    if (any) return true;
    for (const auto& [low, high] : ranges) {
      if (low <= c && c <= high) return !negated;
    }
    return negated;
  }
};

class PatternReader {
 public:
  explicit PatternReader(std::string_view text) : rest_(text) {}

  /// Empty where the pattern is wrong.
  std::optional<std::vector<Piece>> read() {
    std::vector<Piece> pieces;
    while (!rest_.empty()) {
      Piece piece;
      if (take('*')) {
        piece.star = true;
      } else if (take('?')) {
        piece.any = true;
      } else if (take('[')) {
        if (!read_class(piece)) return {};
      } else {
        const auto c = character();
        if (!c) return {};
        piece.ranges.emplace_back(*c, *c);
      }
      pieces.push_back(std::move(piece));
    }
    return pieces;
  }

 private:
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::optional<char> character() {
    take('\\');
    if (rest_.empty()) return {};
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  std::optional<char> class_character() {
    if (rest_.empty() || rest_.front() == '-' || rest_.front() == ']') return {};
    return character();
  }

  bool read_class(Piece& piece) {
    piece.negated = take('^');
    while (piece.ranges.empty() || !take(']')) {
      const auto low = class_character();
      if (!low) return false;
      std::optional<char> high = low;
      if (take('-')) high = class_character();
      if (!high) return false;
      piece.ranges.emplace_back(*low, *high);
    }
    return true;
  }

  std::string_view rest_;
};

/// Takes back only the last star, which is enough: what an earlier one could take, the last can.
bool match(const std::vector<Piece>& pieces, std::string_view name) {
  std::size_t at = 0;
  std::size_t piece = 0;
  std::optional<std::pair<std::size_t, std::size_t>> star;  // the piece after it, where it ends
  while (at < name.size() || piece < pieces.size()) {
    if (piece < pieces.size() && pieces[piece].star) {
      star = {++piece, at};
      continue;
    }
    if (piece < pieces.size() && at < name.size() && pieces[piece].matches(name[at])) {
      ++piece;
      ++at;
      continue;
    }
    if (!star || star->second >= name.size() || name[star->second] == '/') return false;
    piece = star->first;
    at = ++star->second;
  }
  return true;
}

}  // namespace

Result<bool> matches_pattern(std::string_view pattern, std::string_view name) {
  if (pattern.size() > kLongest) {
    return Error::invalid(cat("a pattern of more than ", kLongest, " characters"));
  }
  const auto pieces = PatternReader(pattern).read();
  if (!pieces) return Error::invalid(cat("syntax error in pattern '", pattern, "'"));
  return match(*pieces, name);
}

}  // namespace dibs::drivers::net
