#include "scheduler/reasons.h"

#include <algorithm>

#include "base/strings.h"

namespace dibs::scheduler {

void Reasons::add(const Refused& refused) {
  for (const std::string& reason : refused.reasons) ++counts_[reason];
  plugins_ |= bit(refused.plugin);
}

void Reasons::add(std::string reason, Plugin plugin) {
  ++counts_[std::move(reason)];
  plugins_ |= bit(plugin);
}

std::string Reasons::text() const {
  std::vector<std::string> lines;
  lines.reserve(counts_.size());
  for (const auto& [reason, count] : counts_) lines.push_back(cat(count, " ", reason));
  std::sort(lines.begin(), lines.end());
  return join(lines, ", ");
}

std::string unavailable_message(std::size_t nodes, const std::string& reasons) {
  return cat("0/", nodes, " nodes are available: ", reasons, ".");
}

}  // namespace dibs::scheduler
