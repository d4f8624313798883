#include "base/nearest.h"

#include <algorithm>

#include "base/strings.h"

namespace dibs {

namespace {

/// Names of the API are short; longer text is not compared letter by letter.
constexpr std::size_t kLongestName = 256;

/// A third of the letters may be wrong, but never only a letter or two in a very short name.
std::size_t tolerance(std::size_t length) { return std::max<std::size_t>(1, length / 3); }

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit) {
  const std::size_t apart = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (apart > limit || std::max(a.size(), b.size()) > kLongestName) return limit + 1;
  const std::string from = to_lower(a);
  const std::string to = to_lower(b);
  // Three rows of the table: a swap looks two rows back.
  std::vector<std::size_t> before(to.size() + 1);
  std::vector<std::size_t> last(to.size() + 1);
  std::vector<std::size_t> row(to.size() + 1);
  for (std::size_t j = 0; j <= to.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t changed = last[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      row[j] = std::min({changed, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return std::min(last[to.size()], limit + 1);
}

std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates,
                                 std::size_t most) {
  const std::size_t limit = tolerance(name.size());
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const std::string& candidate : candidates) {
    if (candidate == name) continue;
    const std::size_t distance = edit_distance(name, candidate, limit);
    if (distance <= limit) near.emplace_back(distance, candidate);
  }
  std::sort(near.begin(), near.end());
  near.erase(std::unique(near.begin(), near.end()), near.end());
  if (near.size() > most) near.resize(most);
  std::vector<std::string> names;
  for (auto& [distance, candidate] : near) names.push_back(std::move(candidate));
  return names;
}

}  // namespace dibs
