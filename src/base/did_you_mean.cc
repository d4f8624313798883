#include "base/did_you_mean.h"

#include <algorithm>

#include "base/strings.h"

namespace dibs {
namespace {

/// Letters to add, to drop, to change, or neighbours to swap, until one is the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] =
          std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
    }
    before = last;
    last = now;
  }
  return last[b.size()];
}

/// Longer words are mistyped more often: a letter in three, but at least one.
std::size_t most_wrong(std::string_view word) { return std::max<std::size_t>(1, word.size() / 3); }

/// "" where none is near.
std::string nearest_name(std::string_view word, const std::vector<std::string>& names) {
  // A word that long is no name that was mistyped.
  if (word.size() > 64) return "";
  const std::string lower = to_lower(word);
  std::string best;
  std::size_t least = most_wrong(word) + 1;
  std::vector<std::string> begun;
  for (const std::string& name : names) {
    if (lower.size() > 1 && name.starts_with(lower)) begun.push_back(name);
    const std::size_t wrong = distance(lower, to_lower(name));
    if (wrong < least && wrong < name.size()) {
      least = wrong;
      best = name;
    }
  }
  if (best.empty() && begun.size() == 1) return begun.front();
  return best;
}

}  // namespace

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  const std::string name = nearest_name(word, names);
  return name.empty() ? "" : cat("; did you mean ", quoted(name), "?");
}

}  // namespace dibs
