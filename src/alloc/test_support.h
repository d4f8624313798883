#pragma once
// Where the tests find the conformance data.

#include <filesystem>

#include "base/test_data.h"

namespace dibs::alloc {

/// Empty when there is none.
inline std::filesystem::path conformance_folder() {
  return dibs::test::conformance_data("allocator");
}
using dibs::test::read_file;

}  // namespace dibs::alloc
