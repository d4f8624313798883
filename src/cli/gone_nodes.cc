#include "cli/gone_nodes.h"

#include <set>

#include "base/log.h"
#include "base/strings.h"
#include "json/parse.h"
#include "node/runtime/mounts.h"
#include "node/runtime/traces.h"

namespace dibs::cli {
namespace {

using json::Value;

std::string record_of(const std::string& folder) { return cat(folder, "/cluster.nodes"); }

std::vector<std::string> nodes_before(runtime::Files& files, const std::string& folder) {
  std::vector<std::string> out;
  const auto text = files.read(record_of(folder));
  const auto names = text.ok() ? json::parse(*text) : Result<Value>(text.error());
  if (!names.ok()) return out;
  for (const Value& name : names->items()) out.push_back(name.str());
  return out;
}

}  // namespace

Result<std::vector<std::string>> end_gone_nodes(runtime::Files& files, const std::string& folder,
                                                const std::vector<std::string>& nodes) {
  const std::set<std::string, std::less<>> now(nodes.begin(), nodes.end());
  std::set<std::string, std::less<>> gone;
  for (std::string& name : nodes_before(files, folder)) {
    if (!now.contains(name)) gone.insert(std::move(name));
  }
  if (gone.empty()) return std::vector<std::string>();
  const std::string below = cat(folder, "/nodes/");
  for (const node::Trace& trace : node::find_traces()) {
    if (!trace.root.starts_with(below)) continue;
    const std::string name = trace.root.substr(below.size());
    if (gone.contains(name.substr(0, name.find('/')))) DIBS_CHECK(node::remove_trace(trace));
  }
  for (const std::string& name : gone) DIBS_CHECK(node::unmount_below(below + name));
  log::info("nodes of the last start are no more, they are taken away", {{"nodes", gone.size()}});
  return std::vector<std::string>(gone.begin(), gone.end());
}

void note_nodes(runtime::Files& files, const std::string& folder,
                const std::vector<std::string>& nodes) {
  if (nodes_before(files, folder) == nodes) return;
  Value names = Value::array();
  for (const std::string& name : nodes) names.push(name);
  // A server must start on a full disk, too.
  if (const auto noted = files.write(record_of(folder), json::write(names), 0600); !noted.ok()) {
    log::warn("a later start does not know which nodes there were", {{"error", noted.error()}});
  }
}

}  // namespace dibs::cli
