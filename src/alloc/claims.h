#pragma once
// Claims and classes as allocation reads them, decoded from their JSON (resource.k8s.io/v1): just
// what is asked about, once for all nodes. What only shows in the result stays JSON. Claims for
// named resources are made from several objects, by whoever knows these.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "alloc/amount.h"
#include "alloc/slice.h"
#include "base/quantity.h"
#include "json/value.h"

namespace dibs::alloc {

/// Devices that the allocation of one claim may have.
inline constexpr std::size_t kMostResults = 32;
/// Likewise of named resources, for which the API has no limit: the search goes as deep.
inline constexpr std::size_t kMostNamedResults = 256;

struct Toleration {
  std::string key;
  std::string op;
  std::string value;
  std::string effect;

  bool tolerates(const Taint& taint) const;
};

struct CapacityRequest {
  std::string name;
  Quantity quantity;
  Amount amount = 0;
};

struct DerivedAttribute {
  std::string name;
  std::string expression;
};

/// What one request asks for, or one of several alternatives of a prioritized list.
struct DeviceRequest {
  enum class Mode : std::uint8_t { exact_count, all, other };

  std::string name;         // of the request, or of the alternative alone
  std::string result_name;  // "request" or "request/alternative"
  std::string class_name;
  std::string driver;  // whose devices are meant; empty: the selectors tell
  std::vector<std::string> selectors;
  int unknown_selector = -1;  // the first that is no expression
  Mode mode = Mode::exact_count;
  std::string mode_name;
  std::int64_t count = 0;
  bool states_admin_access = false;
  bool admin_access = false;
  bool states_capacity = false;
  std::vector<CapacityRequest> capacity;  // by name
  std::vector<DerivedAttribute> derived;
  std::vector<Toleration> tolerations;
  json::Value tolerations_source;
};

struct Request {
  std::string name;
  bool prioritized = false;
  std::vector<DeviceRequest> alternatives;  // one, unless prioritized
};

struct Constraint {
  enum class Kind : std::uint8_t { match, distinct, other };
  Kind kind = Kind::other;
  std::string attribute;
  std::vector<std::string> requests;  // empty: all

  bool applies_to(const Request& request, const DeviceRequest& alternative) const;
};

struct Claim {
  std::string name;
  std::string id;  // "namespace/name", or the name alone where there is no namespace
  std::vector<Request> requests;
  std::vector<Constraint> constraints;
  json::Value config;

  static Claim read(const json::Value& claim);
};

struct DeviceClass {
  std::string name;
  std::vector<std::string> selectors;
  json::Value config;

  static DeviceClass read(const json::Value& object);
};

}  // namespace dibs::alloc
