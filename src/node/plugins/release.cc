#include "node/plugins/release.h"

#include <charconv>

namespace dibs::node {

NodeRelease NodeRelease::parse(std::string_view text) {
  NodeRelease release;
  if (text.size() < 3 || text.substr(0, 2) != "1.") return release;
  int minor = 0;
  const auto parsed = std::from_chars(text.data() + 2, text.data() + text.size(), minor);
  if (parsed.ec != std::errc()) return release;
  release.minor = minor;
  release.exact = true;
  return release;
}

std::string_view NodeRelease::resource_version() const {
  if (minor >= 31) return "v1";
  return "v1alpha2";
}

}  // namespace dibs::node
