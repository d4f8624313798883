#pragma once
// Admission: what may be written beyond what is valid, and what is filled in on the way.
//
// Plugins take part in the steps of a write (write.h) in the order they were added; all are asked
// in one step before the first is asked in the next. In mutate() and allocate() they may change
// write.object and nothing else. Where one refuses, those after it are not asked. Where somebody
// outside of the server (a webhook) has changed the object, all are asked to mutate() once more.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/field_error.h"
#include "base/result.h"
#include "server/write.h"

namespace dibs::server {

class AdmissionPlugin {
 public:
  virtual ~AdmissionPlugin() = default;
  virtual std::string_view name() const = 0;
  /// False for what Kubernetes does outside of its plugins, and nobody can switch off there.
  virtual bool may_be_disabled() const { return true; }
  /// Step 4, of creates and updates.
  virtual Result<> mutate(Write&) { return success(); }
  /// The same of what is removed, and of streams and bodies that are not stored: only such a body
  /// can be changed.
  virtual Result<> mutate_unstored(Write&) { return success(); }
  /// Step 6, of creates and updates: faults of fields that the kind cannot know. They come first in
  /// the answer.
  virtual void judge(const Write&, api::FieldErrors&) {}
  /// Step 7. Null where nothing was taken. A dry run takes nothing that outlasts its ticket.
  virtual Result<TicketPtr> allocate(Write&) { return TicketPtr(); }
  /// Step 9. False: the write waits for its turn; then `go_on` is called, from whichever thread
  /// ended the one before, and this is asked again without it. Without `go_on` nobody waits.
  virtual Result<bool> charge(Write&, const std::function<void()>& /*go_on*/) { return true; }
  /// After step 8 of a write that will take the object out of the store: what it had goes, in the
  /// same transaction (write.fences).
  virtual void give_back(Write&) {}
  /// Step 8, and for streams and bodies that are not stored the only one.
  virtual Result<> validate(const Write&) { return success(); }
};

class AdmissionChain {
 public:
  void add(std::unique_ptr<AdmissionPlugin> plugin) { plugins_.push_back(std::move(plugin)); }
  /// Leaves out what is disabled. Errors: bad_request for a name that is unknown (listing those
  /// that are known) or in both lists.
  Result<> choose(const std::vector<std::string>& enabled,
                  const std::vector<std::string>& disabled);
  Result<> mutate(Write& write) const;
  Result<> mutate_unstored(Write& write) const;
  void judge(const Write& write, api::FieldErrors& errors) const;
  /// What plugins take is put into the write.
  Result<> allocate(Write& write) const;
  Result<> validate(const Write& write) const;
  Result<bool> charge(Write& write, const std::function<void()>& go_on) const;
  void give_back(Write& write) const;

 private:
  std::vector<std::unique_ptr<AdmissionPlugin>> plugins_;
};

}  // namespace dibs::server
