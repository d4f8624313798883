#include "alloc/cases.h"

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::alloc {
namespace {

constexpr std::string_view kShareId = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa";

/// Cuts what a fault says about things outside the allocator.
std::string essence(std::string_view error) {
  constexpr std::string_view kClass = "could not retrieve device class ";
  if (const std::size_t at = error.find(kClass); at != std::string_view::npos) {
    return std::string(error.substr(0, error.find(": ", at + kClass.size())));
  }
  constexpr std::string_view kUnsupported = ": unsupported attribute value";
  constexpr std::string_view kDevice = " on device ";
  if (error.ends_with(kUnsupported)) {
    const std::size_t at = error.find(kDevice);
    const std::size_t end = error.find(": ", at + kDevice.size());
    return cat(error.substr(0, at + kDevice.size()), "*", error.substr(end));
  }
  return std::string(error);
}

struct DeviceName {
  std::string_view driver;
  std::string_view pool;
  std::string_view device;
};

/// driver/pool/device, where the name of a pool may have slashes of its own.
DeviceName device_name(std::string_view id) {
  const std::size_t first = id.find('/');
  const std::size_t last = id.rfind('/');
  if (first == std::string_view::npos || first == last) return {};
  return {id.substr(0, first), id.substr(first + 1, last - first - 1), id.substr(last + 1)};
}

}  // namespace

Case::Case(const json::Value& source)
    : source_(source), name_(source["name"].str()), node_(Node::read(source["node"])) {
  Features features;
  for (const json::Value& gate : source["features"].items()) features.enable(gate.as_string());
  inventory_ = std::make_unique<Inventory>(features);
  // Names of slices repeat in some cases.
  for (std::size_t i = 0; i < source["slices"].size(); ++i) {
    inventory_->put(std::to_string(i), source["slices"][i]);
  }
  for (const json::Value& id : source["allocatedDevices"].items()) {
    const DeviceName used = device_name(id.as_string());
    inventory_->take_device(used.driver, used.pool, used.device);
  }
  for (const json::Value& id : source["allocatedSharedDevices"].items()) {
    const std::string_view share = id.as_string();
    const DeviceName used = device_name(share.substr(0, share.rfind('/')));
    inventory_->take_share(used.driver, used.pool, used.device);
  }
  for (const json::Value& entry : source["allocatedCapacity"].items()) {
    const DeviceName used = device_name(entry["device"].as_string());
    inventory_->take_capacity(used.driver, used.pool, used.device, entry["consumed"]);
  }
  for (const json::Value& object : source["classes"].items()) {
    classes_.push_back(std::make_shared<DeviceClass>(DeviceClass::read(object)));
  }
  std::vector<std::shared_ptr<const Claim>> claims;
  for (const json::Value& object : source["claims"].items()) {
    claims.push_back(std::make_shared<Claim>(Claim::read(object)));
  }
  const auto find = [this](std::string_view name) -> std::shared_ptr<const DeviceClass> {
    for (const auto& known : classes_) {
      if (known->name == name) return known;
    }
    return nullptr;
  };
  demand_ = Demand::prepare(*inventory_, std::move(claims), find);
}

Outcome Case::run(const Limits& limits) {
  return allocate(
      *inventory_, node_, demand_, [] { return std::string(kShareId); }, limits);
}

std::string Case::difference(const Outcome& outcome) const {
  if (outcome.answer == Answer::undecided) return "no answer";
  const std::string_view expected_error = source_["error"].as_string();
  const json::Value& expected = source_["results"];
  if (!expected_error.empty() || !outcome.error.empty()) {
    if (essence(expected_error) == essence(outcome.error)) return {};
    return cat("error: ", outcome.error.empty() ? "none" : outcome.error,
               "\n  expected: ", expected_error.empty() ? "none" : expected_error);
  }
  const bool fits = outcome.answer == Answer::allocated && !outcome.allocations.empty();
  if (!fits && expected.empty()) return {};
  json::Value got = json::Value::array();
  for (const json::Value& allocation : outcome.allocations) got.push(allocation);
  if (fits && !expected.is_null() && got == expected) return {};
  return cat("result: ", fits ? json::write(got) : "does not fit",
             "\n  expected: ", expected.is_null() ? "does not fit" : json::write(expected));
}

}  // namespace dibs::alloc
