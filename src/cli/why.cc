#include "cli/why.h"

#include "api/schema/features.h"
#include "base/strings.h"
#include "cli/process.h"
#include "cli/run_scheduler.h"
#include "cli/why_objects.h"
#include "cli/why_story.h"
#include "client/https_transport.h"
#include "json/parse.h"
#include "runtime/files.h"
#include "runtime/real_runtime.h"

namespace dibs::cli {
namespace {

constexpr std::size_t kColumns = 100;

struct Subject {
  bool claim = false;
  std::string name;
};

Result<Subject> read_subject(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::string kind = to_lower(text.substr(0, slash));
  if (slash != std::string_view::npos && slash + 1 < text.size()) {
    const std::string name(text.substr(slash + 1));
    if (kind == "pod" || kind == "pods" || kind == "po") return Subject{false, name};
    if (kind == "claim" || kind == "claims" || kind == "resourceclaim" ||
        kind == "resourceclaims") {
      return Subject{true, name};
    }
  }
  return Error::bad_request(cat(quoted(text), ": pod/NAME or claim/NAME is wanted"));
}

Result<WhyStory> answer(const WhyFlags& flags) {
  DIBS_TRY(const Subject subject, read_subject(flags.what));
  runtime::Files& files = runtime::system_files();
  WhyWorld world;
  DIBS_TRY(
      const api::Features gates,
      api::Features::parse(flags.release.empty() ? api::known_releases().back() : flags.release,
                           flags.feature_gates));
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
  DIBS_TRY(world.objects, fetch_objects(client));
  world.objects.events = fetch_warnings(client, name_space);
  world.now = runtime.runtime().clock.now();
  const json::Value* found = find_object(subject.claim ? world.objects.claims : world.objects.pods,
                                         name_space, subject.name);
  if (found == nullptr) {
    return Error::not_found(
        cat(subject.claim ? "claim " : "pod ", name_space, "/", subject.name, " does not exist"));
  }
  return subject.claim ? tell_claim(world, *found) : tell_pod(world, *found);
}

}  // namespace

void WhyPage::line(std::size_t indent, std::string_view text) {
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

void WhyPage::gap() {
  if (!text_.empty() && !text_.ends_with("\n\n")) text_.push_back('\n');
}

WhyOutcome why(const WhyFlags& flags) {
  WhyOutcome made;
  auto story = answer(flags);
  if (!story.ok()) {
    made.status = 1;
    made.errors = cat("dibs why: ", story.error().message(), "\n");
    return made;
  }
  made.status = story->status;
  made.output =
      flags.output == "json" ? cat(json::write_pretty(story->document), "\n") : story->page.text();
  return made;
}

}  // namespace dibs::cli
