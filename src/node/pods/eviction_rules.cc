#include "node/pods/eviction_rules.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/strings.h"
#include "node/pods/pod_resources.h"

namespace dibs::node {
namespace {

using json::Value;

constexpr const char* kStorage = "ephemeral-storage";
constexpr std::int64_t kCriticalPriority = 2'000'000'000;
constexpr std::string_view kSignals[] = {"nodefs.available", "nodefs.inodesFree",
                                         "imagefs.available", "imagefs.inodesFree"};

std::optional<Quantity> quantity_in(const Value& value) {
  if (!value.is_string()) return std::nullopt;
  auto parsed = Quantity::parse(value.as_string());
  return parsed ? std::optional(*parsed) : std::nullopt;
}

bool is_above(std::uint64_t used, const Quantity& limit) {
  return limit.sign() > 0 && used > static_cast<std::uint64_t>(limit.value());
}

std::string bytes_text(std::int64_t bytes) {
  return Quantity(bytes, 0, Quantity::Format::binary_si).canonical();
}

std::int64_t request_of(const EvictionCandidate& pod, const MetThreshold& met) {
  return met.unit == UsageUnit::bytes ? requested(pod.pod, kStorage) : 0;
}

Result<EvictionThreshold> parse_threshold(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return Error::bad_request(cat(quoted(text), ": ", why));
  };
  const auto less = text.find('<');
  if (less == std::string_view::npos) return wrong("must be SIGNAL<AMOUNT or SIGNAL<PERCENT%");
  EvictionThreshold out;
  out.signal = trim(text.substr(0, less));
  if (std::find(std::begin(kSignals), std::end(kSignals), out.signal) == std::end(kSignals)) {
    return wrong(
        "this node watches nodefs.available, nodefs.inodesFree, imagefs.available and "
        "imagefs.inodesFree");
  }
  const std::string_view value = trim(text.substr(less + 1));
  if (value.ends_with('%')) {
    double percent = -1;
    const auto digits = value.substr(0, value.size() - 1);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), percent);
    if (read.ec != std::errc() || read.ptr != digits.data() + digits.size() || percent < 0 ||
        percent > 100) {
      return wrong("a percentage is between 0% and 100%");
    }
    out.part = percent / 100;
    return out;
  }
  auto amount = Quantity::parse(value);
  if (!amount) return wrong(amount.error().message());
  if (amount->sign() < 0) return wrong("an amount must not be negative");
  out.amount = *amount;
  return out;
}

}  // namespace

bool has_storage_limits(const Value& pod) {
  for (const Value& volume : pod["spec"]["volumes"].items()) {
    if (volume["emptyDir"]["sizeLimit"].is_string()) return true;
  }
  return total_of(pod, "limits", kStorage).has_value();
}

std::string exceeded_limit(const Value& pod, const PodUsage& usage) {
  for (const Value& volume : pod["spec"]["volumes"].items()) {
    const auto limit = quantity_in(volume["emptyDir"]["sizeLimit"]);
    const auto used = usage.empty_dirs.find(volume["name"].str());
    if (!limit || used == usage.empty_dirs.end() || !is_above(used->second, *limit)) continue;
    return cat("Usage of EmptyDir volume ", quoted(used->first), " exceeds the limit ",
               quoted(limit->canonical()), ". ");
  }
  if (const auto limit = total_of(pod, "limits", kStorage);
      limit && usage.total() > static_cast<std::uint64_t>(*limit)) {
    return cat("Pod ephemeral local storage usage exceeds the total limit of containers ",
               bytes_text(*limit), ". ");
  }
  for (const Value& container : pod["spec"]["containers"].items()) {
    const auto limit = quantity_in(container["resources"]["limits"][kStorage]);
    if (!limit) continue;
    for (const auto& used : usage.containers) {
      if (used.name != container["name"].as_string()) continue;
      if (!is_above(used.written + used.logs, *limit)) continue;
      return cat("Container ", used.name, " exceeded its local ephemeral storage limit ",
                 quoted(limit->canonical()), ". ");
    }
  }
  return "";
}

Result<std::vector<EvictionThreshold>> parse_thresholds(std::string_view text) {
  std::vector<EvictionThreshold> out;
  std::set<std::string> seen;
  for (const auto part : split(text, ',')) {
    if (trim(part).empty()) continue;
    DIBS_TRY(auto threshold, parse_threshold(part));
    if (!seen.insert(threshold.signal).second) {
      return Error::bad_request(cat(quoted(part), ": ", threshold.signal, " is given twice"));
    }
    out.push_back(std::move(threshold));
  }
  return out;
}

std::string_view MetThreshold::resource() const {
  return unit == UsageUnit::bytes ? kStorage : "inodes";
}

std::vector<MetThreshold> met_thresholds(const std::vector<EvictionThreshold>& thresholds,
                                         const FileSystemRoom& nodefs,
                                         const FileSystemRoom& imagefs) {
  std::vector<MetThreshold> out;
  for (const auto& threshold : thresholds) {
    const FileSystemRoom& room = threshold.signal.starts_with("nodefs.") ? nodefs : imagefs;
    MetThreshold met;
    met.unit = threshold.signal.ends_with(".available") ? UsageUnit::bytes : UsageUnit::files;
    const bool bytes = met.unit == UsageUnit::bytes;
    const std::uint64_t whole = bytes ? room.capacity : room.inodes;
    if (whole == 0) continue;
    met.available = static_cast<std::int64_t>(bytes ? room.available : room.inodes_free);
    met.threshold = threshold.amount
                        ? threshold.amount->value()
                        : static_cast<std::int64_t>(static_cast<double>(whole) * threshold.part);
    if (met.available < met.threshold) out.push_back(met);
  }
  return out;
}

bool is_critical(const Value& pod) { return pod["spec"]["priority"].as_int() >= kCriticalPriority; }

void rank_for_eviction(std::vector<EvictionCandidate>& pods, const MetThreshold& met) {
  const auto above = [&](const EvictionCandidate& pod) {
    return static_cast<std::int64_t>(pod.usage.total()) - request_of(pod, met);
  };
  std::stable_sort(pods.begin(), pods.end(),
                   [&](const EvictionCandidate& a, const EvictionCandidate& b) {
                     const std::int64_t first = above(a);
                     const std::int64_t second = above(b);
                     if ((first > 0) != (second > 0)) return first > 0;
                     const auto p = a.pod["spec"]["priority"].as_int();
                     const auto q = b.pod["spec"]["priority"].as_int();
                     return p != q ? p < q : first > second;
                   });
}

std::string eviction_message(const EvictionCandidate& pod, const MetThreshold& met) {
  const bool bytes = met.unit == UsageUnit::bytes;
  std::string out =
      cat("The node was low on resource: ", met.resource(),
          ". Threshold quantity: ", bytes_text(met.threshold),
          ", available: ", bytes ? bytes_text(met.available) : Quantity(met.available).canonical(),
          ". ");
  if (!bytes) return out;
  for (const auto& used : pod.usage.containers) {
    for (const char* list : {"containers", "initContainers"}) {
      for (const Value& container : pod.pod["spec"][list].items()) {
        if (container["name"].as_string() != used.name) continue;
        const auto request = quantity_in(container["resources"]["requests"][kStorage]);
        const auto written = static_cast<std::int64_t>(used.written + used.logs);
        if (written <= (request ? request->value() : 0)) continue;
        append(out, "Container ", used.name, " was using ", bytes_text(written), ", request is ",
               request ? request->canonical() : "0", ", has larger consumption of ", met.resource(),
               ". ");
      }
    }
  }
  return out;
}

}  // namespace dibs::node
