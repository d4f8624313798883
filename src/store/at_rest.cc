#include "store/at_rest.h"

#include <algorithm>

#include "base/strings.h"

namespace dibs::store {
namespace {

// Neither JSON nor protobuf in its envelope begins so.
constexpr std::string_view kMark{"\0unreadable\0", 12};

}  // namespace

std::string unreadable_value(const Unreadable& of) {
  std::string why(of.why);
  std::replace(why.begin(), why.end(), '\0', ' ');
  return cat(kMark, why, std::string_view("\0", 1), of.bytes);
}

std::optional<Unreadable> as_unreadable(std::string_view value) {
  if (!value.starts_with(kMark)) return std::nullopt;
  value.remove_prefix(kMark.size());
  const auto end = value.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  return Unreadable{value.substr(0, end), value.substr(end + 1)};
}

}  // namespace dibs::store
