#include "server/usage/table.h"

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace dibs::server {
namespace {

constexpr std::array<std::pair<UsageBy, std::string_view>, 4> kNames = {{
    {UsageBy::name_space, "namespace"},
    {UsageBy::device_class, "class"},
    {UsageBy::pod, "pod"},
    {UsageBy::device, "device"},
}};

std::string_view word(std::string_view text) { return text == "-" ? std::string_view() : text; }

}  // namespace

std::string_view name_of(UsageBy by) {
  for (const auto& [one, name] : kNames) {
    if (one == by) return name;
  }
  return {};
}

std::optional<UsageBy> usage_by(std::string_view name) {
  for (const auto& [one, known] : kNames) {
    if (known == name) return one;
  }
  return std::nullopt;
}

std::int64_t UsageTable::row_at(std::int64_t time) const {
  return plan_.step > 0 ? time - (time - plan_.from) % plan_.step : plan_.from;
}

std::int64_t UsageTable::end_of(std::int64_t begin) const {
  return plan_.step > 0 ? std::min(plan_.to, begin + plan_.step) : plan_.to;
}

std::string UsageTable::names(std::string_view name_space, const HeldDevice& device,
                              std::string_view pod) const {
  std::string made;
  for (const UsageBy by : plan_.by) {
    if (!made.empty() || by != plan_.by.front()) made.push_back('\t');
    made.append(by == UsageBy::name_space     ? name_space
                : by == UsageBy::device_class ? word(device.device_class)
                : by == UsageBy::pod          ? pod
                                              : device.id);
  }
  return made;
}

void UsageTable::add(const UsageInterval& interval) {
  const std::int64_t from = std::max(interval.from, plan_.from);
  const std::int64_t to = std::min(interval.to, plan_.to);
  if (from >= to || is_full()) return;
  const std::string_view name_space = interval.claim.substr(0, interval.claim.find('/'));
  if (!plan_.name_space.empty() && name_space != plan_.name_space) return;
  const auto holding = parse_holding(interval.holding);
  if (!holding) return;
  const bool by_pod = std::find(plan_.by.begin(), plan_.by.end(), UsageBy::pod) != plan_.by.end();
  const bool used = !holding->users.empty();
  std::vector<std::string_view> pods = {""};
  if (by_pod && used) pods = holding->users;
  for (std::int64_t at = from; at < to;) {
    const std::int64_t row = row_at(at);
    const std::int64_t end = std::min(to, end_of(row));
    const double seconds = static_cast<double>(end - at) / 1000;
    for (const HeldDevice& device : holding->devices) {
      // Who shares a claim has his part of it.
      const double part = device.share * seconds / static_cast<double>(pods.size());
      for (const std::string_view pod : pods) {
        // One claim alone may be thousands of rows in every step.
        if (is_full()) return;
        ++parts_;
        DeviceSeconds& sum = rows_[{row, names(name_space, device, pod)}];
        sum.held += part;
        if (used) sum.used += part;
      }
    }
    at = end;
  }
}

void UsageTable::add(std::int64_t at, std::string_view name_space, std::string_view device_class,
                     const DeviceSeconds& sum) {
  if (at < plan_.from || at >= plan_.to || is_full()) return;
  if (!plan_.name_space.empty() && name_space != plan_.name_space) return;
  HeldDevice device;
  device.device_class = device_class;
  DeviceSeconds& row = rows_[{row_at(at), names(name_space, device, "")}];
  row.held += sum.held;
  row.used += sum.used;
}

}  // namespace dibs::server
