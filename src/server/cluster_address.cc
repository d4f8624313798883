#include "server/cluster_address.h"

namespace dibs::server {

net::Reach reach_of(std::string_view address, const json::Value& node) {
  for (const json::Value& own : node["status"]["addresses"].items()) {
    if (own["address"].as_string() == address) return net::Reach::others;
  }
  return net::Reach::cluster;
}

bool is_simulated(const json::Value& node) {
  return node["status"]["nodeInfo"]["containerRuntimeVersion"].as_string().starts_with(
      "dibs-sim://");
}

}  // namespace dibs::server
