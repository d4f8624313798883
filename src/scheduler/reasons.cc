#include "scheduler/reasons.h"

#include <algorithm>

#include "base/strings.h"
#include "scheduler/devices.h"

namespace dibs::scheduler {

void Reasons::add(const Refused& refused) {
  plugins_ |= bit(refused.plugin);
  if (refused.cause != Cause::resources) {
    ++causes_[static_cast<std::size_t>(refused.cause)];
    return;
  }
  for (std::size_t i = 0; i < kShort; ++i) lacks_[i] += refused.lacks >> i & 1;
  if (refused.lacks_scalars.empty()) return;
  scalars_.resize(pod_->shape->requests.scalars.size());
  for (const std::uint32_t place : refused.lacks_scalars) ++scalars_[place];
}

void Reasons::add(std::string_view reason, PluginSet plugins, std::size_t nodes) {
  if (nodes == 0) return;
  plugins_ |= plugins;
  const auto found = others_.find(reason);
  if (found != others_.end()) {
    found->second += nodes;
  } else {
    others_.emplace(reason, nodes);
  }
}

void Reasons::add_no_devices(std::size_t nodes) {
  if (nodes == 0) return;
  no_devices_ += nodes;
  plugins_ |= bit(Plugin::dynamic_resources);
}

std::string Reasons::text() const {
  std::map<std::string, std::size_t, std::less<>> counts = others_;
  const auto count = [&counts](std::string words, std::size_t nodes) {
    if (nodes > 0) counts[std::move(words)] += nodes;
  };
  for (std::size_t i = 0; i < kCauses; ++i) count(words_of(static_cast<Cause>(i)), causes_[i]);
  for (std::size_t i = 0; i < kShort; ++i) count(words_of_lack(i), lacks_[i]);
  for (std::size_t i = 0; i < scalars_.size(); ++i) {
    count(words_of_scalar(*pod_, static_cast<std::uint32_t>(i)), scalars_[i]);
  }
  count(kNoDevices, no_devices_);
  std::vector<std::string> lines;
  lines.reserve(counts.size());
  for (const auto& [reason, nodes] : counts) lines.push_back(cat(nodes, " ", reason));
  std::sort(lines.begin(), lines.end());
  return join(lines, ", ");
}

std::string unavailable_message(std::size_t nodes, const std::string& reasons) {
  return cat("0/", nodes, " nodes are available: ", reasons, ".");
}

}  // namespace dibs::scheduler
