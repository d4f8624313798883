#pragma once
// For tests of volumes and environments: objects from a map, a folder that goes with the test.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <map>
#include <string>

#include "base/strings.h"
#include "json/test_text.h"
#include "node/pods/volume_files.h"
#include "node/pods/volume_objects.h"

namespace dibs::node::test {

using json::test::from_text;

class FakeObjects : public PodObjects {
 public:
  void set(PodObjectKind kind, const std::string& name, const std::string& text) {
    objects_[key(kind, name)] = from_text(text);
  }
  void erase(PodObjectKind kind, const std::string& name) { objects_.erase(key(kind, name)); }

  void retain(const json::Value&) override {}
  void release(const std::string&) override {}
  Result<json::Value> get(PodObjectKind kind, const std::string&,
                          const std::string& name) override {
    const auto at = objects_.find(key(kind, name));
    if (at != objects_.end()) return at->second;
    return Error::not_found(cat(kind_name(kind), ' ', quoted(name), " not found"));
  }
  void on_change(std::function<void(const std::string&)>) override {}

 private:
  static std::string key(PodObjectKind kind, const std::string& name) {
    return cat(kind_name(kind), '/', name);
  }
  std::map<std::string, json::Value> objects_;
};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    char text[] = "/tmp/dibs-volumes-XXXXXX";
    path_ = ::mkdtemp(text);
  }
  ~TemporaryFolder() {
    (void)unmount_below(path_);
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace dibs::node::test
