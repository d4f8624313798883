#include "node/pods/container_config_dns.h"

#include <algorithm>

#include "base/strings.h"
#include "node/pods/container_config.h"

namespace dibs::node {
namespace {

using json::Value;
using Notes = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t kMaxServers = 3;
constexpr std::size_t kMaxSearches = 32;
constexpr std::size_t kMaxSearchText = 2048;

void add_once(std::vector<std::string>& list, const std::string& item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

std::string_view option_name(std::string_view option) { return option.substr(0, option.find(':')); }

void merge_config(const Value& config, DnsSettings& dns) {
  for (const auto& server : config["nameservers"].items()) add_once(dns.servers, server.str());
  for (const auto& search : config["searches"].items()) add_once(dns.searches, search.str());
  for (const auto& option : config["options"].items()) {
    const std::string name = option["name"].str();
    const std::string text =
        option["value"].is_string() ? cat(name, ':', option["value"].as_string()) : name;
    const auto same = std::find_if(dns.options.begin(), dns.options.end(),
                                   [&](const auto& known) { return option_name(known) == name; });
    if (same == dns.options.end()) {
      dns.options.push_back(text);
    } else {
      *same = text;
    }
  }
}

void bound(DnsSettings& dns, Notes& notes) {
  if (dns.servers.size() > kMaxServers) {
    dns.servers.resize(kMaxServers);
    notes.emplace_back("DNSConfigForming",
                       cat("Nameserver limits were exceeded, some nameservers have been omitted, "
                           "the applied nameserver line is: ",
                           join(dns.servers, " ")));
  }
  bool cut = false;
  if (dns.searches.size() > kMaxSearches) {
    dns.searches.resize(kMaxSearches);
    cut = true;
  }
  while (join(dns.searches, " ").size() > kMaxSearchText) {
    dns.searches.pop_back();
    cut = true;
  }
  if (cut) {
    notes.emplace_back("DNSConfigForming",
                       cat("Search Line limits were exceeded, some search paths have been omitted, "
                           "the applied search line is: ",
                           join(dns.searches, " ")));
  }
}

}  // namespace

DnsSettings parse_resolv_conf(std::string_view text) {
  DnsSettings out;
  for (auto line : split(text, '\n')) {
    line = trim(line);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    std::vector<std::string> words;
    std::string spaced(line);
    std::replace(spaced.begin(), spaced.end(), '\t', ' ');
    for (const auto word : split(spaced, ' ')) {
      if (!word.empty()) words.emplace_back(word);
    }
    const std::string keyword = words.front();
    words.erase(words.begin());
    if (keyword == "nameserver" && !words.empty()) {
      out.servers.push_back(words.front());
    } else if (keyword == "search") {
      // The last such line counts.
      out.searches.clear();
      for (auto& word : words) {
        if (word.size() > 1 && word.ends_with('.')) word.pop_back();
        if (word != ".") out.searches.push_back(word);
      }
    } else if (keyword == "options") {
      for (const auto& word : words) add_once(out.options, word);
    }
  }
  return out;
}

std::vector<std::string> host_name_servers(runtime::Files& files) {
  const auto text = files.read(NodeFacts().resolv_conf);
  return text ? parse_resolv_conf(*text).servers : std::vector<std::string>();
}

DnsSettings pod_dns(const Value& pod, const NodeFacts& facts, const DnsSettings& host,
                    Notes& notes) {
  const Value& spec = pod["spec"];
  std::string policy = spec["dnsPolicy"].is_string() ? spec["dnsPolicy"].str() : "ClusterFirst";
  const bool on_host = spec["hostNetwork"].as_bool();
  bool cluster = policy == "ClusterFirstWithHostNet" || (policy == "ClusterFirst" && !on_host);
  if (cluster && facts.cluster_dns.empty()) {
    notes.emplace_back(
        "MissingClusterDNS",
        cat("pod: ", quoted(pod_text(pod)),
            ". kubelet does not have ClusterDNS IP configured and cannot create Pod "
            "using ",
            quoted(policy), " policy. Falling back to ", quoted("Default"), " policy."));
    cluster = false;
  }
  DnsSettings dns;
  if (cluster) {
    dns.servers = facts.cluster_dns;
    if (!facts.cluster_domain.empty()) {
      const auto name_space = pod["metadata"]["namespace"].as_string();
      dns.searches = {cat(name_space, ".svc.", facts.cluster_domain),
                      cat("svc.", facts.cluster_domain), facts.cluster_domain};
    }
    for (const auto& search : host.searches) add_once(dns.searches, search);
    dns.options = {"ndots:5"};
  } else if (policy != "None") {
    dns = host;
  }
  merge_config(spec["dnsConfig"], dns);
  bound(dns, notes);
  return dns;
}

}  // namespace dibs::node
