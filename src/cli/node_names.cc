#include "cli/node_names.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/log.h"
#include "base/strings.h"
#include "base/time.h"
#include "cli/process.h"
#include "node/pods/node_lease.h"

namespace dibs::cli {
namespace {

using json::Value;

/// Of a lease that is another's: how long it still lasts; zero where it has run out, or is not.
Duration left_of(const Value& lease, const NodeName& name) {
  const std::string_view holder =
      lease["metadata"]["annotations"][node::kAgentAnnotation].as_string();
  if (holder.empty() || holder == name.agent) return Duration(0);
  const auto renewed = parse_rfc3339_micro(lease["spec"]["renewTime"].as_string());
  if (!renewed.ok()) return Duration(0);
  const auto lasts = std::chrono::seconds(lease["spec"]["leaseDurationSeconds"].as_int());
  return std::max(Duration(0), *renewed + lasts - name.clock.now());
}

}  // namespace

Result<std::string> agent_of(runtime::Files& files, const std::string& folder,
                             runtime::Random& random) {
  const std::string path = cat(folder, "/.agent");
  if (files.exists(path)) return files.read(path);
  DIBS_CHECK(files.make_dirs(folder));
  std::string made = cat(host_name(), "_", runtime::make_uuid(random));
  DIBS_CHECK(files.write(path, made));
  return made;
}

void wait_a_moment() { std::this_thread::sleep_for(std::chrono::milliseconds(200)); }

Result<> check_name_is_free(const NodeName& name, const std::function<Result<Value>()>& lease) {
  std::string first;
  Duration until{0};
  while (true) {
    const auto now = lease();
    if (!now.ok() && now.error().code() == Code::not_found) return success();
    if (!now.ok()) return now.error();
    const Duration left = left_of(*now, name);
    if (left == Duration(0)) return success();
    const std::string renewed = (*now)["spec"]["renewTime"].str();
    const std::string holder = (*now)["metadata"]["annotations"][node::kAgentAnnotation].str();
    if (first.empty()) {
      first = renewed;
      until = name.clock.steady() + left;
      log::info("waiting to see whether a node of this name lives in another process",
                {{"node", name.node}, {"process", holder}});
    } else if (renewed != first) {
      return Error::conflict(cat("node ", quoted(name.node), " is alive in another process, ",
                                 holder, ": give the nodes of this one other names, ", name.remedy,
                                 ", or end that one"));
    } else if (name.clock.steady() > until) {
      return success();
    }
    name.wait();
  }
}

}  // namespace dibs::cli
