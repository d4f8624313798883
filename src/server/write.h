#pragma once
// One write: who writes, what, over what, with which options, and what became of it.
//
// Every write goes through the same steps, whether it creates, updates, patches, applies, deletes
// or comes through a sub-resource. Objects (objects.h) takes it through them; plugins (admission.h)
// are asked in 4, 6, 7 and 8.
//
//    1. read      `old` is what is there; what the client expects of it is checked
//    2. make      `object` is what shall be there: what was sent, or a patch laid over `old`
//    3. track     managedFields say who wrote what; an apply has done this in 2
//    4. mutate    plugins may change `object`
//    5. prepare   the server sets metadata, the kind (KindRules) what is its own
//    6. judge     plugins, the rules of metadata and those of the kind tell the faults of fields
//    7. allocate  plugins take what only one object may have and may put it into `object`
//    8. validate  plugins refuse or let pass; nothing changes any more
//    9. charge    what it uses of a quota goes with it, in its turn
//   10. commit    one transaction of the store, which expects `old` to be there still, what
//                 plugins took to be free still (fences.h), and the namespace as it was judged
//   11. settle    what became of it is known, and what plugins took ends
//
// A deletion has no `object`, so steps 2 to 6 are nothing; what is left of `old`, if it has to
// wait, is made between 8 and 9. A dry run, and an update that changes nothing, is over after 8.
//
// A refusal in any step ends the write. So does the store's, but for a lost race: then all begins
// again with 1, up to kRaces times. A refusal may say that it will not hold (not_yet): whoever
// drives the write may wait and begin again. Each beginning forgets what the one before has made,
// told and taken.
//
// Where others write to the store as well (Store::shared), what is in memory may be older than the
// request, so what ends without a commit is no answer yet: a refusal, a dry run, an update that
// changes nothing. The driver then waits for sync() and begins again, once (Objects::is_final).
// Webhooks are asked after that alone: they refuse the first beginning by that it is one.
//
// Step 10 is the driver's: Objects::run() waits for the disk; the server does not
// and goes on with 11 when the store calls back (drive() in api_server_verbs.cc).
//
// One thread has a write at a time. It lives as long as its driver; context and resource outlive
// it.

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/context.h"
#include "store/store.h"

namespace dibs::server {

/// What plugins are told of a write. connect: a stream is opened, nothing is written.
enum class Operation : char { create, update, remove, connect };

/// What a client asks for. put, patch and apply change what is there, and may create.
enum class Verb : char { create, put, patch, apply, remove };

/// What shall be stored, as a body says it.
struct Wanted {
  Value object;                   // in the stored version, decoded, with defaults
  bool forgets_managers = false;  // the body empties metadata.managedFields
  Value as_sent = {};             // what rules judge of a new object, where it is not the object
};

struct DeleteOptions {
  std::optional<std::int64_t> grace_seconds;
  std::string propagation;  // "", Foreground, Background, Orphan
  std::optional<bool> orphan_dependents;
  std::string precondition_uid;
  std::string precondition_version;
  bool dry_run = false;
  Value raw;
};

/// What a plugin took for a write (step 7). It is destroyed once the write is in the store and
/// visible there, or will never be.
class Ticket {
 public:
  virtual ~Ticket() = default;
};
using TicketPtr = std::unique_ptr<Ticket>;

struct Outcome {
  Value object;  // as Write::object; of a deletion: as it waits, or was last
  bool created = false;
  bool removed = false;  // gone from the store
  /// That `object` shows; 0 where nothing was written.
  store::Revision version = 0;
  /// The stored bytes of `object`, where somebody has made them.
  SharedBytes bytes = {};
};

/// Whom one plugin of mutating admission has asked (step 4): somebody who wants to see what others
/// have changed after him is asked once more, in a second round of all plugins.
struct Asked {
  std::set<std::string> before;  // and may be asked again
  std::set<std::string> again;   // shall be
  Value seen;                    // the object after the last of them

  /// The object has changed: whoever was asked before shall be again.
  void changed() {
    again.merge(before);
    before.clear();
  }
};

class Write {
 public:
  static constexpr int kRaces = 50;
  /// Gives what is wanted from what is there, null where there is nothing. Called in step 2 of
  /// every beginning, perhaps after the handler has returned: holds what it needs.
  using Make = std::function<Result<Wanted>(const Value* existing)>;

  /// Of the object, and the sub-resource, that the request names.
  Write(Context& context, const Resource& resource, Verb verb);

  // What is asked for; set before the first step.
  Context& context;
  const Resource& resource;
  const Verb verb;
  std::string name_space;
  std::string name;
  std::string subresource;
  Make make;
  /// Asked where an update finds nothing and would create: whether the user may. None: it does
  /// not create.
  std::function<Result<>()> may_create;
  bool follows = false;  // from a write that admission policies have judged
  DeleteOptions removal;
  bool encodes_removed = false;  // Outcome::bytes of an object that is gone will be asked for

  // What the steps make of it.
  Operation operation;
  /// Null where there is nothing. As `object`, in the stored version; in that of the request where
  /// a webhook converts.
  Value old;
  bool moves = false;               // what is there is stored in another version than new ones
  Value object;                     // null where it is removed
  bool second_round = false;        // of step 4
  bool wants_second_round = false;  // somebody outside has changed `object`
  Asked asked_policies = {};
  Asked asked_webhooks = {};
  std::vector<TicketPtr> tickets;
  std::optional<store::Op> op;    // to be committed; none: the write is over
  std::vector<store::Op> fences;  // and what goes with it, in the same transaction
  Outcome outcome;

  bool is(std::string_view group, std::string_view plural) const {
    return resource.group == group && resource.plural == plural;
  }
  const Value* old_if_any() const { return old.is_null() ? nullptr : &old; }
  const Value* object_if_any() const { return object.is_null() ? nullptr : &object; }
  bool writes_status() const { return subresource == "status" || subresource == "approval"; }
  bool is_dry_run() const { return context.dry_run || removal.dry_run; }
  std::string key() const { return resource.key(name_space, name); }
  /// The whole of step 10. Requires `op`.
  std::vector<store::Op> transaction() const;

  /// Before step 1.
  void begin();
  /// Of a plugin that refuses only until a controller has made what is missing.
  Error not_yet(Error refusal);
  bool is_refused_for_now() const { return refused_for_now_; }
  /// Counts a lost race. False when there were too many.
  bool may_race_again() { return ++races_ < kRaces; }

  /// The operation that puts the object where this write goes.
  /// Errors: of a conversion webhook.
  Result<store::Op> storing(const Value& what, store::Revision expected) const;
  /// outcome.object with its resourceVersion.
  Value written() const;

 private:
  std::optional<std::size_t> warned_;  // warnings of the request before the first step
  bool refused_for_now_ = false;
  int races_ = 0;
};

/// What Go says of a resourceVersion that is no unsigned number; "" when it is one.
std::string version_fault(std::string_view text);

}  // namespace dibs::server
