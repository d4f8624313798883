#include "cli/bench_scheduler.h"

#include <algorithm>
#include <cstdio>

#include "base/strings.h"
#include "cli/bench_run.h"
#include "cli/bench_workload.h"
#include "cli/process.h"
#include "runtime/files.h"

namespace dibs::cli {
namespace {

bool wanted(const Workload& workload, const BenchSchedulerFlags& flags) {
  if (workload.name.find(flags.workload) == std::string::npos) return false;
  // A whole name means that one, not those that it begins.
  if (flags.workload.find('/') != std::string::npos && !workload.name.ends_with(flags.workload)) {
    return false;
  }
  return flags.label.empty() || std::find(workload.labels.begin(), workload.labels.end(),
                                          flags.label) != workload.labels.end();
}

void print(const Workload& workload, BenchMeasured& measured) {
  const char* name = workload.name.c_str();
  if (measured.pods == 0 && measured.objects > 0) {
    std::printf("%s: %.0f objects/s (%zu in %.2f s; %.0f MB)\n", name,
                static_cast<double>(measured.objects) / measured.seconds, measured.objects,
                measured.seconds, measured.megabytes);
    return;
  }
  auto& bound = measured.bound_seconds;
  auto& attempts = measured.attempt_seconds;
  std::printf(
      "%s: %.0f pods/s; create to bound p50 %.1f p90 %.1f p99 %.1f ms; attempt p50 %.0f p90 %.0f "
      "p99 %.0f us (%zu pods, %zu attempts in %.2f s; %.0f us of processor each; %.0f MB)\n",
      name, measured.seconds > 0 ? static_cast<double>(measured.pods) / measured.seconds : 0.0,
      percentile(bound, 0.5) * 1e3, percentile(bound, 0.9) * 1e3, percentile(bound, 0.99) * 1e3,
      percentile(attempts, 0.5) * 1e6, percentile(attempts, 0.9) * 1e6,
      percentile(attempts, 0.99) * 1e6, measured.pods, attempts.size(), measured.seconds,
      measured.processor_seconds * 1e6 / std::max(1.0, static_cast<double>(measured.pods)),
      measured.megabytes);
}

}  // namespace

double percentile(std::vector<double>& values, double part) {
  if (values.empty()) return 0;
  const auto place = static_cast<std::ptrdiff_t>(
      std::min(static_cast<double>(values.size() - 1), part * static_cast<double>(values.size())));
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<std::size_t>(place)];
}

int bench_scheduler(const BenchSchedulerFlags& flags) {
  begin_process(flags.log_level);
  int status = 0;
  std::size_t found = 0;
  for (const std::string& file : flags.files) {
    const auto text = runtime::system_files().read(file);
    auto workloads =
        text.ok() ? read_workloads(*text) : Result<std::vector<Workload>>(text.error());
    if (!workloads.ok()) {
      return exit_status("bench scheduler-perf", workloads.error().within(file)) == 0 ? 0 : 2;
    }
    const auto slash = file.rfind('/');
    BenchRunOptions options;
    options.folder = slash == std::string::npos ? "." : file.substr(0, slash);
    options.release = flags.release;
    options.store = flags.store;
    options.all_controllers = flags.all_controllers;
    for (const Workload& workload : *workloads) {
      if (!wanted(workload, flags)) continue;
      ++found;
      if (flags.list) {
        std::printf("%s [%s]\n", workload.name.c_str(), join(workload.labels, ", ").c_str());
        continue;
      }
      auto measured = run_workload(workload, options);
      if (measured.ok()) {
        print(workload, *measured);
      } else if (measured.error().code() == Code::not_found) {
        std::printf("%s: skipped: %s\n", workload.name.c_str(), measured.error().message().c_str());
      } else {
        std::printf("%s: failed: %s\n", workload.name.c_str(), measured.error().message().c_str());
        status = 1;
      }
      std::fflush(stdout);
    }
  }
  if (found == 0) {
    std::fprintf(stderr, "dibs bench scheduler-perf: no workload is named like %s\n",
                 quoted(flags.workload).c_str());
    return 2;
  }
  return status;
}

}  // namespace dibs::cli
