#pragma once
// A node's name is that of one agent. Who starts one looks first whether another lives under it:
// both would answer for the same pods, and start each in two places.

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "json/value.h"
#include "runtime/files.h"
#include "runtime/runtime.h"

namespace dibs::cli {

/// The same for all agents that have used the folder, and nobody else's: the machine's name and an
/// id, which is kept there. The folder is made where it is missing.
Result<std::string> agent_of(runtime::Files& files, const std::string& folder,
                             runtime::Random& random);

struct NodeName {
  std::string node;
  std::string agent;        // who wants it
  std::string_view remedy;  // what else to do: "--name"
  runtime::Clock& clock;
  std::function<void()> wait;  // a moment
};

void wait_a_moment();

/// Waits where the lease of the node is another's and may still be renewed, until that is known.
/// `lease` reads it. Errors: conflict, when it is; of reading, where the lease is there.
Result<> check_name_is_free(const NodeName& name,
                            const std::function<Result<json::Value>()>& lease);

}  // namespace dibs::cli
