#pragma once
// Admission: what may be written beyond what is valid, and what is filled in on the way.
//
// A plugin sees every write between defaulting and the store: mutate() may change the object,
// validate() only judges it, after the kind's own validation. judge() reports faults of fields that
// the kind cannot know, together with those it does. Plugins run in the order they were added.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/field_error.h"
#include "base/result.h"
#include "server/context.h"

namespace dibs::server {

enum class Operation : char { create, update, remove, connect };

struct AdmissionRequest {
  Context& context;
  const Resource& resource;
  Operation operation;
  std::string name_space;
  std::string name;
  std::string subresource;
  Value* object = nullptr;     // null when removing
  const Value* old = nullptr;  // null when creating
  const Value* options = nullptr;
  bool is(std::string_view group, std::string_view plural) const {
    return resource.group == group && resource.plural == plural;
  }
};

class AdmissionPlugin {
 public:
  virtual ~AdmissionPlugin() = default;
  virtual std::string_view name() const = 0;
  virtual Result<> mutate(AdmissionRequest&) { return success(); }
  /// Before the kind's own validation; what it finds comes first in the answer.
  virtual void judge(const AdmissionRequest&, api::FieldErrors&) {}
  virtual Result<> validate(AdmissionRequest&) { return success(); }
  /// Called when a write that validate() let pass was stored.
  virtual void stored(const AdmissionRequest&) {}
  /// Called when a write that validate() let pass was not stored after all.
  virtual void roll_back(const AdmissionRequest&) {}
};

class AdmissionChain {
 public:
  void add(std::unique_ptr<AdmissionPlugin> plugin) { plugins_.push_back(std::move(plugin)); }
  /// Leaves out what is disabled. Errors: bad_request for a name that is unknown (listing those
  /// that are known) or in both lists.
  Result<> choose(const std::vector<std::string>& enabled,
                  const std::vector<std::string>& disabled);
  Result<> mutate(AdmissionRequest& request) const;
  void judge(const AdmissionRequest& request, api::FieldErrors& errors) const;
  /// Where one refuses, those before it are rolled back.
  Result<> validate(AdmissionRequest& request) const;
  void stored(const AdmissionRequest& request) const;
  void roll_back(const AdmissionRequest& request) const;

 private:
  std::vector<std::unique_ptr<AdmissionPlugin>> plugins_;
};

}  // namespace dibs::server
