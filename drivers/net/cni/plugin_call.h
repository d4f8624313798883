#pragma once
// One call of a CNI plugin: what it is told, and what it answers. Functions of text, but for run().
//
// An error's code becomes CNI's number: not_acceptable (the version) 1, bad_request (the
// environment) 4, invalid (the configuration) 7, unavailable 11, anything else 999.

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "drivers/net/cni/local_api.h"
#include "json/value.h"

namespace dibs::drivers::net {

struct PluginCall {
  std::string command = {};  // ADD, DEL, CHECK
  std::string container = {};
  std::string network_namespace = {};  // a path; a DEL may have none
  std::string interface = {};
  PodName pod = {};
  json::Value config = {};
  std::string socket = {};  // of the node's half

  std::string version() const { return config["cniVersion"].str(); }
  const json::Value& previous() const { return config["prevResult"]; }
};

using Variables = std::function<std::string(const char* name)>;  // "" where there is none

/// Errors say which variable or field is missing or wrong.
Result<PluginCall> read_call(const Variables& variables, std::string_view input);

/// The answer to VERSION.
json::Value supported_versions();
json::Value error_value(const Error& error, std::string_view version);

/// Addresses in the form of a result of that version.
json::Value ipam_result(const NicAddresses& addresses, std::string_view version);

/// An address of a result, with its gateway ("": none).
struct ResultAddress {
  std::string address = {};  // with its prefix length
  std::string gateway = {};
};
std::vector<ResultAddress> result_addresses(const json::Value& result);

/// Hands the result of the plugin before on, as the last one of a list does that adds nothing.
json::Value pass_on(const PluginCall& call);

// The three plugins: the result of an ADD; null for the rest.
Result<json::Value> run_ipam(const PluginCall& call);
Result<json::Value> run_coordinator(const PluginCall& call);
Result<json::Value> run_ifacer(const PluginCall& call);

}  // namespace dibs::drivers::net
