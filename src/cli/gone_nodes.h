#pragma once
// Nodes that a cluster's folder had at its last start and that it is started without.
//
//     <data>/cluster.nodes    their names, a JSON array

#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/files.h"

namespace dibs::cli {

/// Their names. What they have on this machine is ended: nobody would look after it any more. Their
/// folders stay, with what pods have stored there.
Result<std::vector<std::string>> end_gone_nodes(runtime::Files& files, const std::string& folder,
                                                const std::vector<std::string>& nodes);

/// What end_gone_nodes() finds at the next start: all that there may be before the cluster runs,
/// what there is once it does.
void note_nodes(runtime::Files& files, const std::string& folder,
                const std::vector<std::string>& nodes);

}  // namespace dibs::cli
