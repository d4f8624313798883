#pragma once
// What the cluster knows of the storage drivers on a node: the CSINode object (each driver, its own
// name for the node, its topology keys, how many volumes it takes), and on the Node the annotation
// with those names and a label for each topology key.
//
// The CSINode belongs to the Node that is there now; one that another Node of this name left is
// made anew.
//
// Blocking, thread-safe: a change between reading and writing is read again.

#include <string>

#include "base/result.h"
#include "client/client.h"
#include "node/plugins/csi_driver.h"

namespace dibs::node {

/// Makes the CSINode where there is none.
Result<> ensure_csi_node(client::Client& client, const std::string& node);
/// Errors: a label that the topology wants is there with another value.
Result<> install_csi_driver(client::Client& client, const std::string& node,
                            const std::string& driver, const CsiNodeInfo& info);
/// Labels stay, as volumes do that name them.
Result<> uninstall_csi_driver(client::Client& client, const std::string& node,
                              const std::string& driver);

}  // namespace dibs::node
