// What of the machine itself a pod reaches: its namespaces, ports, files and other addresses.
#include "api/kinds/pod_security/checks.h"
#include "base/strings.h"

namespace dibs::api::pod_security {

Found host_namespaces(const Pod& pod) {
  Names shared;
  for (const char* field : {"hostNetwork", "hostPID", "hostIPC"}) {
    if (pod.spec[field].as_bool()) shared.push_back(cat(field, "=true"));
  }
  if (shared.empty()) return {};
  return Violation{"host namespaces", join(shared, ", ")};
}

Found host_path_volumes(const Pod& pod) {
  Names names;
  for (const Value& volume : pod.spec["volumes"].items()) {
    if (!volume["hostPath"].is_null()) names.push_back(volume["name"].str());
  }
  if (names.empty()) return {};
  return Violation{"hostPath volumes",
                   cat(plural(names.size(), "volume", "volumes"), " ", joined(names))};
}

Found host_ports(const Pod& pod) {
  Names bad;
  SortedNames ports;
  for_each_container(pod, [&](const Value& container) {
    bool uses = false;
    for (const Value& port : container["ports"].items()) {
      if (port["hostPort"].as_int() == 0) continue;
      uses = true;
      ports.insert(std::to_string(port["hostPort"].as_int()));
    }
    if (uses) bad.push_back(container["name"].str());
  });
  if (bad.empty()) return {};
  return Violation{"hostPort", cat(containers_text(bad), " ", plural(bad.size(), "uses", "use"),
                                   " ", plural(ports.size(), "hostPort", "hostPorts"), " ",
                                   join(Names(ports.begin(), ports.end()), ", "))};
}

Found host_probes(const Pod& pod) {
  SortedNames bad;
  SortedNames hosts;
  for_each_container(pod, [&](const Value& container) {
    const auto look = [&](const Value& handler) {
      for (const char* kind : {"httpGet", "tcpSocket"}) {
        const std::string host = handler[kind]["host"].str();
        if (host.empty()) continue;
        bad.insert(container["name"].str());
        hosts.insert(host);
      }
    };
    for (const char* probe : {"livenessProbe", "readinessProbe", "startupProbe"}) {
      look(container[probe]);
    }
    for (const char* moment : {"postStart", "preStop"}) look(container["lifecycle"][moment]);
  });
  if (bad.empty()) return {};
  const Names names(bad.begin(), bad.end());
  return Violation{"probe or lifecycle host",
                   cat(containers_text(names), " ", plural(names.size(), "uses", "use"), " ",
                       plural(hosts.size(), "probe or lifecycle host", "probe or lifecycle hosts"),
                       " ", joined(hosts))};
}

Found windows_host_process(const Pod& pod) {
  const auto is_set = [](const Value& context) {
    return context["windowsOptions"]["hostProcess"].as_bool();
  };
  Names bad;
  for_each_container(pod, [&](const Value& container) {
    if (is_set(container["securityContext"])) bad.push_back(container["name"].str());
  });
  const bool of_pod = is_set(pod.context());
  if (!of_pod && bad.empty()) return {};
  return Violation{"hostProcess",
                   cat(setters_text(of_pod, bad),
                       " must not set securityContext.windowsOptions.hostProcess=true")};
}

Found restricted_volumes(const Pod& pod) {
  // Those that the standard knows by name; the first that is set counts.
  static constexpr const char* kForbidden[] = {"hostPath",
                                               "gcePersistentDisk",
                                               "awsElasticBlockStore",
                                               "gitRepo",
                                               "nfs",
                                               "iscsi",
                                               "glusterfs",
                                               "rbd",
                                               "flexVolume",
                                               "cinder",
                                               "cephfs",
                                               "flocker",
                                               "fc",
                                               "azureFile",
                                               "vsphereVolume",
                                               "quobyte",
                                               "azureDisk",
                                               "photonPersistentDisk",
                                               "portworxVolume",
                                               "scaleIO",
                                               "storageos"};
  static constexpr const char* kAllowed[] = {
      "configMap", "csi",   "downwardAPI",           "emptyDir",
      "ephemeral", "image", "persistentVolumeClaim", "projected",
      "secret"};
  const auto first_of = [](const Value& volume, const auto& kinds) -> const char* {
    for (const char* kind : kinds) {
      if (!volume[std::string_view(kind)].is_null()) return kind;
    }
    return nullptr;
  };
  Names bad;
  SortedNames kinds;
  for (const Value& volume : pod.spec["volumes"].items()) {
    if (first_of(volume, kAllowed) != nullptr) continue;
    bad.push_back(volume["name"].str());
    const char* kind = first_of(volume, kForbidden);
    kinds.insert(kind != nullptr ? kind : "unknown");
  }
  if (bad.empty()) return {};
  return Violation{"restricted volume types",
                   cat(plural(bad.size(), "volume", "volumes"), " ", joined(bad), " ",
                       plural(bad.size(), "uses", "use"), " ",
                       plural(kinds.size(), "restricted volume type", "restricted volume types"),
                       " ", joined(kinds))};
}

}  // namespace dibs::api::pod_security
