#pragma once
// What is served: one entry per (group, version, plural), built-in or custom.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/catalog.h"
#include "api/schema/features.h"
#include "api/schema/kind.h"
#include "base/mutex.h"
#include "base/result.h"
#include "store/value_bytes.h"

namespace dibs::server {

using json::Value;

struct CustomKind;        // custom_kinds.h
class ConversionWebhook;  // conversion.h

struct Resource : api::ResourceInfo {
  const api::KindRules* rules = nullptr;
  /// What keeps `rules`, where no other owner does.
  std::shared_ptr<const api::KindRules> own_rules;
  std::string deprecation;  // text of a Warning sent with every answer, or ""
  /// Between this version and the stored one; empty where they are the same. `existing` is the
  /// object as it is stored, null for a new one: it keeps what this version cannot show.
  /// `status_write`: the object came through /status.
  using ToStorage =
      std::function<Result<Value>(const Value& object, const Value* existing, bool status_write)>;
  ToStorage to_storage;
  /// Errors: of a conversion webhook.
  std::function<Result<Value>(const Value&)> from_storage;
  /// Who converts objects of the kind, where that is a webhook; null elsewhere. Then writes are
  /// made in this version, as clients see it: `to_storage` is empty, and the last step before the
  /// commit converts (Write::storing).
  std::shared_ptr<const ConversionWebhook> conversion;
  /// Objects that are stored with this apiVersion go out as they are, though others of the resource
  /// are converted. "" for none.
  std::string shown_as_stored;
  /// Objects of two models live under the name: a client may ask for each in the form of its own.
  bool two_models = false;
  /// The gates of the server; null in tests of parts of it.
  std::shared_ptr<const api::Features> features;
  /// Set for custom resources.
  std::shared_ptr<const CustomKind> custom_kind;
  /// Its definition is being deleted: nothing new may be made.
  bool ending = false;

  bool has_verb(std::string_view verb) const;
  /// Requests may wait for a webhook; those of the stored version as well, where objects are still
  /// stored in another one, or somebody is to be shown them in another one.
  bool calls_out() const { return conversion != nullptr; }
  std::string key(std::string_view name_space, std::string_view name) const;
  /// The prefix of a namespace's objects, or of all for "".
  std::string namespace_prefix(std::string_view name_space) const;
  /// True when stored bytes are what this version shows.
  bool shows_stored(std::string_view bytes) const;
  bool shows_stored(const store::ValueBytes& value) const;
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
    MutexLock lock(mutex_);
    return set_;
  }
  void replace(ResourceSetPtr set) {
    MutexLock lock(mutex_);
    set_ = std::move(set);
  }

 private:
  mutable Mutex mutex_;
  ResourceSetPtr set_ DIBS_GUARDED_BY(mutex_) = std::make_shared<const ResourceSet>();
};

}  // namespace dibs::server
