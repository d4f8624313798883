#pragma once
// Where the tests find the conformance data.

#include <filesystem>
#include <string>

#include "base/test_data.h"

namespace dibs::cel {

/// Empty when there is none.
inline std::filesystem::path conformance_folder() { return dibs::test::conformance_data("cel"); }
using dibs::test::read_file;

}  // namespace dibs::cel
