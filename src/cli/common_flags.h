#pragma once
// Flags that several commands have, and the forms that flags of all commands come in.

#include <string>
#include <vector>

#include "cli/command_line.h"

namespace dibs::cli {

inline const Flag::Form kFile = {.type = "FILE"};
inline const Flag::Form kRequired = {.required = true};
inline const Flag::Form kHidden = {.hidden = true};
inline const Flag::Form kHasValue = {.has_value = true};
inline const Flag::Form kCommas = {.commas = true};
Flag::Form env(const char* variable);
Flag::Form between(double least, double most);
Flag::Form one_of(std::vector<std::string> words);
Flags both(Flags flags, const Flags& more);

Flag kubeconfig(std::string& file);
Flag context(std::string& name);
Flag data_dir(std::string& folder);
Flag store(std::string& name);
Flag feature_gates(std::string& gates);
Flag release_of_gates(std::string& release);
Flag log_level(std::string& level);
Flag insecure_registries(std::vector<std::string>& registries);

}  // namespace dibs::cli
