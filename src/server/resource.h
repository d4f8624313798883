#pragma once
// What is served: one entry per (group, version, plural), built-in or custom.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/catalog.h"
#include "api/schema/kind.h"

namespace dibs::server {

using json::Value;

struct CustomKind;  // custom_kinds.h

struct Resource : api::ResourceInfo {
  const api::KindRules* rules = nullptr;
  std::string deprecation;  // text of a Warning sent with every answer, or ""
  /// Between this version and the stored one; empty where they are the same.
  std::function<Value(const Value&)> to_storage;
  std::function<Value(const Value&)> from_storage;
  /// Set for custom resources.
  std::shared_ptr<const CustomKind> custom_kind;

  bool has_verb(std::string_view verb) const;
  std::string key(std::string_view name_space, std::string_view name) const;
  /// The prefix of a namespace's objects, or of all for "".
  std::string namespace_prefix(std::string_view name_space) const;
};
using ResourcePtr = std::shared_ptr<const Resource>;

/// Everything served at one moment; immutable, replaced as a whole when custom kinds change.
struct ResourceSet {
  std::map<std::string, ResourcePtr, std::less<>> by_path;  // "group/version/plural"
  /// The same as discovery and OpenAPI see it: groups in order, versions by preference.
  api::Catalog catalog;
  std::uint64_t generation = 0;

  ResourcePtr find(std::string_view group, std::string_view version, std::string_view plural) const;
  /// In any served version, the preferred one first.
  ResourcePtr find_kind(std::string_view group, std::string_view kind) const;
  ResourcePtr find_plural(std::string_view group, std::string_view plural) const;
};
using ResourceSetPtr = std::shared_ptr<const ResourceSet>;

/// Holds the current set. Thread-safe.
class ResourceTable {
 public:
  ResourceSetPtr get() const {
    std::lock_guard lock(mutex_);
    return set_;
  }
  void replace(ResourceSetPtr set) {
    std::lock_guard lock(mutex_);
    set_ = std::move(set);
  }

 private:
  mutable std::mutex mutex_;
  ResourceSetPtr set_ = std::make_shared<const ResourceSet>();
};

}  // namespace dibs::server
