#include "node/pods/node_facts.h"

#include "base/strings.h"

namespace dibs::node {

std::string pod_folder(const NodeFacts& facts, const std::string& pod_uid) {
  return cat(facts.root, "/pods/", pod_uid);
}

}  // namespace dibs::node
