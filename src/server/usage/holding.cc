#include "server/usage/holding.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "base/strings.h"

namespace dibs::server {
namespace {

using json::Value;

/// A word of a line. The API lets none of its separators into names; what stands in a store by
/// other ways must not break a line.
void add_word(std::string& out, std::string_view text) {
  for (const char c : text) {
    const bool separates = static_cast<unsigned char>(c) <= ' ' || c == '=' || c == ',' || c == 127;
    out.push_back(separates ? '_' : c);
  }
  if (text.empty()) out.push_back('-');
}

std::string_view class_of(const Value& claim, const Value& result) {
  const std::string_view named = result["request"].as_string();
  const auto slash = named.find('/');
  const std::string_view alternative =
      slash == std::string_view::npos ? std::string_view() : named.substr(slash + 1);
  for (const Value& request : claim["spec"]["devices"]["requests"].items()) {
    if (request["name"].as_string() != named.substr(0, slash)) continue;
    if (alternative.empty()) return request["exactly"]["deviceClassName"].as_string();
    for (const Value& one : request["firstAvailable"].items()) {
      if (one["name"].as_string() == alternative) return one["deviceClassName"].as_string();
    }
  }
  return {};
}

void add_device(std::string& out, std::string_view driver, std::string_view pool,
                std::string_view device, std::string_view device_class, double share) {
  out.push_back(' ');
  add_word(out, cat(driver, "/", pool, "/", device));
  out.push_back('=');
  add_word(out, device_class);
  char number[32];
  std::snprintf(number, sizeof number, "=%.6g", share);
  out.append(number);
}

/// An allocation never changes, so the device at `index` is the one that was there before.
double share_before(const std::optional<Holding>& before, std::size_t index, const Value& result) {
  if (!before || index >= before->devices.size()) return 1;
  const HeldDevice& device = before->devices[index];
  const std::string id = cat(result["driver"].as_string(), "/", result["pool"].as_string(), "/",
                             result["device"].as_string());
  return device.id == id ? device.share : 1;
}

void add_users(std::string& out, const Value& claim) {
  std::vector<std::string> users;
  for (const Value& user : claim["status"]["reservedFor"].items()) {
    const std::string_view resource = user["resource"].as_string();
    users.push_back(resource == "pods" ? user["name"].str()
                                       : cat(resource, "/", user["name"].as_string()));
  }
  std::sort(users.begin(), users.end());
  bool first = true;
  for (const std::string& user : users) {
    if (!std::exchange(first, false)) out.push_back(',');
    add_word(out, user);
  }
  if (users.empty()) out.push_back('-');
}

}  // namespace

std::string holding_of(const Value& claim, const DeviceShares& shares, std::string_view before) {
  const Value& allocation = claim["status"]["allocation"];
  const std::string_view uid = claim["metadata"]["uid"].as_string();
  const auto held = uid_of(before) == uid ? parse_holding(before) : std::nullopt;
  std::string devices;
  std::size_t index = 0;
  for (const Value& result : allocation["devices"]["results"].items()) {
    // Access for administration takes nothing from anybody.
    if (result["adminAccess"].as_bool()) continue;
    const auto share = shares.share_of(result);
    add_device(devices, result["driver"].as_string(), result["pool"].as_string(),
               result["device"].as_string(), class_of(claim, result),
               share ? *share : share_before(held, index, result));
    ++index;
  }
  // Named resources of the classic model.
  for (const Value& handle : allocation["resourceHandles"].items()) {
    const Value& data = handle["structuredData"];
    for (const Value& result : data["results"].items()) {
      add_device(devices, handle["driverName"].as_string(), data["nodeName"].as_string(),
                 result["namedResources"]["name"].as_string(),
                 claim["spec"]["resourceClassName"].as_string(), 1);
    }
  }
  if (devices.empty()) return {};
  std::string out;
  add_word(out, uid);
  out.push_back(' ');
  add_users(out, claim);
  return out + devices;
}

std::optional<Holding> parse_holding(std::string_view text) {
  const std::vector<std::string_view> words = split(text, ' ');
  if (words.size() < 3) return std::nullopt;
  Holding made;
  made.uid = words[0];
  if (words[1] != "-") made.users = split(words[1], ',');
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::vector<std::string_view> parts = split(words[i], '=');
    if (parts.size() != 3) return std::nullopt;
    HeldDevice device{parts[0], parts[1]};
    const char* end = parts[2].data() + parts[2].size();
    const auto read = std::from_chars(parts[2].data(), end, device.share);
    if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
    made.devices.push_back(device);
  }
  return made;
}

std::string_view uid_of(std::string_view holding) { return holding.substr(0, holding.find(' ')); }

}  // namespace dibs::server
