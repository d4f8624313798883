#include "node/runtime/oci_records.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/strings.h"
#include "json/parse.h"
#include "runtime/processes.h"

namespace dibs::node {
namespace {

using json::Value;

constexpr std::array<std::string_view, 4> kSandboxPhases = {"creating", "ready", "stopped",
                                                            "removing"};
constexpr std::array<std::string_view, 6> kContainerPhases = {"creating", "created", "starting",
                                                              "running",  "exited",  "removing"};

template <typename Phase, std::size_t N>
Phase phase_of(const std::array<std::string_view, N>& names, std::string_view name) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == name) return static_cast<Phase>(i);
  }
  return static_cast<Phase>(0);
}

Value pairs(const Labels& labels) {
  Value out = Value::object();
  for (const auto& [key, value] : labels) out.set(key, value);
  return out;
}

Labels labels_of(const Value& value) {
  Labels out;
  for (const auto& [key, member] : value.members()) out.emplace(key, member.str());
  return out;
}

Value process_value(const ProcessMark& mark) {
  return Value::object({{"pid", mark.pid}, {"began", static_cast<std::int64_t>(mark.began)}});
}

ProcessMark process_of(const Value& value) {
  return {value["pid"].as_int(), static_cast<std::uint64_t>(value["began"].as_int())};
}

Result<Value> record_value(std::string_view text, std::string_view id) {
  DIBS_TRY(Value value, json::parse(text));
  if (id.empty() || value["id"].as_string() != id) {
    return Error::invalid(
        cat("it is the record of ", quoted(value["id"].as_string()), ", not of ", quoted(id)));
  }
  return value;
}

std::uint64_t beginning(std::int64_t pid) {
  std::ifstream file(cat("/proc/", pid, "/stat"));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  // The name stands in parentheses and may hold anything; fields are counted behind it.
  const auto end = text.rfind(')');
  if (end == std::string::npos) return 0;
  const auto fields = split(std::string_view(text).substr(end + 2), ' ');
  if (fields.size() < 20 || fields[0] == "Z" || fields[0] == "X") return 0;
  std::uint64_t ticks = 0;
  std::from_chars(fields[19].data(), fields[19].data() + fields[19].size(), ticks);
  return ticks;
}

}  // namespace

bool ProcessMark::alive() const { return pid > 0 && began != 0 && beginning(pid) == began; }

ProcessMark ProcessMark::of(std::int64_t pid) { return {pid, pid > 0 ? beginning(pid) : 0}; }

Value SandboxRecord::to_value() const {
  Value ports = Value::array();
  for (const auto& port : config.ports) {
    ports.push(Value::object({{"protocol", port.protocol},
                              {"containerPort", port.container_port},
                              {"hostPort", port.host_port},
                              {"hostIP", port.host_ip}}));
  }
  Value ips = Value::array();
  for (const auto& ip : status.ips) ips.push(ip);
  return Value::object({{"id", status.id},
                        {"phase", kSandboxPhases[static_cast<std::size_t>(phase)]},
                        {"name", config.name},
                        {"namespace", config.name_space},
                        {"uid", config.uid},
                        {"attempt", config.attempt},
                        {"hostname", config.hostname},
                        {"logDirectory", config.log_directory},
                        {"ports", ports},
                        {"hostNetwork", config.host_network},
                        {"hostPid", config.host_pid},
                        {"hostIpc", config.host_ipc},
                        {"sharePid", config.share_pid},
                        {"group", config.group},
                        {"shares", config.limits.cpu_shares},
                        {"labels", pairs(config.labels)},
                        {"annotations", pairs(config.annotations)},
                        {"created", status.created.nanoseconds},
                        {"ips", ips},
                        {"networkStatus", status.network_status},
                        {"cni", cni},
                        {"pause", process_value(pause)},
                        {"boot", boot}});
}

Result<SandboxRecord> SandboxRecord::read(std::string_view text, std::string_view id) {
  DIBS_TRY(const Value value, record_value(text, id));
  SandboxRecord record;
  SandboxConfig& config = record.config;
  record.phase = phase_of<SandboxPhase>(kSandboxPhases, value["phase"].as_string());
  config.name = value["name"].str();
  config.name_space = value["namespace"].str();
  config.uid = value["uid"].str();
  config.attempt = static_cast<unsigned>(value["attempt"].as_int());
  config.hostname = value["hostname"].str();
  config.log_directory = value["logDirectory"].str();
  for (const auto& port : value["ports"].items()) {
    config.ports.push_back({port["protocol"].str(),
                            static_cast<int>(port["containerPort"].as_int()),
                            static_cast<int>(port["hostPort"].as_int()), port["hostIP"].str()});
  }
  config.host_network = value["hostNetwork"].as_bool();
  config.host_pid = value["hostPid"].as_bool();
  config.host_ipc = value["hostIpc"].as_bool();
  config.share_pid = value["sharePid"].as_bool();
  config.group = value["group"].str();
  config.limits.cpu_shares = value["shares"].as_int();
  config.labels = labels_of(value["labels"]);
  config.annotations = labels_of(value["annotations"]);
  record.cni = value["cni"];
  record.pause = process_of(value["pause"]);
  record.boot = value["boot"].str();
  SandboxStatus& status = record.status;
  status.id = value["id"].str();
  status.state =
      record.phase == SandboxPhase::ready ? SandboxState::ready : SandboxState::not_ready;
  status.name = config.name;
  status.name_space = config.name_space;
  status.uid = config.uid;
  status.attempt = config.attempt;
  status.created = {value["created"].as_int()};
  for (const auto& ip : value["ips"].items()) status.ips.push_back(ip.str());
  status.network_status = value["networkStatus"].str();
  status.labels = config.labels;
  status.annotations = config.annotations;
  return record;
}

Value ContainerRecord::to_value() const {
  return Value::object({{"id", status.id},
                        {"sandbox", status.sandbox_id},
                        {"phase", kContainerPhases[static_cast<std::size_t>(phase)]},
                        {"name", status.name},
                        {"attempt", status.attempt},
                        {"created", status.created.nanoseconds},
                        {"started", status.started.nanoseconds},
                        {"finished", status.finished.nanoseconds},
                        {"exitCode", status.exit_code},
                        {"signal", status.signal},
                        {"image", status.image},
                        {"imageID", status.image_id},
                        {"reason", status.reason},
                        {"message", status.message},
                        {"logPath", status.log_path},
                        {"labels", pairs(status.labels)},
                        {"annotations", pairs(status.annotations)},
                        {"stopSignal", stop_signal},
                        {"tty", tty},
                        {"stdin", stdin_open},
                        {"stdinOnce", stdin_once},
                        {"process", process_value(process)},
                        {"monitor", process_value(monitor)},
                        {"boot", boot}});
}

Result<ContainerRecord> ContainerRecord::read(std::string_view text, std::string_view id) {
  DIBS_TRY(const Value value, record_value(text, id));
  ContainerRecord record;
  record.phase = phase_of<ContainerPhase>(kContainerPhases, value["phase"].as_string());
  ContainerStatus& status = record.status;
  status.id = value["id"].str();
  status.sandbox_id = value["sandbox"].str();
  status.name = value["name"].str();
  status.attempt = static_cast<unsigned>(value["attempt"].as_int());
  status.created = {value["created"].as_int()};
  status.started = {value["started"].as_int()};
  status.finished = {value["finished"].as_int()};
  status.exit_code = static_cast<int>(value["exitCode"].as_int());
  status.signal = static_cast<int>(value["signal"].as_int());
  status.image = value["image"].str();
  status.image_id = value["imageID"].str();
  status.reason = value["reason"].str();
  status.message = value["message"].str();
  status.log_path = value["logPath"].str();
  status.labels = labels_of(value["labels"]);
  status.annotations = labels_of(value["annotations"]);
  record.stop_signal = value["stopSignal"].str();
  record.tty = value["tty"].as_bool();
  record.stdin_open = value["stdin"].as_bool();
  record.stdin_once = value["stdinOnce"].as_bool();
  record.process = process_of(value["process"]);
  record.monitor = process_of(value["monitor"]);
  record.boot = value["boot"].str();
  return record;
}

Result<> replace_file(const std::string& path, std::string_view bytes) {
  const std::string aside = path + ".new";
  // A new file: one that an agent left there before may have another mode.
  ::unlink(aside.c_str());
  const runtime::Fd file(
      ::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  bool failed = !file.ok();
  while (!failed && !bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    failed = written < 0;
    if (!failed) bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  if (failed) return Error::internal(cat("cannot write ", aside, ": ", std::strerror(errno)));
  if (std::rename(aside.c_str(), path.c_str()) != 0) {
    return Error::internal(cat("cannot replace ", path, ": ", std::strerror(errno)));
  }
  return success();
}

std::string machine_boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace dibs::node
