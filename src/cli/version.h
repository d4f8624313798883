#pragma once
// What this binary was built from. cmake/version.cmake writes the answer at build time, into one
// small file, so that a commit rebuilds nothing else.

namespace dibs::cli {

struct BuildInfo {
  const char* version;
  const char* commit;  // "unknown" where the sources did not tell
  const char* date;    // of the commit, or SOURCE_DATE_EPOCH: the same sources give the same binary
};
BuildInfo build_info();

}  // namespace dibs::cli
