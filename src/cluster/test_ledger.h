#pragma once
// For tests: who holds what, looked at after every write.

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/strings.h"
#include "json/value.h"

namespace dibs::cluster::test {

using json::Value;

/// What a stored claim holds, each as "driver/where/what".
inline std::set<std::string> held_by(const Value& claim) {
  std::set<std::string> out;
  const Value& allocation = claim["status"]["allocation"];
  for (const Value& handle : allocation["resourceHandles"].items()) {
    const std::string driver = handle["driverName"].str();
    if (handle.contains("data")) out.insert(cat(driver, "/", handle["data"].as_string()));
    const Value& structured = handle["structuredData"];
    for (const Value& result : structured["results"].items()) {
      out.insert(cat(driver, "/", structured["nodeName"].as_string(), "/",
                     result["namedResources"]["name"].as_string()));
    }
  }
  for (const Value& result : allocation["devices"]["results"].items()) {
    out.insert(cat(result["driver"].as_string(), "/", result["pool"].as_string(), "/",
                   result["device"].as_string()));
  }
  return out;
}

/// Who has what, told again and again; complains where something has two owners.
class Ledger {
 public:
  void set(const std::string& owner, const std::set<std::string>& things) {
    for (const std::string& thing : std::exchange(things_[owner], {})) owners_.erase(thing);
    for (const std::string& thing : things) {
      const auto [at, fresh] = owners_.emplace(thing, owner);
      EXPECT_TRUE(fresh) << thing << " is given to " << owner << " and is " << at->second << "'s";
    }
    things_[owner] = things;
  }
  std::size_t size() const { return owners_.size(); }

 private:
  std::map<std::string, std::set<std::string>> things_;
  std::map<std::string, std::string> owners_;
};

}  // namespace dibs::cluster::test
