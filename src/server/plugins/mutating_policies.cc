// MutatingAdmissionPolicies: what users change in expressions of their own.
//
// All that a request meets are found first, then asked one after the other, each about what those
// before it have made. What fails is told at the end, of all policies whose failurePolicy does not
// ignore it. Whoever wants to see what others have changed after him is asked once more, in the
// second round of all plugins (write.h).
#include "base/strings.h"
#include "server/plugins/admission_policies_selection.h"
#include "server/plugins/changed_object.h"
#include "server/plugins/plugins.h"
#include "server/status.h"

namespace dibs::server {
namespace {

/// One that was asked, among all: the policy, the binding, the parameters.
std::string id_of(const PolicyInvocation& one) {
  const Value& metadata = one.params["metadata"];
  return cat(one.policy->name, "/", one.binding->name, "/", metadata["namespace"].as_string(), "/",
             metadata["name"].as_string());
}

class Mutating {
 public:
  Mutating(Write& write, const PluginSources& sources)
      : write_(write), sources_(sources), seen_(write, sources) {}

  Result<> ask(const PolicySet& set) {
    auto selected = select_policies(set, seen_, sources_);
    if (selected.empty()) return success();
    Asked& asked = write_.asked_policies;
    // Plugins of the server that were asked again may have changed it, too.
    if (write_.second_round && !(asked.seen == write_.object)) asked.changed();
    // What is wrong with the policies themselves is told first.
    for (const PolicyInvocation& one : selected) {
      if (!one.fault.empty()) fail(one, one.fault, "");
    }
    for (const PolicyInvocation& one : selected) {
      if (one.fault.empty()) DIBS_CHECK(ask(one));
    }
    asked.seen = write_.object;
    return denial();
  }

 private:
  Result<> ask(const PolicyInvocation& one) {
    const api::CompiledPolicy& program = *one.policy->program;
    DIBS_TRY(api::PolicyInput input, seen_.input(one.served));
    input.params = one.params;
    const api::ConditionsVerdict matched = program.conditions(input);
    if (!matched.matches) return success();
    if (!matched.error.empty()) {
      fail(one, matched.error, "Invalid");
      return success();
    }
    // Nobody is asked for the first time in the second round.
    const std::string id = id_of(one);
    if (write_.second_round && !write_.asked_policies.again.contains(id)) return success();
    bool changed = false;
    for (std::size_t i = 0; i < program.mutations(); ++i) {
      DIBS_TRY(const bool other, mutate(one, i));
      changed = changed || other;
    }
    if (changed) {
      write_.asked_policies.changed();
      write_.wants_second_round = true;
    }
    if (one.policy->may_be_asked_again) write_.asked_policies.before.insert(id);
    return success();
  }

  /// True where the object is another one then. Errors: what no failurePolicy ignores.
  Result<bool> mutate(const PolicyInvocation& one, std::size_t mutation) {
    DIBS_TRY(api::PolicyInput input, seen_.input(one.served));
    if (input.object.is_null()) return false;
    input.params = one.params;
    const api::CompiledPolicy& program = *one.policy->program;
    const api::Schema* schema = shown_schema(write_, one.served);
    if (schema == nullptr || !can_be_changed(write_)) {
      fail(one, "the object of this operation cannot be changed", "Invalid");
      return false;
    }
    auto made = program.mutate(mutation, input, *schema);
    if (!made.ok()) {
      fail(one, made.error().message(), "Invalid");
      return false;
    }
    const bool strict = program.form_of(mutation) == api::PatchForm::operations;
    DIBS_TRY(const bool changed,
             take_changed(write_, one.served, input.object, std::move(made).value(),
                          strict ? api::Strictness::strict : api::Strictness::ignore));
    if (changed) seen_.forget();
    return changed;
  }

  void fail(const PolicyInvocation& one, std::string_view why, std::string_view reason) {
    if (one.policy->ignores_failures) return;
    std::string message =
        one.binding ? cat("policy '", one.policy->name, "' with binding '", one.binding->name, "'")
                    : cat("policy ", quoted(one.policy->name));
    append(message, " denied request: ", why);
    if (failures_.empty()) reason_ = reason;
    failures_.push_back(std::move(message));
  }

  Result<> denial() const {
    if (failures_.empty()) return success();
    const Error plain = forbidden_error(write_.resource.group, write_.resource.plural,
                                        seen_.shown_name(), failures_.front());
    ErrorDetails details = *plain.details();
    if (!reason_.empty()) {
      // Upstream gives another reason and leaves the code.
      details.status = 403;
      details.reason = reason_;
    }
    for (const std::string& message : failures_) details.causes.push_back({"", message, ""});
    return Error(Code::forbidden, failures_.front(), std::move(details));
  }

  Write& write_;
  const PluginSources& sources_;
  PolicyRequest seen_;
  std::vector<std::string> failures_;
  std::string reason_;  // of the first
};

class MutatingPolicies : public AdmissionPlugin {
 public:
  explicit MutatingPolicies(PluginSources sources)
      : sources_(sources),
        source_(sources.runtime.clock, sources.store,
                policies_prefix(sources, "mutatingadmissionpolicies"),
                policies_prefix(sources, "mutatingadmissionpolicybindings")) {}
  std::string_view name() const override { return "MutatingAdmissionPolicy"; }

  Result<> mutate(Write& write) override {
    if (is_exempt_from_policies(write)) return success();
    const auto set = source_.current();
    if (!set) return success();
    return Mutating(write, sources_).ask(*set);
  }
  /// What is removed has no object that could be changed.
  Result<> mutate_unstored(Write& write) override {
    return write.operation == Operation::remove ? success() : mutate(write);
  }

 private:
  PluginSources sources_;
  PolicySource source_;
};

}  // namespace

PluginPtr make_mutating_policies(PluginSources sources) {
  return std::make_unique<MutatingPolicies>(sources);
}

}  // namespace dibs::server
