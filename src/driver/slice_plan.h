#pragma once
// What has to be written so that a pool's slices become what the driver wants: a pure function.
//
// A slice has an index in its pool, which stands at the beginning of its name as five hexadecimal
// digits. Slices with the right index are updated in place, all others are removed. Readers take a
// pool for complete when all slices of its newest generation are there; so the generation goes up
// whenever more than one slice changes, and stays when one write does it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace dibs::driver {

struct PlanInput {
  std::string driver = {};
  std::string node = {};  // "": the slices belong to no node
  /// The one that owns the slices; null: nobody.
  json::Value owner = {};
  std::string pool = {};
  std::int64_t generation = 0;
  /// As slices_of() gives them.
  std::vector<json::Value> wanted = {};
  /// As of Pool.
  json::Value annotations = {};
  /// What the server made of each of `wanted` when it was last written, where that is known: it
  /// sets defaults and drops fields that it does not have.
  std::vector<json::Value> stored = {};
  /// Slices that are there, of this pool only.
  std::vector<json::Value> existing = {};
};

struct Plan {
  std::vector<json::Value> remove = {};
  /// Whole objects with their index in `wanted`.
  std::vector<std::pair<std::size_t, json::Value>> update = {};
  std::vector<std::pair<std::size_t, json::Value>> create = {};
  std::int64_t generation = 0;
};

Plan plan_pool(const PlanInput& input);

/// "0001f-gpu.example.com-node-0-".
std::string generate_name(std::size_t index, std::string_view driver, std::string_view owner);

/// The parts of a slice's spec that a driver decides: what slices_of() fills.
json::Value content_of(const json::Value& slice);
/// A taint's time does not count where the driver left it to the server.
bool same_content(const json::Value& stored, const json::Value& wanted);
/// Features whose fields are in `wanted` and did not get into `stored`.
std::vector<std::string> dropped_features(const json::Value& stored, const json::Value& wanted);

}  // namespace dibs::driver
