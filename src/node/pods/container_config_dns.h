#pragma once
// Name resolution of a pod: what its /etc/resolv.conf says, by dnsPolicy and dnsConfig.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/value.h"
#include "node/pods/node_facts.h"
#include "runtime/files.h"

namespace dibs::node {

struct DnsSettings {
  std::vector<std::string> servers = {};
  std::vector<std::string> searches = {};
  std::vector<std::string> options = {};
  friend bool operator==(const DnsSettings&, const DnsSettings&) = default;
};

/// Reads a resolv.conf.
DnsSettings parse_resolv_conf(std::string_view text);

/// The machine's own name servers, as of now.
std::vector<std::string> host_name_servers(runtime::Files& files);

/// `host` is the host's. What had to be left out or replaced is told in `notes` as {reason, note}.
DnsSettings pod_dns(const json::Value& pod, const NodeFacts& facts, const DnsSettings& host,
                    std::vector<std::pair<std::string, std::string>>& notes);

}  // namespace dibs::node
