#include "node/runtime/pick_runtime.h"

#include <unistd.h>

#include <cstdlib>

#include "base/strings.h"
#include "node/runtime/oci_runtime.h"
#include "node/runtime/sim_containers.h"
#include "runtime/processes.h"

namespace dibs::node {
namespace {

// "runc version 1.1.5+ds1" → "runc 1.1.5+ds1".
std::string program_version(const std::string& program) {
  auto output = runtime::run({.argv = {program, "--version"}}, {}, std::chrono::seconds(5));
  if (!output.ok()) return program;
  const std::string_view first = split(output->out, '\n')[0];
  const auto at = first.rfind(' ');
  return at == std::string_view::npos ? program : cat(program, first.substr(at));
}

Result<std::unique_ptr<OciRuntime>> open_oci(const RuntimeOptions& options,
                                             const std::string& program,
                                             runtime::Runtime& machine) {
  OciOptions oci;
  oci.root = options.root;
  oci.images = options.images.empty() ? default_image_folder() : options.images;
  oci.program = program;
  oci.cdi_directories = options.cdi_directories;
  oci.network.name = options.network.empty() ? options.root : options.network;
  if (!options.cni_config.empty()) oci.network.config_folder = options.cni_config;
  if (!options.cni_plugins.empty()) oci.network.plugin_folders = options.cni_plugins;
  oci.boot_id = options.boot_id;
  return OciRuntime::open(std::move(oci), machine);
}

}  // namespace

std::string default_image_folder() {
  if (::geteuid() == 0) return "/var/lib/dibs/images";
  const char* home = std::getenv("HOME");
  return cat(home != nullptr ? home : "/tmp", "/.local/share/dibs/images");
}

Result<PickedRuntime> pick_runtime(const RuntimeOptions& options, runtime::Runtime& machine) {
  const std::string& kind = options.kind;
  if (kind != "auto" && kind != "oci" && kind != "runc" && kind != "crun" && kind != "sim") {
    return Error::invalid(
        cat("unknown runtime ", quoted(kind), ": one of auto, oci, runc, crun, sim"));
  }
  PickedRuntime picked;
  std::string remark;
  if (kind != "sim") {
    // crun starts a container in a fraction of runc's time, where it works.
    const std::string crun = kind == "runc" ? "runc was asked for" : missing_for_oci("crun");
    const std::string runc = kind == "crun" ? "crun was asked for" : missing_for_oci("runc");
    if (crun.empty()) {
      picked.name = "crun";
    } else if (runc.empty()) {
      picked.name = "runc";
      if (kind != "runc") remark = cat(" (", crun, ")");
    } else if (kind != "auto") {
      return Error::unavailable(cat("cannot run containers here: ", kind == "crun" ? crun : runc));
    } else {
      remark = cat(": ", runc);
    }
  }
  std::unique_ptr<OciRuntime> opened;
  if (!picked.name.empty()) {
    auto tried = open_oci(options, picked.name, machine);
    const Result<> ready = tried.ok() ? (*tried)->ready() : Result<>(tried.error());
    if (ready.ok()) {
      opened = std::move(*tried);
    } else if (kind != "auto") {
      return ready.error();
    } else {
      remark = cat(": ", ready.error().message());
      picked.name.clear();
    }
  }
  if (picked.name.empty()) {
    picked.name = "sim";
    picked.explanation = kind == "sim" ? std::string("sim: simulated containers, as asked for")
                                       : cat("sim: simulated containers, no processes", remark);
    picked.runtime = make_sim_containers({.cdi_directories = options.cdi_directories,
                                          .images = options.images,
                                          .addresses = options.sim_addresses},
                                         machine);
    return picked;
  }
  picked.runtime = std::move(opened);
  picked.explanation = cat(program_version(picked.name), ": real containers", remark);
  return picked;
}

}  // namespace dibs::node
