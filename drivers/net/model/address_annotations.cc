// What annotations of pods and namespaces say about addresses.

#include <charconv>
#include <set>

#include "base/strings.h"
#include "drivers/net/model/pod_networks.h"
#include "json/parse.h"

namespace dibs::drivers::net {
namespace {

constexpr std::string_view kPool = "ipam.spidernet.io/ippool";
constexpr std::string_view kPools = "ipam.spidernet.io/ippools";
constexpr std::string_view kSubnet = "ipam.spidernet.io/subnet";
constexpr std::string_view kSubnets = "ipam.spidernet.io/subnets";
constexpr std::string_view kRoutes = "ipam.spidernet.io/routes";
constexpr std::string_view kPoolSize = "ipam.spidernet.io/ippool-ip-number";
constexpr std::string_view kReclaim = "ipam.spidernet.io/ippool-reclaim";

const json::Value* find(const json::Value& object, std::string_view key) {
  return object["metadata"]["annotations"].find(key);
}

Error wrong(std::string_view key, std::string_view cause, std::string_view kind = "Pod") {
  return Error::invalid(
      cat("wrong input, invalid format of ", kind, " annotation '", key, "': ", cause));
}

Result<json::Value> parse(std::string_view key, const json::Value& text,
                          std::string_view kind = "Pod") {
  auto parsed = json::parse(text.as_string());
  if (!parsed.ok()) return wrong(key, parsed.error().message(), kind);
  return parsed;
}

Result<std::vector<std::string>> names(std::string_view key, std::string_view field,
                                       const json::Value& list, std::string_view kind = "Pod") {
  std::vector<std::string> texts;
  if (!list.is_null() && !list.is_array()) {
    return wrong(key, cat(field, " must be a list of strings"), kind);
  }
  for (const json::Value& item : list.items()) {
    if (!item.is_string()) return wrong(key, cat(field, " must be a list of strings"), kind);
    texts.push_back(item.str());
  }
  return texts;
}

/// An object, or nothing but an object in each place of a list.
Result<> check_objects(std::string_view key, const json::Value& value, bool list) {
  if (list ? !value.is_array() : !value.is_object()) {
    return wrong(key, list ? "must be a list of objects" : "must be an object");
  }
  for (const json::Value& item : value.items()) {
    if (!item.is_object()) return wrong(key, "must be a list of objects");
  }
  return success();
}

/// interface, ipv4 and ipv6, which several annotations have.
template <class Item>
Result<Item> read_item(std::string_view key, const json::Value& value) {
  Item item;
  if (!value["interface"].is_null() && !value["interface"].is_string()) {
    return wrong(key, "interface must be a string");
  }
  item.interface = value["interface"].str();
  DIBS_TRY(item.ipv4, names(key, "ipv4", value["ipv4"]));
  DIBS_TRY(item.ipv6, names(key, "ipv6", value["ipv6"]));
  return item;
}

Result<PoolAnnotations> pools_per_nic(const json::Value& text) {
  PoolAnnotations made{.per_nic = true, .items = {}};
  DIBS_TRY(const json::Value list, parse(kPools, text));
  DIBS_CHECK(check_objects(kPools, list, true));
  if (list.empty()) return wrong(kPools, "value requires at least one item");
  std::set<std::string> seen;
  for (const json::Value& value : list.items()) {
    DIBS_TRY(auto item, read_item<PoolsOfNic>(kPools, value));
    const json::Value& clean = value["cleangateway"];
    if (!clean.is_null() && !clean.is_boolean()) {
      return wrong(kPools, "cleangateway must be true or false");
    }
    item.clean_gateway = clean.as_bool();
    if (!made.items.empty() && made.items[0].interface.empty() != item.interface.empty()) {
      return wrong(kPools, "NIC should be either all specified or all unspecified");
    }
    if (!item.interface.empty() && !seen.insert(item.interface).second) {
      return wrong(kPools, cat("duplicate interface ", item.interface));
    }
    made.items.push_back(std::move(item));
  }
  return made;
}

Result<> check_subnets(std::string_view key, const std::vector<SubnetsOfNic>& items) {
  std::set<std::string> interfaces;
  std::set<std::string> used;
  for (const SubnetsOfNic& item : items) {
    if (item.ipv4.empty() && item.ipv6.empty()) {
      return wrong(key, "it's invalid to set dual empty subnet");
    }
    if (!interfaces.insert(item.interface).second) {
      return wrong(key, cat("it's invalid to use the same Interface name for multiple interfaces: ",
                            item.interface));
    }
    for (const auto* list : {&item.ipv4, &item.ipv6}) {
      if (list->empty()) continue;
      if (list->front().empty()) return wrong(key, "it's invalid to set an empty subnet");
      const std::string family = list == &item.ipv4 ? "4" : "6";
      if (!used.insert(family + list->front()).second) {
        return wrong(key, cat("it's invalid to use the same subnet for multiple interfaces: ",
                              list->front()));
      }
    }
  }
  return success();
}

}  // namespace

Result<PoolAnnotations> pool_annotations(const json::Value& pod) {
  if (const json::Value* text = find(pod, kPools)) return pools_per_nic(*text);
  const json::Value* text = find(pod, kPool);
  if (text == nullptr) return PoolAnnotations{};
  DIBS_TRY(const json::Value value, parse(kPool, *text));
  DIBS_CHECK(check_objects(kPool, value, false));
  DIBS_TRY(auto item, read_item<PoolsOfNic>(kPool, value));
  item.interface.clear();
  if (item.ipv4.empty() && item.ipv6.empty()) return wrong(kPool, "it names no pool");
  return PoolAnnotations{.per_nic = false, .items = {std::move(item)}};
}

Result<std::vector<SubnetsOfNic>> subnet_annotations(const json::Value& pod) {
  std::vector<SubnetsOfNic> items;
  const json::Value* text = find(pod, kSubnets);
  const std::string_view key = text != nullptr ? kSubnets : kSubnet;
  if (text == nullptr) text = find(pod, kSubnet);
  if (text == nullptr) return items;
  DIBS_TRY(const json::Value value, parse(key, *text));
  DIBS_CHECK(check_objects(key, value, key == kSubnets));
  if (key == kSubnet) {
    DIBS_TRY(auto item, read_item<SubnetsOfNic>(key, value));
    items.push_back(std::move(item));
  }
  for (const json::Value& one : value.items()) {
    DIBS_TRY(auto item, read_item<SubnetsOfNic>(key, one));
    if (item.interface.empty()) return wrong(key, "each item must name its interface");
    items.push_back(std::move(item));
  }
  if (items.empty()) return wrong(key, "no subnets specified");
  DIBS_CHECK(check_subnets(key, items));
  return items;
}

Result<std::vector<Route>> route_annotation(const json::Value& pod) {
  std::vector<Route> routes;
  const json::Value* text = find(pod, kRoutes);
  if (text == nullptr) return routes;
  DIBS_TRY(const json::Value list, parse(kRoutes, *text));
  DIBS_CHECK(check_objects(kRoutes, list, true));
  for (const json::Value& item : list.items()) {
    const auto dst = Subnet::parse_lenient(item["dst"].as_string());
    const auto gw = Ip::parse(item["gw"].as_string());
    if (!dst.ok()) return wrong(kRoutes, dst.error().message());
    if (!gw.ok()) return wrong(kRoutes, gw.error().message());
    if (dst->version() != gw->version()) {
      return wrong(kRoutes, cat("invalid route format: dst ", dst->str(), ", gw ", gw->str()));
    }
    routes.push_back({*dst, *gw});
  }
  return routes;
}

Result<std::vector<std::string>> namespace_default_pools(const json::Value& name_space,
                                                         int version) {
  const std::string key = cat("ipam.spidernet.io/default-ipv", version, "-ippool");
  const json::Value* text = find(name_space, key);
  if (text == nullptr) return std::vector<std::string>();
  DIBS_TRY(const json::Value list, parse(key, *text, "Namespace"));
  return names(key, "it", list, "Namespace");
}

Result<PoolSize> pool_size_annotation(const json::Value& pod, const PoolSize& fallback) {
  const json::Value* value = find(pod, kPoolSize);
  if (value == nullptr) return fallback;
  std::string_view text = value->as_string();
  PoolSize size{.flexible = text.starts_with('+'), .number = 0};
  if (size.flexible) text.remove_prefix(1);
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, size.number);
  if (error != std::errc{} || stop != end) {
    return wrong(kPoolSize, cat("invalid input '", value->as_string(), "'"));
  }
  if (size.number < 0) return wrong(kPoolSize, "value must equal or greater than 0");
  return size;
}

Result<bool> pool_reclaim_annotation(const json::Value& pod) {
  const json::Value* value = find(pod, kReclaim);
  if (value == nullptr) return true;
  // What Go's strconv.ParseBool takes.
  const std::string_view text = value->as_string();
  for (const char* yes : {"1", "t", "T", "TRUE", "true", "True"}) {
    if (text == yes) return true;
  }
  for (const char* no : {"0", "f", "F", "FALSE", "false", "False"}) {
    if (text == no) return false;
  }
  return wrong(kReclaim, cat(quoted(text), " is neither true nor false"));
}

}  // namespace dibs::drivers::net
