#include "node/runtime/pick_runtime.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/plug_points.h"
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

/// Where this program lies, or its successor since it was started.
std::string own_program() {
  std::error_code failed;
  std::string path = std::filesystem::read_symlink("/proc/self/exe", failed).string();
  constexpr std::string_view kReplaced = " (deleted)";
  if (path.ends_with(kReplaced)) path.resize(path.size() - kReplaced.size());
  return path;
}

Result<std::unique_ptr<ContainerRuntime>> open_oci(const RuntimeOptions& options,
                                                   const std::string& program,
                                                   runtime::Runtime& machine) {
  OciOptions oci;
  oci.root = options.root;
  oci.images = options.images.empty() ? default_image_folder() : options.images;
  oci.image_options = options.image_options;
  oci.program = program;
  oci.cdi_directories = options.cdi_directories;
  oci.cdi_newest = options.cdi_newest;
  oci.host_path = options.host_path;
  oci.network.name = options.network.empty() ? options.root : options.network;
  if (!options.cni_config.empty()) oci.network.config_folder = options.cni_config;
  if (!options.cni_plugins.empty()) oci.network.plugin_folders = options.cni_plugins;
  if (!options.own_cni_plugins.empty()) {
    oci.network.own_folder = cat(options.root, "/cni-bin");
    oci.network.program = own_program();
    oci.network.own_plugins = options.own_cni_plugins;
  }
  oci.network.environment = options.cni_environment;
  oci.boot_id = options.boot_id;
  oci.log_bound = options.log_bound;
  DIBS_TRY(auto opened, OciRuntime::open(std::move(oci), machine));
  return opened;
}

std::string explain_oci(const std::string& program, const std::string& passed_over) {
  return cat(program_version(program), ": real containers",
             passed_over.empty() ? "" : cat(" (", passed_over, ")"));
}

// crun comes before runc: it starts a container in a fraction of runc's time, where it works.
constexpr RuntimeKind kRuntimes[] = {
    {"auto", "real ones where this machine can", {"crun", "runc", "sim"}},
    {"oci", "crun or runc", {"crun", "runc"}},
    {.name = "runc",
     .description = {},
     .missing = [] { return missing_for_oci("runc"); },
     .open = [](const RuntimeOptions& options,
                runtime::Runtime& machine) { return open_oci(options, "runc", machine); },
     .explain = [](const std::string& passed_over) { return explain_oci("runc", passed_over); }},
    {.name = "crun",
     .description = {},
     .missing = [] { return missing_for_oci("crun"); },
     .open = [](const RuntimeOptions& options,
                runtime::Runtime& machine) { return open_oci(options, "crun", machine); },
     .explain = [](const std::string& passed_over) { return explain_oci("crun", passed_over); }},
    {.name = "sim",
     .description = "no processes",
     .simulated = true,
     .missing = [] { return std::string(); },
     .open = [](const RuntimeOptions& options,
                runtime::Runtime& machine) -> Result<std::unique_ptr<ContainerRuntime>> {
       return make_sim_containers({.cdi_directories = options.cdi_directories,
                                   .cdi_newest = options.cdi_newest,
                                   .images = options.images,
                                   .addresses = options.sim_addresses},
                                  machine);
     },
     .explain =
         [](const std::string& passed_over) {
           return cat("sim: simulated containers, ",
                      passed_over.empty() ? "as asked for" : cat("no processes: ", passed_over));
         }},
};

Result<std::unique_ptr<ContainerRuntime>> open_ready(const RuntimeKind& kind,
                                                     const RuntimeOptions& options,
                                                     runtime::Runtime& machine) {
  DIBS_TRY(auto opened, kind.open(options, machine));
  DIBS_CHECK(opened->ready());
  return opened;
}

}  // namespace

std::span<const RuntimeKind> runtime_kinds() { return kRuntimes; }

std::string default_image_folder() {
  if (::geteuid() == 0) return "/var/lib/dibs/images";
  const char* home = std::getenv("HOME");
  return cat(home != nullptr ? home : "/tmp", "/.local/share/dibs/images");
}

namespace {

/// The runtimes that a kind stands for, in the order in which they are tried; none: it is unknown.
std::vector<const RuntimeKind*> candidates_of(std::string_view kind) {
  const RuntimeKind* wanted = find_named(runtime_kinds(), kind);
  if (wanted == nullptr) return {};
  std::vector<const RuntimeKind*> candidates;
  for (const auto name : wanted->tries) {
    if (!name.empty()) candidates.push_back(find_named(runtime_kinds(), name));
  }
  if (candidates.empty()) candidates = {wanted};
  return candidates;
}

}  // namespace

bool would_run_processes(std::string_view kind) {
  for (const RuntimeKind* candidate : candidates_of(kind)) {
    if (candidate->missing().empty()) return !candidate->simulated;
  }
  return false;
}

Result<PickedRuntime> pick_runtime(const RuntimeOptions& options, runtime::Runtime& machine) {
  const auto candidates = candidates_of(options.kind);
  if (candidates.empty()) {
    return Error::invalid(cat("unknown runtime ", quoted(options.kind), ": one of ",
                              join(names_of(runtime_kinds()), ", ")));
  }
  std::string passed_over;
  Error failure = Error::internal("no runtime to try");
  for (const RuntimeKind* kind : candidates) {
    const std::string missing = kind->missing();
    if (!missing.empty()) {
      passed_over = missing;
      failure = Error::unavailable(cat("cannot run containers here: ", missing));
      continue;
    }
    auto opened = open_ready(*kind, options, machine);
    if (opened.ok()) {
      return PickedRuntime{std::move(opened).value(), std::string(kind->name), kind->simulated,
                           kind->explain(passed_over)};
    }
    passed_over = opened.error().message();
    failure = opened.error();
  }
  return failure;
}

}  // namespace dibs::node
