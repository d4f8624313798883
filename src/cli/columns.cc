#include "cli/columns.h"

#include <algorithm>

#include "base/strings.h"

namespace dibs::cli {

std::string in_one_line(std::string_view text) {
  std::string out(text);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto byte = static_cast<unsigned char>(out[i]);
    if (byte < 0x20 || byte == 0x7f) out[i] = ' ';
    // U+0080 to U+009F, which some terminals take for the same.
    const bool more = byte == 0xc2 && i + 1 < out.size();
    if (more && static_cast<unsigned char>(out[i + 1]) < 0xa0) out[i] = out[i + 1] = ' ';
  }
  return out;
}

std::string in_columns(std::vector<std::vector<std::string>> rows) {
  std::vector<std::size_t> widths;
  for (auto& row : rows) {
    for (std::string& cell : row) cell = in_one_line(cell);
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line.append(row[i]);
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 3, ' ');
    }
    append(out, line, "\n");
  }
  return out;
}

}  // namespace dibs::cli
