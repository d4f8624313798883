#pragma once
// `dibs node join`: makes this machine a node of a cluster that runs elsewhere.
//
//     the server's authority, pinned by its hash ─▶ a key of one's own, and a certificate for it by
//     a bootstrap token ─▶ <root>/node.kubeconfig ─▶ `dibs node`
//
// The file is written last and at once: before that there is nothing of the join. With the file it
// goes on as the node that it is.

#include <string>

#include "cli/command_line.h"
#include "cli/run_node.h"

namespace dibs::cli {

struct JoinFlags {
  std::string server;
  std::string token;
  std::string ca_cert_hash;
  NodeFlags node;
};

Flags join_flags(JoinFlags& flags);

/// Returns the exit status.
int join_node(const JoinFlags& flags);

}  // namespace dibs::cli
