// dibs-fake-nvml: looks at fake machines and changes them from outside.

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/strings.h"
#include "drivers/nvidia/fake/machine_files.h"
#include "drivers/nvidia/fake/placing.h"
#include "drivers/nvidia/fake/root.h"

namespace dibs::drivers::nvidia::fake {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kHelp = R"(dibs-fake-nvml COMMAND MACHINE.yaml ...
  check MACHINE                          reads the description
  show MACHINE                           GPUs and instances
  layout MACHINE FOLDER [LIBRARY]        a folder that looks like a machine with NVIDIA's driver; it
                                         follows the instances from then on. LIBRARY is the fake
                                         library; unless it is named, the one beside this program or
                                         in ../lib
  create MACHINE GPU PROFILE START [half] an instance, as another program would make it; half: a GPU
                                         instance without a compute instance
  destroy MACHINE GPU INSTANCE           a GPU instance and what is in it
  reset MACHINE GPU                      as nvidia-smi --gpu-reset: no instances, pending modes taken on
GPU is an index or an uuid, PROFILE a name (1g.18gb) or an id (19). docs/formats/fake-nvml.md has the files.
)";

Result<std::size_t> gpu_named(const Machine& machine, const std::string& what) {
  const Gpu* gpu = find_gpu(machine, what);
  if (gpu == nullptr) {
    return Error::not_found(
        cat("the machine has no GPU ", quoted(what), "; it has ", machine.gpus.size()));
  }
  return static_cast<std::size_t>(gpu - machine.gpus.data());
}

Result<const Profile*> profile_named(const Model& model, const std::string& what) {
  std::vector<std::string> names;
  for (const Profile& profile : model.profiles) {
    if (profile.name == what || std::to_string(profile.id) == what) return &profile;
    names.push_back(profile.name);
  }
  return Error::not_found(cat("the GPU has no MIG profile ", quoted(what), "; it has ",
                              names.empty() ? "none" : join(names, ", ")));
}

Result<> show(MachineFiles& files, const Words& /*words*/) {
  const Snapshot at = files.look();
  for (std::size_t i = 0; i < at.machine.gpus.size(); ++i) {
    const Gpu& gpu = at.machine.gpus[i];
    const GpuState& state = at.state->gpus[i];
    const GpuFaults& faults = at.faults->gpus[i];
    std::printf("%zu %s %s MIG %s%s%s\n", i, gpu.uuid.c_str(), at.machine.model_of(i).name.c_str(),
                state.mig ? "on" : "off",
                state.mig != state.mig_pending ? " (pending another)" : "",
                faults.gone   ? " gone"
                : faults.lost ? " lost"
                              : "");
    for (const GpuInstance& instance : state.instances) {
      const Profile* profile = profile_by_id(at.machine.model_of(i), instance.profile);
      std::printf("  %u %s %u:%u%s\n", instance.id,
                  profile == nullptr ? "?" : profile->name.c_str(), instance.placement.start,
                  instance.placement.size, instance.compute.empty() ? " half" : "");
      for (const ComputeInstance& compute : instance.compute) {
        std::printf("    %u %s\n", compute.id, mig_uuid(gpu, instance, compute).c_str());
      }
    }
  }
  return success();
}

/// Where packages and build folders have the library.
Result<std::string> find_library() {
  std::error_code why;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", why).parent_path();
  for (const char* below : {".", "../lib", "../lib/dibs", "../lib/x86_64-linux-gnu"}) {
    const auto path = folder / below / "libdibs-fake-nvml.so";
    if (std::filesystem::exists(path, why)) return path.string();
  }
  return Error::not_found("libdibs-fake-nvml.so is not beside this program: name it");
}

Result<> layout(MachineFiles& files, const Words& words) {
  if (words.empty()) return Error::bad_request("layout: the folder is missing");
  std::string library;
  if (words.size() > 1) {
    library = words[1];
  } else {
    DIBS_TRY(library, find_library());
  }
  const std::string root = std::filesystem::absolute(words[0]).lexically_normal().string();
  DIBS_CHECK(lay_out(files.machine(), files.path(), library, root));
  return files.change_or_tell([&](State& state) {
    state.root = root;
    return follow_state(files.machine(), state);
  });
}

Result<> create(MachineFiles& files, const Words& words) {
  if (words.size() < 3) return Error::bad_request("create: GPU, profile and start are needed");
  DIBS_TRY(const std::size_t gpu, gpu_named(files.machine(), words[0]));
  const Model& model = files.machine().model_of(gpu);
  DIBS_TRY(const Profile* profile, profile_named(model, words[1]));
  const auto start = static_cast<unsigned>(std::strtoul(words[2].c_str(), nullptr, 10));
  const bool half = words.size() > 3 && words[3] == "half";
  return files.change_or_tell([&](State& state) -> Result<> {
    GpuState& there = state.gpus[gpu];
    if (!there.mig) return Error::conflict("MIG is off on this GPU");
    const unsigned size = profile->placements.empty() ? 0 : profile->placements.front().size;
    GpuInstance instance;
    instance.profile = profile->id;
    instance.placement = {start, size};
    if (can_place(model, there.instances, *profile, instance.placement) != 0) {
      return Error::conflict(cat(profile->name, " does not fit at ", start));
    }
    instance.id = gpu_instance_id(model, instance.placement);
    instance.serial = ++state.last_serial;
    for (const ComputeProfile& compute : compute_profiles(model, *profile)) {
      if (half || compute.slices != profile->slices) continue;
      instance.compute.push_back({0, compute.id, {0, compute.slices}, ++state.last_serial});
    }
    std::printf("%u\n", instance.id);
    there.instances.push_back(std::move(instance));
    return success();
  });
}

Result<> destroy(MachineFiles& files, const Words& words) {
  if (words.size() < 2) return Error::bad_request("destroy: GPU and instance are needed");
  DIBS_TRY(const std::size_t gpu, gpu_named(files.machine(), words[0]));
  return files.change_or_tell([&](State& state) -> Result<> {
    const auto gone = std::erase_if(state.gpus[gpu].instances, [&](const GpuInstance& instance) {
      return std::to_string(instance.id) == words[1];
    });
    if (gone == 0) return Error::not_found(cat("the GPU has no instance ", words[1]));
    return success();
  });
}

Result<> reset(MachineFiles& files, const Words& words) {
  if (words.empty()) return Error::bad_request("reset: the GPU is missing");
  DIBS_TRY(const std::size_t gpu, gpu_named(files.machine(), words[0]));
  return files.change_or_tell([&](State& state) -> Result<> {
    state.gpus[gpu].instances.clear();
    state.gpus[gpu].mig = state.gpus[gpu].mig_pending;
    return success();
  });
}

Result<> run(const Words& words) {
  const struct {
    std::string_view name;
    Result<> (*run)(MachineFiles&, const Words&);
  } commands[] = {
      {"show", show},     {"layout", layout},
      {"create", create}, {"destroy", destroy},
      {"reset", reset},   {"check", [](MachineFiles&, const Words&) { return success(); }}};
  for (const auto& command : commands) {
    if (words[0] != command.name) continue;
    if (words.size() < 2) return Error::bad_request(cat(words[0], ": the machine is missing"));
    DIBS_TRY(const auto files, MachineFiles::open(words[1]));
    return command.run(*files, Words(words.begin() + 2, words.end()));
  }
  return Error::bad_request(cat("there is no command ", quoted(words[0]), "; see --help"));
}

}  // namespace
}  // namespace dibs::drivers::nvidia::fake

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  const bool help = !words.empty() && (words[0] == "--help" || words[0] == "-h");
  if (words.empty() || help) {
    std::fputs(dibs::drivers::nvidia::fake::kHelp, help ? stdout : stderr);
    return help ? 0 : 2;
  }
  const auto done = dibs::drivers::nvidia::fake::run(words);
  if (done.ok()) return 0;
  std::fprintf(stderr, "dibs-fake-nvml: %s\n", done.error().message().c_str());
  return done.error().code() == dibs::Code::bad_request ? 2 : 1;
}
