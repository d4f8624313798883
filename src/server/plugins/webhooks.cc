// Admission webhooks: what is changed or refused by servers of the cluster's users.
//
// A webhook is asked where a rule, its selectors and its match conditions fit. Mutating ones are
// asked one after the other, each about what those before it have made; validating ones all at
// once, about what would be stored. Nobody is asked about webhook configurations and admission
// policies, or one that refuses everything could not be taken back, nor about what the server
// writes of its own accord.
#include <optional>

#include "base/strings.h"
#include "json/parse.h"
#include "json/patch.h"
#include "server/audit.h"
#include "server/plugins/changed_object.h"
#include "server/plugins/webhooks_caller.h"
#include "server/status.h"

namespace dibs::server {
namespace {

constexpr std::string_view kGroup = "admissionregistration.k8s.io";

bool is_exempt(const Write& write) {
  return write.follows || write.context.request.method.empty() || write.resource.group == kGroup;
}

std::string prefix_of(const PluginSources& sources, std::string_view plural) {
  auto resource = sources.resources.get()->find_plural(kGroup, plural);
  return resource ? resource->storage_prefix : "";
}

/// Errors: whether it is meant cannot be told, or the request is refused for that.
Result<std::optional<api::ServedAs>> concerns(const Webhook& hook, const Write& write,
                                              PolicyRequest& seen, WebhookCaller& caller) {
  std::optional<api::ServedAs> none;
  if (!hook.has_rules) return none;
  auto matched = hook.resources.match(seen.question());
  if (!matched.ok()) return internal_error(matched.error().message());
  if (!matched->matches) return none;
  if (hook.conditions == nullptr) return std::optional(matched->served);
  auto input = seen.input(matched->served);
  if (!input.ok()) return internal_error(input.error().message());
  const api::ConditionsVerdict said = hook.conditions->conditions(*input);
  if (said.failed > 0) caller.count_condition_errors(write, hook, said.failed);
  if (!said.error.empty() && !hook.ignores_failures) {
    return forbidden_error(write.resource.group, write.resource.plural, write.name, said.error);
  }
  if (said.matches && said.error.empty()) return std::optional(matched->served);
  caller.count_excluded(write, hook);
  return none;
}

Result<> check_dry_run(const Write& write, const Webhook& hook) {
  if (!write.is_dry_run() || hook.side_effects == "None" || hook.side_effects == "NoneOnDryRun") {
    return success();
  }
  return Error::bad_request(
      cat("admission webhook ", quoted(hook.name), " does not support dry run"));
}

class MutatingWebhooks : public AdmissionPlugin {
 public:
  explicit MutatingWebhooks(PluginSources sources)
      : sources_(sources),
        source_(sources.runtime.clock, sources.store,
                prefix_of(sources, "mutatingwebhookconfigurations")),
        caller_(sources, "admit") {}
  std::string_view name() const override { return "MutatingAdmissionWebhook"; }

  Result<> mutate(Write& write) override { return ask_all(write); }
  Result<> mutate_unstored(Write& write) override { return ask_all(write); }

 private:
  Result<> ask_all(Write& write) {
    if (is_exempt(write)) return success();
    const auto set = source_.current();
    if (!set) return success();
    Asked& asked = write.asked_webhooks;
    // Plugins of the server that were asked again may have changed it, too.
    if (write.second_round && !(asked.seen == write.object)) asked.changed();
    std::size_t index = 0;
    for (const Webhook& hook : *set) DIBS_CHECK(ask(write, hook, index++));
    asked.seen = write.object;
    return success();
  }

  Result<> ask(Write& write, const Webhook& hook, std::size_t index) {
    PolicyRequest seen(write, sources_);
    DIBS_TRY(const auto served, concerns(hook, write, seen, caller_));
    if (!served) return success();
    // Nobody is asked for the first time in the second round.
    if (write.second_round && !write.asked_webhooks.again.contains(hook.id)) return success();
    DIBS_CHECK(check_dry_run(write, hook));
    DIBS_TRY(auto input, seen.view(*served));
    const WebhookQuestion question{&hook, *served, std::move(input)};
    DIBS_TRY(auto verdicts, caller_.ask(write, {question}));
    WebhookVerdict& verdict = verdicts.front();
    bool changed = false;
    const std::string place = cat("round_", write.second_round ? 1 : 0, "_index_", index);
    if (verdict.ignored) {
      annotate(write, cat("failed-open.mutation.webhook.admission.k8s.io/", place), hook.name);
    } else if (!verdict.refusal && !verdict.answer.patch.is_null()) {
      auto applied = apply(write, question, verdict.answer.patch);
      if (!applied.ok()) {
        caller_.count_useless(write, hook);
        verdict.refusal = applied.error();
      } else {
        changed = *applied;
        tell_patch(write, hook, place, verdict.answer.patch);
      }
    }
    tell_mutation(write, hook, place, changed);
    if (verdict.refusal) return *verdict.refusal;
    if (changed) {
      write.asked_webhooks.changed();
      write.wants_second_round = true;
    }
    if (hook.may_be_asked_again) write.asked_webhooks.before.insert(hook.id);
    return success();
  }

  /// True where the object is another one then.
  Result<bool> apply(Write& write, const WebhookQuestion& question, const Value& patch) {
    const Value& before = question.input.object;
    if (before.is_null() || !can_be_changed(write)) {
      return internal_error(
          cat("admission webhook ", quoted(question.hook->name),
              " attempted to modify the object, which is not supported for this operation"));
    }
    json::PatchFailure failure;
    auto patched = json::apply_json_patch(before, patch, &failure);
    if (!patched.ok()) {
      return internal_error(failure.why.empty() ? patched.error().message()
                                                : std::string_view(failure.why));
    }
    return take_changed(write, question.served, before, std::move(patched).value());
  }

  static void annotate(const Write& write, std::string_view key, std::string_view value) {
    if (write.context.audit) write.context.audit->annotate(key, value);
  }

  static Value about(const Webhook& hook) {
    return Value::object({{"configuration", hook.configuration}, {"webhook", hook.name}});
  }

  static void tell_mutation(const Write& write, const Webhook& hook, std::string_view place,
                            bool changed) {
    Value value = about(hook);
    value.set("mutated", changed);
    annotate(write, cat("mutation.webhook.admission.k8s.io/", place), json::write(value, true));
  }

  static void tell_patch(const Write& write, const Webhook& hook, std::string_view place,
                         const Value& patch) {
    if (!write.context.audit || !write.context.audit->wants_request()) return;
    Value value = about(hook);
    value.set("patch", patch);
    value.set("patchType", "JSONPatch");
    annotate(write, cat("patch.webhook.admission.k8s.io/", place), json::write(value, true));
  }

  PluginSources sources_;
  WebhookSource source_;
  WebhookCaller caller_;
};

class ValidatingWebhooks : public AdmissionPlugin {
 public:
  explicit ValidatingWebhooks(PluginSources sources)
      : sources_(sources),
        source_(sources.runtime.clock, sources.store,
                prefix_of(sources, "validatingwebhookconfigurations")),
        caller_(sources, "validating") {}
  std::string_view name() const override { return "ValidatingAdmissionWebhook"; }

  Result<> validate(const Write& write) override {
    if (is_exempt(write)) return success();
    const auto set = source_.current();
    if (!set) return success();
    PolicyRequest seen(write, sources_);
    std::vector<WebhookQuestion> questions;
    for (const Webhook& hook : *set) {
      DIBS_TRY(const auto served, concerns(hook, write, seen, caller_));
      if (!served) continue;
      DIBS_TRY(auto input, seen.view(*served));
      questions.push_back({&hook, *served, std::move(input)});
    }
    if (questions.empty()) return success();
    for (const WebhookQuestion& question : questions) {
      DIBS_CHECK(check_dry_run(write, *question.hook));
    }
    DIBS_TRY(auto verdicts, caller_.ask(write, questions));
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      if (!verdicts[i].ignored || !write.context.audit) continue;
      write.context.audit->annotate(
          cat("failed-open.validating.webhook.admission.k8s.io/round_0_index_", i),
          questions[i].hook->name);
    }
    for (const WebhookVerdict& verdict : verdicts) {
      if (verdict.refusal) return *verdict.refusal;
    }
    return success();
  }

 private:
  PluginSources sources_;
  WebhookSource source_;
  WebhookCaller caller_;
};

}  // namespace

PluginPtr make_mutating_webhooks(PluginSources sources) {
  return std::make_unique<MutatingWebhooks>(sources);
}
PluginPtr make_validating_webhooks(PluginSources sources) {
  return std::make_unique<ValidatingWebhooks>(sources);
}

}  // namespace dibs::server
