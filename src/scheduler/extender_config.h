#pragma once
// Extenders as a KubeSchedulerConfiguration describes them: HTTP servers that have a say about
// nodes (extenders.h calls them).

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/schema/field_error.h"
#include "base/result.h"
#include "base/time.h"
#include "client/transport.h"
#include "json/value.h"
#include "runtime/files.h"

namespace dibs::scheduler {

struct ExtenderConfig {
  /// What it trusts and shows, as text of PEM or as names of files, of which the text wins.
  struct Tls {
    bool insecure = false;
    std::string server_name = {};
    std::string ca_file = {};
    std::string ca = {};
    std::string certificate_file = {};
    std::string certificate = {};
    std::string key_file = {};
    std::string key = {};
  };

  std::string url = {};  // every verb is a path below it
  // "": it has no part there.
  std::string filter_verb = {};
  std::string prioritize_verb = {};
  std::string preempt_verb = {};
  std::string bind_verb = {};
  std::int64_t weight = 0;
  /// It knows nodes by itself, and is told their names alone.
  bool knows_nodes = false;
  /// What it fails to do is passed over.
  bool ignorable = false;
  Duration timeout = std::chrono::seconds(5);
  Tls tls = {};
  /// It is asked about pods that want one of these; empty: about all.
  std::set<std::string, std::less<>> resources = {};
  /// Of those, the ones that nodes need not have.
  std::vector<std::string> ignored = {};
};

/// Those that may be passed over come last, as kube-scheduler has them.
std::vector<ExtenderConfig> read_extenders(const json::Value& list, api::FieldErrors& found);

/// A way to each, in their order; nothing is dialled yet. `files` and `runtime` must outlive them.
/// Errors: bad_request, naming the extender.
Result<std::vector<std::shared_ptr<client::Transport>>> connect_extenders(
    const std::vector<ExtenderConfig>& extenders, runtime::Files& files, runtime::Runtime& runtime);

}  // namespace dibs::scheduler
