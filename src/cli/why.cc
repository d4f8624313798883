#include "cli/why.h"

#include "api/schema/features.h"
#include "base/did_you_mean.h"
#include "base/strings.h"
#include "cli/columns.h"
#include "cli/process.h"
#include "cli/run_scheduler.h"
#include "cli/values.h"
#include "cli/why_objects.h"
#include "cli/why_story.h"
#include "client/https_transport.h"
#include "json/parse.h"
#include "runtime/files.h"
#include "runtime/real_runtime.h"

namespace dibs::cli {
namespace {

using json::Value;

constexpr std::size_t kColumns = 100;

enum class Kind : std::uint8_t { waiting, pod, claim, workload, node, driver };

struct KindName {
  Kind kind;
  const char* object;  // of the API
  std::vector<std::string_view> words;
};

const std::vector<KindName>& kind_names() {
  static const std::vector<KindName> names = {
      {Kind::pod, "Pod", {"pod", "pods", "po"}},
      {Kind::claim, "ResourceClaim", {"claim", "claims", "resourceclaim", "resourceclaims"}},
      {Kind::workload, "Deployment", {"deployment", "deployments", "deploy"}},
      {Kind::workload, "ReplicaSet", {"replicaset", "replicasets", "rs"}},
      {Kind::workload, "StatefulSet", {"statefulset", "statefulsets", "sts"}},
      {Kind::workload, "DaemonSet", {"daemonset", "daemonsets", "ds"}},
      {Kind::workload, "Job", {"job", "jobs"}},
      {Kind::workload, "CronJob", {"cronjob", "cronjobs", "cj"}},
      {Kind::workload,
       "ReplicationController",
       {"replicationcontroller", "replicationcontrollers", "rc"}},
      {Kind::node, "Node", {"node", "nodes", "no"}},
      {Kind::driver, "Driver", {"driver", "drivers"}},
  };
  return names;
}

struct Subject {
  Kind kind = Kind::waiting;
  std::string object = {};
  std::string name = {};
};

Result<Subject> read_subject(std::string_view text) {
  if (text.empty()) return Subject{};
  const std::size_t slash = text.find('/');
  // As kubectl takes "deployments.apps".
  std::string kind = to_lower(text.substr(0, slash));
  kind = kind.substr(0, kind.find('.'));
  const auto wrong = [&](std::string_view meant) {
    return Error::bad_request(
        cat(quoted(text),
            ": KIND/NAME is wanted, of pod, claim, deployment, replicaset, statefulset, daemonset, "
            "job, cronjob, node or driver",
            meant.empty() ? "; without it all that waits is told" : meant));
  };
  std::vector<std::string> known;
  for (const KindName& one : kind_names()) {
    for (const std::string_view word : one.words) {
      known.emplace_back(word);
      if (kind != word) continue;
      const std::string name(slash == std::string_view::npos ? "" : text.substr(slash + 1));
      if (name.empty() || name.find('/') != std::string::npos) return wrong("");
      return Subject{one.kind, one.object, name};
    }
  }
  // A name alone is none of a kind that was mistyped.
  return wrong(slash == std::string_view::npos ? "" : did_you_mean(kind, known));
}

FetchScope scope_of(const Subject& subject, const std::string& name_space, bool all) {
  FetchScope scope;
  scope.name_space = all ? std::string() : name_space;
  scope.workloads = subject.kind == Kind::workload || subject.kind == Kind::waiting;
  scope.storage = subject.kind == Kind::node || subject.kind == Kind::driver;
  // Of nodes they lie in a namespace of their own, of drivers wherever pods are.
  scope.all_events = all || scope.storage;
  return scope;
}

/// Where `subject` is looked for.
std::vector<std::string> names_there(const WhyObjects& objects, const Subject& subject,
                                     const std::string& name_space) {
  const auto& list = subject.kind == Kind::node    ? objects.nodes
                     : subject.kind == Kind::claim ? objects.claims
                     : subject.kind == Kind::pod   ? objects.pods
                                                   : objects.workloads;
  std::vector<std::string> made;
  for (const Value& one : list) {
    const Value& metadata = one["metadata"];
    if (subject.kind == Kind::workload && one["kind"].as_string() != subject.object) continue;
    if (subject.kind != Kind::node && metadata["namespace"].as_string() != name_space) continue;
    made.push_back(metadata["name"].str());
  }
  return made;
}

const Value* find_subject(const WhyObjects& objects, const Subject& subject,
                          const std::string& name_space) {
  if (subject.kind == Kind::node) return find_object(objects.nodes, "", subject.name);
  if (subject.kind == Kind::claim) return find_object(objects.claims, name_space, subject.name);
  if (subject.kind == Kind::pod) return find_object(objects.pods, name_space, subject.name);
  for (const Value& one : objects.workloads) {
    const Value& metadata = one["metadata"];
    if (one["kind"].as_string() == subject.object && metadata["name"].as_string() == subject.name &&
        metadata["namespace"].as_string() == name_space) {
      return &one;
    }
  }
  return nullptr;
}

/// What may not be seen is said, since the rest is told without it.
void tell_refusals(const WhyObjects& objects, WhyStory& story) {
  Value refused = Value::array();
  for (const std::string& text : objects.refused) refused.push(text);
  story.document.set("notSeen", std::move(refused));
  if (objects.refused.empty()) return;
  story.page.gap();
  story.page.line(0, "told without what you may not see");
  for (const std::string& text : objects.refused) story.page.line(2, text);
}

Result<WhyStory> tell(const WhyWorld& world, const Subject& subject, const std::string& name_space,
                      bool all) {
  if (subject.kind == Kind::waiting) return tell_waiting(world, all ? std::string() : name_space);
  if (subject.kind == Kind::driver) return tell_driver(world, subject.name);
  const Value* found = find_subject(world.objects, subject, name_space);
  if (found == nullptr) {
    const std::string word = subject.kind == Kind::claim ? "claim" : to_lower(subject.object);
    std::string text =
        cat(word, " ", subject.kind == Kind::node ? "" : cat(name_space, "/"), subject.name,
            " does not exist",
            did_you_mean(subject.name, names_there(world.objects, subject, name_space)));
    // Perhaps it does.
    for (const std::string& refused : world.objects.refused) {
      if (refused.starts_with(word) || (word == "claim" && refused.starts_with("resourceclaim"))) {
        text = cat(word, " ", subject.name, " cannot be seen: ", refused);
      }
    }
    return Error::not_found(text);
  }
  switch (subject.kind) {
    case Kind::claim:
      return tell_claim(world, *found);
    case Kind::workload:
      return tell_workload(world, *found);
    case Kind::node:
      return tell_node(world, *found);
    default:
      return tell_pod(world, *found);
  }
}

Result<WhyStory> answer(const WhyFlags& flags) {
  DIBS_TRY(const Subject subject,
           read_subject(flags.name.empty() ? flags.what : cat(flags.what, "/", flags.name)));
  if (flags.all_namespaces && subject.kind != Kind::waiting) {
    return Error::bad_request("--all-namespaces goes without a name: it tells all that waits");
  }
  runtime::Files& files = runtime::system_files();
  WhyWorld world;
  DIBS_TRY(const api::Features gates, parse_gates(flags.release, flags.feature_gates, "--release"));
  DIBS_TRY(world.configuration, read_scheduler_config(flags.config, gates, files));
  world.features = alloc::Features::from_gates(gates);
  world.release = gates.minor();
  DIBS_TRY(const client::Access access, find_access(flags.kubeconfig, flags.context));
  const std::string name_space =
      flags.name_space.empty() ? access.default_namespace : flags.name_space;

  runtime::RealRuntime runtime;
  DIBS_TRY(const auto transport, client::make_https_transport(access, files, runtime.runtime()));
  client::Client client(*transport);
  if (flags.release.empty()) {
    DIBS_TRY(world.release, client::server_release(client));
  }
  DIBS_TRY(world.objects,
           fetch_objects(client, scope_of(subject, name_space, flags.all_namespaces)));
  world.now = runtime.runtime().clock.now();
  DIBS_TRY(WhyStory story, tell(world, subject, name_space, flags.all_namespaces));
  tell_refusals(world.objects, story);
  return story;
}

}  // namespace

void WhyPage::line(std::size_t indent, std::string_view given) {
  const std::string clean = in_one_line(given);
  std::string_view text = clean;
  std::size_t margin = indent;
  while (true) {
    text_.append(margin, ' ');
    const std::size_t room = kColumns - margin;
    if (text.size() <= room) {
      append(text_, text, "\n");
      return;
    }
    std::size_t cut = text.rfind(' ', room);
    // A word that is longer than the line stays whole: it may be pasted somewhere.
    if (cut == std::string_view::npos || cut == 0) cut = text.find(' ');
    if (cut == std::string_view::npos) cut = text.size();
    append(text_, text.substr(0, cut), "\n");
    text.remove_prefix(std::min(cut + 1, text.size()));
    if (text.empty()) return;
    margin = indent + 4;
  }
}

void WhyPage::whole(std::string_view text) { append(text_, in_one_line(text), "\n"); }

void WhyPage::gap() {
  if (!text_.empty() && !text_.ends_with("\n\n")) text_.push_back('\n');
}

WhyOutcome why(const WhyFlags& flags) {
  WhyOutcome made;
  auto story = answer(flags);
  if (!story.ok()) {
    made.status = story.error().code() == Code::bad_request ? 2 : 1;
    made.errors = cat("dibs why: ", story.error().message(), "\n");
    return made;
  }
  made.status = story->status;
  if (flags.output == "json") {
    made.output = cat(json::write_pretty(story->document), "\n");
    return made;
  }
  made.output = story->page.text();
  while (made.output.ends_with("\n\n")) made.output.pop_back();
  return made;
}

}  // namespace dibs::cli
