#include "node/pods/pod_log_tail.h"

#include <fstream>
#include <string_view>
#include <vector>

#include "base/strings.h"

namespace dibs::node {
namespace {

constexpr std::streamoff kRead = 64 * 1024;
constexpr std::size_t kMostBytes = 2048;
constexpr std::size_t kMostLines = 80;

/// "TIME STREAM F text"; a partial line (P) has no line break of its own.
std::string text_of(std::string_view line) {
  std::string_view rest = line;
  std::string_view tag;
  for (int i = 0; i < 3; ++i) {
    const auto blank = rest.find(' ');
    if (blank == std::string_view::npos) return {};
    tag = rest.substr(0, blank);
    rest = rest.substr(blank + 1);
  }
  return tag.starts_with('P') ? std::string(rest) : cat(rest, '\n');
}

}  // namespace

std::string log_tail(const std::string& path) {
  if (path.empty()) return {};
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const std::streamoff size = file.tellg();
  const std::streamoff from = size > kRead ? size - kRead : 0;
  file.seekg(from);
  std::string bytes(static_cast<std::size_t>(size - from), '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  std::vector<std::string_view> lines = split(bytes, '\n');
  // The first may be cut, unless the file begins there.
  if (from > 0 && !lines.empty()) lines.erase(lines.begin());
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  const std::size_t first = lines.size() > kMostLines ? lines.size() - kMostLines : 0;
  std::string out;
  for (std::size_t i = first; i < lines.size(); ++i) out += text_of(lines[i]);
  if (out.size() > kMostBytes) out = out.substr(out.size() - kMostBytes);
  return out;
}

}  // namespace dibs::node
