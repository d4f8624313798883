#include "controllers/job_indexes.h"

#include <algorithm>
#include <charconv>

#include "base/strings.h"

namespace dibs::controllers {
namespace {

bool read(std::string_view text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0;
}

}  // namespace

IndexSet IndexSet::parse(std::string_view text, std::int64_t below) {
  IndexSet set;
  if (text.empty()) return set;
  for (const std::string_view piece : split(text, ',')) {
    const std::size_t dash = piece.find('-');
    std::int64_t first = 0, last = 0;
    if (!read(piece.substr(0, dash), first)) continue;
    last = first;
    if (dash != std::string_view::npos && !read(piece.substr(dash + 1), last)) continue;
    last = std::min(last, below - 1);
    if (first > last) continue;
    if (set.ranges_.empty() || first > set.ranges_.back().last + 1)
      set.ranges_.push_back({first, last});
    else
      set.ranges_.back().last = std::max(set.ranges_.back().last, last);
  }
  return set;
}

void IndexSet::add(std::int64_t index) {
  if (contains(index)) return;
  auto at = std::find_if(ranges_.begin(), ranges_.end(),
                         [&](const Range& range) { return range.first > index; });
  at = ranges_.insert(at, {index, index});
  if (at + 1 != ranges_.end() && (at + 1)->first == index + 1) {
    at->last = (at + 1)->last;
    ranges_.erase(at + 1);
  }
  if (at != ranges_.begin() && (at - 1)->last == index - 1) {
    (at - 1)->last = at->last;
    ranges_.erase(at);
  }
}

bool IndexSet::contains(std::int64_t index) const {
  const auto at =
      std::upper_bound(ranges_.begin(), ranges_.end(), index,
                       [](std::int64_t value, const Range& range) { return value < range.first; });
  return at != ranges_.begin() && (at - 1)->last >= index;
}

std::int64_t IndexSet::count() const {
  std::int64_t sum = 0;
  for (const Range& range : ranges_) sum += range.last - range.first + 1;
  return sum;
}

std::string IndexSet::str() const {
  std::string text;
  for (const Range& range : ranges_) {
    if (!text.empty()) text += ',';
    append(text, range.first);
    if (range.last == range.first) continue;
    append(text, range.last == range.first + 1 ? ',' : '-', range.last);
  }
  return text;
}

}  // namespace dibs::controllers
