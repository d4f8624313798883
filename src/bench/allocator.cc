#include "bench/allocator.h"

#include <chrono>

#include "base/strings.h"
#include "bench/case_report.h"
#include "net/gzip.h"
#include "runtime/files.h"

namespace dibs::bench {
namespace {

/// More than any set of cases needs; a packed file must not fill the memory.
constexpr std::size_t kMostBytes = std::size_t{4} << 30;

std::int64_t steady_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Result<std::string> read_cases(const std::string& path) {
  DIBS_TRY(std::string bytes, runtime::system_files().read(path));
  // By content, not by name: a renamed file is still what it is.
  if (!bytes.starts_with("\x1f\x8b")) return bytes;
  return net::gunzip(bytes, kMostBytes);
}

}  // namespace

Outcome bench_allocator(const std::vector<std::string>& files) {
  Outcome made;
  CaseReport report(steady_nanoseconds);
  for (const std::string& path : files) {
    const Result<std::string> text = read_cases(path);
    const Result<> added = text.ok() ? report.add_text(*text) : Result<>(text.error());
    if (!added.ok()) {
      made.status = 2;
      made.errors = cat("dibs bench allocator: ", path, ": ", added.error().message(), "\n");
      return made;
    }
  }
  for (const std::string& difference : report.differences()) append(made.output, difference, "\n");
  append(made.output, report.summary());
  made.status = report.different() + report.unanswered() == 0 ? 0 : 1;
  return made;
}

}  // namespace dibs::bench
