#include "cli/common_flags.h"

#include "base/plug_points.h"
#include "store/stores.h"

namespace dibs::cli {

Flag::Form env(const char* variable) { return {.env = variable}; }
Flag::Form between(double least, double most) { return {.least = least, .most = most}; }
Flag::Form one_of(std::vector<std::string> words) { return {.one_of = std::move(words)}; }

Flags both(Flags flags, const Flags& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

Flag kubeconfig(std::string& file) {
  return {"--kubeconfig", &file, "How to reach the API server (default: as kubectl does)", kFile};
}

Flag context(std::string& name) {
  return {"--context", &name, "Context of the kubeconfig (default: its current one)"};
}

Flag data_dir(std::string& folder) {
  return {"--data-dir", &folder, "Folder for everything that lasts (default: ~/.local/share/dibs)",
          env("DIBS_DATA_DIR")};
}

Flag store(std::string& name) {
  return {"--store", &name, described("Where objects are kept", store::store_kinds()),
          one_of(names_of(store::store_kinds()))};
}

Flag feature_gates(std::string& gates) {
  return {"--feature-gates", &gates, "GATE=true|false, with commas between them"};
}

Flag release_of_gates(std::string& release) {
  return {
      "--release", &release,
      "Kubernetes release whose feature gates and ways count (default: the gates of 1.37, the ways "
      "with classic claims of the server)"};
}

Flag log_level(std::string& level) {
  return {"--log-level", &level, "What to log", one_of({"debug", "info", "warn", "error", "off"})};
}

Flag insecure_registries(std::vector<std::string>& registries) {
  return {"--insecure-registries", &registries,
          "HOST:PORT of registries to ask without TLS, or whatever their certificate is", kCommas};
}

}  // namespace dibs::cli
