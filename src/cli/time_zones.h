#pragma once
// Time zones by name for expressions: from the files of this machine.

namespace dibs::cli {

/// Once, before the first expression is evaluated.
void use_zones_of_this_machine();

}  // namespace dibs::cli
