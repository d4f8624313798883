#include "base/strings.h"
#include "node/pods/env.h"
#include "node/pods/probe_network.h"
#include "node/pods/probes.h"

namespace dibs::node {
namespace {

using json::Value;
using Outcome = ProbeAnswer::Outcome;

constexpr std::size_t kMaxOutput = 10 * 1024;

ProbeAnswer unknown(std::string why) { return {Outcome::unknown, std::move(why)}; }

/// Ports are numbers or names of the container's ports.
Result<int> port_of(const Value& port, const Value& container) {
  std::int64_t number = port.as_int();
  if (port.is_string()) {
    number = 0;
    for (const auto& known : container["ports"].items()) {
      if (known["name"].as_string() == port.as_string()) number = known["containerPort"].as_int();
    }
    for (const char c : number == 0 ? port.as_string() : std::string_view()) {
      if (c < '0' || c > '9' || number > 65535) {
        return Error::invalid(cat("couldn't find port by name in port spec: ", port.as_string()));
      }
      number = number * 10 + (c - '0');
    }
  }
  if (number <= 0 || number > 65535) return Error::invalid(cat("invalid port number: ", number));
  return static_cast<int>(number);
}

ProbeAnswer probe_exec(ContainerRuntime& containers, const ProbedContainer& container,
                       const Value& exec, Duration timeout) {
  // Only what the spec spells out: values from elsewhere are in the container, not here.
  EnvList literals;
  for (const auto& entry : container.container["env"].items()) {
    if (!entry["value"].is_string()) continue;
    literals.emplace_back(entry["name"].str(), entry["value"].str());
  }
  std::vector<std::string> command;
  for (const auto& word : exec["command"].items()) {
    command.push_back(expand_references(word.as_string(), literals));
  }
  auto ran = containers.exec_sync(container.id, command, timeout);
  if (!ran) {
    if (ran.error().code() == Code::timeout) {
      return {Outcome::failure, cat("command timed out: ", quoted(join(command, " ")),
                                    " timed out after ", format_duration(timeout))};
    }
    return unknown(ran.error().message());
  }
  std::string output = (ran->out + ran->err).substr(0, kMaxOutput);
  return {ran->exit_code == 0 ? Outcome::success : Outcome::failure, std::move(output)};
}

}  // namespace

Prober make_prober(ContainerRuntime& containers, bool simulated) {
  return [&containers, simulated](const ProbedContainer& container, const Value& probe,
                                  Duration timeout) -> ProbeAnswer {
    if (const Value& exec = probe["exec"]; exec.is_object()) {
      return probe_exec(containers, container, exec, timeout);
    }
    const auto host_of = [&](const Value& what) {
      const auto named = what["host"].as_string();
      return named.empty() ? container.pod_ip : std::string(named);
    };
    for (const char* kind : {"httpGet", "tcpSocket", "grpc"}) {
      const Value& what = probe[kind];
      if (!what.is_object()) continue;
      const auto port = port_of(what["port"], container.container);
      if (!port) return unknown(port.error().message());
      if (simulated) return {};
      if (kind[0] == 'h') return probe_http(what, host_of(what), *port, timeout);
      if (kind[0] == 't') return probe_tcp(host_of(what), *port, timeout);
      return probe_grpc(container.pod_ip, *port, what["service"].str(), timeout);
    }
    return unknown("missing probe handler for " + container.pod["metadata"]["name"].str() + ":" +
                   container.container["name"].str());
  };
}

}  // namespace dibs::node
