#include "drivers/nvidia/nvml/loaded.h"

#include <dlfcn.h>

#include "base/strings.h"

namespace dibs::drivers::nvidia::nvml {

Loaded::~Loaded() {
  if (initialized) nvmlShutdown();
  if (handle != nullptr) dlclose(handle);
}

Result<std::shared_ptr<const Loaded>> Loaded::open(const std::string& path) {
  const std::string name = path.empty() ? "libnvidia-ml.so.1" : path;
  auto loaded = std::make_shared<Loaded>();
  loaded->handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded->handle == nullptr) {
    const char* why = dlerror();
    return failure(static_cast<int>(Code::library_not_found),
                   cat("load NVML from ", name, " (", why == nullptr ? "no reason given" : why,
                       "; it comes with NVIDIA's driver, --nvml-library names another place)"));
  }

  std::vector<std::string> missing;
#define DIBS_NVML_LOOK_UP(required, name, arguments)             \
  loaded->name = reinterpret_cast<abi::Return(*) arguments>(     \
      dlsym(loaded->handle, #name)); /* NOLINT: what dlsym is */ \
  if ((required) && loaded->name == nullptr) missing.push_back(#name);
  DIBS_NVML_FUNCTIONS(DIBS_NVML_LOOK_UP)
#undef DIBS_NVML_LOOK_UP
  if (!missing.empty()) {
    return failure(static_cast<int>(Code::function_not_found),
                   cat("use ", name, ", which lacks ", join(missing, ", "),
                       " (a driver of R450 or later is needed)"));
  }

  DIBS_NVML_CHECK(loaded->nvmlInit_v2(), cat("initialize ", name));
  loaded->initialized = true;
  return std::shared_ptr<const Loaded>(std::move(loaded));
}

Result<abi::Device> find_gpu(const Loaded& nvml, const std::string& uuid) {
  abi::Device device = nullptr;
  DIBS_NVML_CHECK(nvml.nvmlDeviceGetHandleByUUID(uuid.c_str(), &device), cat("find GPU ", uuid));
  return device;
}

}  // namespace dibs::drivers::nvidia::nvml
