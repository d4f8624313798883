#include "node/runtime/oci_network.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/mutex.h"
#include "base/strings.h"
#include "json/parse.h"
#include "node/runtime/cni_text.h"
#include "node/runtime/image_record.h"
#include "runtime/files.h"
#include "runtime/processes.h"

namespace dibs::node {

namespace fs = std::filesystem;

namespace {

using json::Value;

constexpr Duration kCallLimit = std::chrono::minutes(1);

NetworkOptions with_own_folder(NetworkOptions options) {
  if (!options.own_folder.empty()) {
    options.plugin_folders.insert(options.plugin_folders.begin(), options.own_folder);
  }
  return options;
}

}  // namespace

PodNetwork::PodNetwork(NetworkOptions options)
    : options_(with_own_folder(std::move(options))), bridge_(bridge_name(options_.name)) {}

Result<> PodNetwork::link_plugins() {
  if (options_.own_folder.empty() || options_.program.empty()) return success();
  DIBS_CHECK(runtime::system_files().make_dirs(options_.own_folder, 0755));
  for (const auto& name : options_.own_plugins) {
    const std::string path = cat(options_.own_folder, '/', name);
    std::error_code failed;
    if (fs::read_symlink(path, failed) == options_.program) continue;
    // At once: another agent may be calling it.
    const std::string aside = path + ".new";
    ::unlink(aside.c_str());
    if (::symlink(options_.program.c_str(), aside.c_str()) != 0 ||
        std::rename(aside.c_str(), path.c_str()) != 0) {
      return Error::internal(cat("cannot link ", path, ": ", std::strerror(errno)));
    }
  }
  return success();
}

std::string PodNetwork::find_plugin(const std::string& type) const {
  for (const auto& folder : options_.plugin_folders) {
    std::string path = cat(folder, '/', type);
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

Result<> PodNetwork::ready() {
  DIBS_TRY(const Value list, configuration());
  for (const auto& plugin : list["plugins"].items()) {
    for (const std::string& type : {plugin["type"].str(), plugin["ipam"]["type"].str()}) {
      if (type.empty() || !find_plugin(type).empty()) continue;
      return Error::unavailable(cat("CNI plugin ", dibs::quoted(type), " is not in ",
                                    join(options_.plugin_folders, ", "),
                                    " (Debian: containernetworking-plugins)"));
    }
  }
  return success();
}

Result<> PodNetwork::prepare() {
  auto list = configuration();
  if (!list.ok() || !(*list)["dibs"].as_bool()) return success();
  // While the rules are made others wait: without them their pods would reach nobody.
  const MutexLock lock(mutex_);
  if (prepared_) return success();
  DIBS_TRY(const MachineRanges ranges, claim_pod_range(options_));
  DIBS_CHECK(make_bridge(ranges));
  masquerade(ranges.pods);
  prepared_ = true;
  return success();
}

Result<Value> PodNetwork::configuration() {
  auto files = runtime::system_files().list(options_.config_folder);
  if (files.ok()) {
    for (const auto& file : *files) {
      if (!file.ends_with(".conflist") && !file.ends_with(".conf") && !file.ends_with(".json"))
        continue;
      const std::string path = cat(options_.config_folder, '/', file);
      DIBS_TRY(const std::string bytes, runtime::system_files().read(path));
      auto list = parse_cni_configuration(bytes);
      if (!list.ok()) return list.error().within(cat("CNI configuration ", path));
      return list;
    }
  }
  return default_configuration();
}

Result<Value> PodNetwork::default_configuration() {
  DIBS_TRY(const MachineRanges ranges, claim_pod_range(options_));
  const Value ipam = Value::object(
      {{"type", "host-local"},
       {"ranges", Value::array({Value::array({Value::object({{"subnet", ranges.pods}})})})},
       {"routes", Value::array({Value::object({{"dst", "0.0.0.0/0"}})})},
       {"dataDir", options_.state + "/ipam"}});
  // One rule for the whole range, by masquerade(), is much faster than the plugin's one per pod.
  const Value bridge = Value::object({{"type", "bridge"},
                                      {"bridge", bridge_},
                                      {"isGateway", true},
                                      {"ipMasq", false},
                                      {"hairpinMode", true},
                                      {"ipam", ipam}});
  const Value ports = Value::object(
      {{"type", "portmap"}, {"capabilities", Value::object({{"portMappings", true}})}});
  return Value::object({{"cniVersion", "1.0.0"},
                        {"name", bridge_},
                        {"dibs", true},
                        {"plugins", Value::array({bridge, ports})}});
}

Result<Value> PodNetwork::call(const std::string& command, const Target& target,
                               const Value& attachment, const Value& plugin,
                               const Value& previous) {
  const std::string type = plugin["type"].str();
  const auto failure = [&](std::string_view message) {
    return Error::internal(
        cat("plugin type=", dibs::quoted(type), " failed (", to_lower(command), "): ", message));
  };
  const std::string path = find_plugin(type);
  if (path.empty()) {
    return failure(cat("failed to find plugin ", dibs::quoted(type), " in path [",
                       join(options_.plugin_folders, " "), "]"));
  }
  runtime::ProcessOptions process;
  process.argv = {path};
  process.env = std::vector<std::string>{
      "CNI_COMMAND=" + command,
      "CNI_CONTAINERID=" + target.id,
      "CNI_NETNS=" + target.network_namespace,
      "CNI_IFNAME=" + attachment["interface"].str(),
      "CNI_PATH=" + join(options_.plugin_folders, ":"),
      cat("CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=", target.sandbox.name_space,
          ";K8S_POD_NAME=", target.sandbox.name, ";K8S_POD_INFRA_CONTAINER_ID=", target.id,
          ";K8S_POD_UID=", target.sandbox.uid),
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
  process.env->insert(process.env->end(), options_.environment.begin(), options_.environment.end());
  if (target.held >= 0) process.descriptors = {{target.held, 3}};
  const Value input = cni_input(attachment, plugin, target.sandbox, previous);
  auto output = runtime::run(std::move(process), json::write(input), kCallLimit);
  if (!output.ok()) return failure(output.error().message());
  auto result = read_cni_output(command, {output->status.code, output->out, output->err});
  if (!result.ok()) return failure(result.error().message());
  return result;
}

namespace {

// Without a mapping the plugin does nothing, at the price of a process.
bool is_idle(const Value& plugin, const SandboxConfig& sandbox) {
  return plugin["type"].as_string() == "portmap" && cni_port_mappings(sandbox).empty();
}

}  // namespace

std::string PodNetwork::adding(const std::string& sandbox_id) const {
  return cat(options_.state, "/adding/", sandbox_id);
}

void PodNetwork::await_additions(const std::string& sandbox_id) const {
  const std::string path = adding(sandbox_id);
  const runtime::Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.ok()) return;
  // One that hangs is not waited for any longer than its agent would have.
  const auto end = std::chrono::steady_clock::now() + kCallLimit;
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

Result<Value> PodNetwork::named_configuration(const SandboxNetwork& network) {
  const std::string name = network.name.substr(network.name.find('/') + 1);
  if (!network.config.empty()) return parse_cni_configuration(network.config, name);
  auto files = runtime::system_files().list(options_.config_folder);
  for (const auto& file : files.ok() ? *files : std::vector<std::string>()) {
    auto bytes = runtime::system_files().read(cat(options_.config_folder, '/', file));
    if (!bytes.ok()) continue;
    // What is wrong with files that were not asked for is nothing to this pod.
    auto list = parse_cni_configuration(*bytes);
    if (list.ok() && (*list)["name"].as_string() == name) return list;
  }
  return Error::not_found(cat("it has no spec.config, and no file in ", options_.config_folder,
                              " is of a network with the name ", dibs::quoted(name)));
}

namespace {

/// What a pod asks for and nobody would do is refused.
Result<> check_capabilities(const SandboxNetwork& network, const Value& list) {
  const auto able = [&](const char* capability) {
    for (const auto& plugin : list["plugins"].items()) {
      if (plugin["capabilities"][capability].as_bool()) return true;
    }
    return false;
  };
  for (const char* capability : {"mac", "ips"}) {
    const bool asked =
        std::string_view(capability) == "mac" ? !network.mac.empty() : !network.ips.empty();
    if (!asked || able(capability)) continue;
    return Error::invalid(cat("the pod asks for ", dibs::quoted(capability),
                              ", and none of its plugins has that capability"));
  }
  return success();
}

}  // namespace

Result<Value> PodNetwork::plan(const SandboxConfig& sandbox) {
  Value attachments = Value::array();
  bool replaced = false;
  for (const auto& network : sandbox.networks) {
    replaced = replaced || network.interface == kDefaultInterface;
  }
  if (!replaced) {
    DIBS_TRY(Value list, configuration());
    SandboxNetwork own;
    own.interface = kDefaultInterface;
    own.name = list["name"].str();
    attachments.push(cni_attachment(own, std::move(list)));
  }
  for (const auto& network : sandbox.networks) {
    const std::string context = cat("network ", network.name);
    auto list = named_configuration(network);
    if (!list.ok()) return list.error().within(context);
    if (auto able = check_capabilities(network, *list); !able.ok()) {
      return able.error().within(context);
    }
    attachments.push(cni_attachment(network, std::move(list).value()));
  }
  return Value::object({{"attachments", std::move(attachments)}});
}

namespace {

/// The machine's end of the pod's interface.
std::string port_of_pod(const Value& result) {
  for (const Value& interface : result["interfaces"].items()) {
    const std::string name = interface["name"].str();
    if (interface["sandbox"].as_string().empty() && name.starts_with("veth")) return name;
  }
  return "";
}

}  // namespace

Result<> PodNetwork::add_one(const Target& target, const Value& attachment, Value& last) {
  for (const auto& plugin : attachment["list"]["plugins"].items()) {
    if (is_idle(plugin, target.sandbox)) continue;
    DIBS_TRY(last, call("ADD", target, attachment, plugin, last));
  }
  if (attachment["list"]["dibs"].as_bool()) DIBS_CHECK(isolate_port(port_of_pod(last)));
  const bool needs_address = attachment["interface"].as_string() == kDefaultInterface;
  if (needs_address || !last["ips"].empty()) DIBS_CHECK(cni_addresses(last));
  return success();
}

Result<NetworkResult> PodNetwork::add(const std::string& sandbox_id,
                                      const std::string& network_namespace,
                                      const SandboxConfig& sandbox, const Value& plan) {
  const auto context = cat("failed to setup network for sandbox ", dibs::quoted(sandbox_id));
  auto made = runtime::system_files().make_dirs(options_.state + "/adding", 0755);
  if (!made.ok()) return made.error().within(context);
  if (auto ready = prepare(); !ready.ok()) return ready.error().within(context);
  auto lock = wait_for_lock(adding(sandbox_id));
  if (!lock.ok()) return lock.error().within(context);
  const Target target{sandbox_id, network_namespace, sandbox, lock->get()};
  Value done = cni_attachments(plan);
  NetworkResult out;
  for (std::size_t i = 0; i < done.size(); ++i) {
    Value result;
    const Value one = done[i];
    const auto added = add_one(target, one, result);
    done.mut(i).set("result", std::move(result));
    if (!added.ok()) {
      // It may have left children, too, that remove() has to wait for.
      lock->reset();
      const Value so_far = Value::object({{"attachments", std::move(done)}});
      (void)remove(sandbox_id, network_namespace, sandbox, so_far).ok();
      const bool named = !sandbox.networks.empty();
      return (named ? added.error().within(cat("network ", one["name"].as_string()))
                    : added.error())
          .within(context);
    }
    if (one["interface"].as_string() == kDefaultInterface) {
      DIBS_TRY(out.ips, cni_addresses(done[i]["result"]));
    }
  }
  ::unlink(adding(sandbox_id).c_str());
  if (!sandbox.networks.empty()) out.status = cni_network_status(done);
  out.cni = Value::object({{"attachments", std::move(done)}});
  return out;
}

Result<> PodNetwork::remove_one(const Target& target, const Value& attachment) {
  const Value& plugins = attachment["list"]["plugins"];
  std::optional<Error> first;
  for (std::size_t i = plugins.size(); i-- > 0;) {
    // A plugin that was uninstalled cannot clean up; what it made goes with the namespace.
    if (is_idle(plugins[i], target.sandbox)) continue;
    if (find_plugin(plugins[i]["type"].str()).empty()) continue;
    auto result = call("DEL", target, attachment, plugins[i], attachment["result"]);
    if (!result.ok() && !first) first = result.error();
  }
  if (first) return *first;
  return success();
}

Result<> PodNetwork::remove(const std::string& sandbox_id, const std::string& network_namespace,
                            const SandboxConfig& sandbox, const Value& cni) {
  await_additions(sandbox_id);
  // As it was added, whatever the configuration says by now.
  Value attachments = cni_attachments(cni);
  if (attachments.empty()) {
    auto now = configuration();
    if (!now.ok()) return success();  // nothing can have been added by it
    attachments = cni_attachments(Value::object({{"list", std::move(*now)}}));
  }
  const Target target{sandbox_id, network_namespace, sandbox};
  std::optional<Error> first;
  for (std::size_t i = attachments.size(); i-- > 0;) {
    if (auto removed = remove_one(target, attachments[i]); !removed.ok() && !first) {
      first = removed.error();
    }
  }
  if (first) {
    return first->within(cat("failed to destroy network for sandbox ", dibs::quoted(sandbox_id)));
  }
  ::unlink(adding(sandbox_id).c_str());
  return success();
}

// So that pods reach what is outside. Without iptables they reach each other and this machine only.
void PodNetwork::masquerade(const std::string& range) {
  if (runtime::find_program("iptables").empty()) return;
  const std::vector<std::vector<std::string>> rules = {
      {"-t", "nat", "POSTROUTING", "-s", range, "!", "-d", range, "-j", "MASQUERADE"},
      {"-t", "filter", "FORWARD", "-i", bridge_, "-j", "ACCEPT"},
      {"-t", "filter", "FORWARD", "-o", bridge_, "-j", "ACCEPT"}};
  for (const auto& rule : rules) {
    const auto with = [&](const char* command) {
      std::vector<std::string> argv = {"iptables", "--wait", "5", rule[0], rule[1], command};
      argv.insert(argv.end(), rule.begin() + 2, rule.end());
      return runtime::run({.argv = std::move(argv)});
    };
    const auto known = with("-C");
    if (known.ok() && known->status.code != 0) (void)with("-A").ok();
  }
}

}  // namespace dibs::node
