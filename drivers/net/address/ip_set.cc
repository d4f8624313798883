#include <limits>

#include "drivers/net/address/ip.h"

namespace dibs::drivers::net {
namespace {

IpBits size_of(const Ip& first, const Ip& last) { return last.bits - first.bits + 1; }

/// Is there an address of the family after this one?
bool has_next(const Ip& ip) {
  return ip.v6 ? ip.bits != ~IpBits{0} : ip.bits != std::numeric_limits<std::uint32_t>::max();
}
Ip next(const Ip& ip) { return {ip.v6, ip.bits + 1}; }
Ip previous(const Ip& ip) { return {ip.v6, ip.bits - 1}; }

/// Is `b` in one run with what ends at `a`?
bool touches(const Ip& a, const Ip& b) { return a.v6 == b.v6 && has_next(a) && next(a) == b; }

}  // namespace

Result<IpSet> IpSet::parse(const std::vector<std::string>& ranges) {
  IpSet set;
  for (const std::string& text : ranges) {
    DIBS_TRY(const IpRange range, IpRange::parse(text));
    set.add(range);
  }
  return set;
}

std::vector<std::string> IpSet::to_strings() const {
  std::vector<std::string> texts;
  texts.reserve(ranges_.size());
  for (const auto& [first, last] : ranges_) texts.push_back(IpRange{first, last}.str());
  return texts;
}

std::vector<IpRange> IpSet::ranges() const {
  std::vector<IpRange> made;
  made.reserve(ranges_.size());
  for (const auto& [first, last] : ranges_) made.push_back({first, last});
  return made;
}

void IpSet::add(const IpRange& range) {
  Ip first = range.first;
  Ip last = range.last;
  auto at = ranges_.upper_bound(first);
  if (at != ranges_.begin()) {
    const auto before = std::prev(at);
    if (before->second >= first || touches(before->second, first)) at = before;
  }
  while (at != ranges_.end() && (at->first <= last || touches(last, at->first))) {
    first = std::min(first, at->first);
    last = std::max(last, at->second);
    size_ -= size_of(at->first, at->second);
    at = ranges_.erase(at);
  }
  size_ += size_of(first, last);
  ranges_.emplace_hint(at, first, last);
}

void IpSet::add(const IpSet& other) {
  for (const auto& [first, last] : other.ranges_) add(IpRange{first, last});
}

void IpSet::remove(const IpRange& range) {
  auto at = ranges_.upper_bound(range.first);
  if (at != ranges_.begin() && std::prev(at)->second >= range.first) --at;
  while (at != ranges_.end() && at->first <= range.last) {
    const auto [first, last] = *at;
    size_ -= size_of(first, last);
    at = ranges_.erase(at);
    if (first < range.first) {
      size_ += size_of(first, previous(range.first));
      ranges_.emplace_hint(at, first, previous(range.first));
    }
    if (last > range.last) {
      size_ += size_of(next(range.last), last);
      at = ranges_.emplace_hint(at, next(range.last), last);
      return;
    }
  }
}

void IpSet::remove(const IpSet& other) {
  for (const auto& [first, last] : other.ranges_) remove(IpRange{first, last});
}

bool IpSet::contains(const IpRange& range) const {
  const auto after = ranges_.upper_bound(range.first);
  return after != ranges_.begin() && std::prev(after)->second >= range.last;
}

bool IpSet::contains(const Ip& ip) const { return contains(IpRange{ip, ip}); }

bool IpSet::intersects(const IpRange& range) const {
  const auto after = ranges_.upper_bound(range.last);
  return after != ranges_.begin() && std::prev(after)->second >= range.first;
}

bool IpSet::intersects(const IpSet& other) const {
  const bool smaller = other.ranges_.size() < ranges_.size();
  const IpSet& asked = smaller ? *this : other;
  for (const auto& [first, last] : (smaller ? other : *this).ranges_) {
    if (asked.intersects(IpRange{first, last})) return true;
  }
  return false;
}

std::optional<Ip> IpSet::lowest() const {
  if (ranges_.empty()) return {};
  return ranges_.begin()->first;
}

std::int64_t IpSet::count() const {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (ranges_.empty()) return 0;
  if (size_ == 0 || size_ > static_cast<IpBits>(kMost)) return kMost;
  return static_cast<std::int64_t>(size_);
}

IpSet IpSet::minus(const IpSet& other) const {
  IpSet left = *this;
  left.remove(other);
  return left;
}

IpSet IpSet::intersection(const IpSet& other) const {
  IpSet both;
  auto mine = ranges_.begin();
  auto theirs = other.ranges_.begin();
  while (mine != ranges_.end() && theirs != other.ranges_.end()) {
    const Ip first = std::max(mine->first, theirs->first);
    const Ip last = std::min(mine->second, theirs->second);
    if (first <= last) both.add(IpRange{first, last});
    if (mine->second < theirs->second) {
      ++mine;
    } else {
      ++theirs;
    }
  }
  return both;
}

IpSet IpSet::lowest_of(std::int64_t count) const {
  IpSet made;
  for (const auto& [first, last] : ranges_) {
    if (count <= 0) break;
    const IpBits more = last.bits - first.bits;  // one less than there are
    const IpBits taken = std::min(more, static_cast<IpBits>(count - 1));
    made.add(IpRange{first, Ip{first.v6, first.bits + taken}});
    count -= static_cast<std::int64_t>(taken) + 1;
  }
  return made;
}

}  // namespace dibs::drivers::net
