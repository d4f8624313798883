#include "bench/scheduler.h"

#include <algorithm>
#include <cstdio>

#include "base/strings.h"
#include "bench/run.h"
#include "bench/workload.h"
#include "runtime/files.h"

namespace dibs::bench {
namespace {

bool wanted(const Workload& workload, const SchedulerOptions& flags) {
  if (workload.name.find(flags.workload) == std::string::npos) return false;
  // A whole name means that one, not those that it begins.
  if (flags.workload.find('/') != std::string::npos && !workload.name.ends_with(flags.workload)) {
    return false;
  }
  return flags.label.empty() || std::find(workload.labels.begin(), workload.labels.end(),
                                          flags.label) != workload.labels.end();
}

std::string text_of(const Workload& workload, BenchMeasured& measured) {
  char text[512];
  if (measured.pods == 0 && measured.objects > 0) {
    std::snprintf(text, sizeof text, "%.0f objects/s (%zu in %.2f s; %.0f MB)",
                  static_cast<double>(measured.objects) / measured.seconds, measured.objects,
                  measured.seconds, measured.megabytes);
    return cat(workload.name, ": ", text);
  }
  auto& bound = measured.bound_seconds;
  auto& attempts = measured.attempt_seconds;
  std::snprintf(
      text, sizeof text,
      "%.0f pods/s; create to bound p50 %.1f p90 %.1f p99 %.1f ms; attempt p50 %.0f p90 %.0f "
      "p99 %.0f us (%zu pods, %zu attempts in %.2f s; %.0f us of processor each; %.0f MB)",
      measured.seconds > 0 ? static_cast<double>(measured.pods) / measured.seconds : 0.0,
      percentile(bound, 0.5) * 1e3, percentile(bound, 0.9) * 1e3, percentile(bound, 0.99) * 1e3,
      percentile(attempts, 0.5) * 1e6, percentile(attempts, 0.9) * 1e6,
      percentile(attempts, 0.99) * 1e6, measured.pods, attempts.size(), measured.seconds,
      measured.processor_seconds * 1e6 / std::max(1.0, static_cast<double>(measured.pods)),
      measured.megabytes);
  return cat(workload.name, ": ", text);
}

}  // namespace

double percentile(std::vector<double>& values, double part) {
  if (values.empty()) return 0;
  const auto place = static_cast<std::ptrdiff_t>(
      std::min(static_cast<double>(values.size() - 1), part * static_cast<double>(values.size())));
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<std::size_t>(place)];
}

Outcome bench_scheduler(const SchedulerOptions& flags,
                        const std::function<void(const std::string& line)>& print) {
  Outcome made;
  const auto refuse = [&](std::string_view why) {
    made.status = 2;
    made.errors = cat("dibs bench scheduler-perf: ", why, "\n");
    return made;
  };
  if (!flags.kubeconfig.empty() &&
      (flags.store != "sqlite" || !flags.etcd_endpoints.empty() || flags.all_controllers)) {
    return refuse("--kubeconfig is of a cluster with a store and controllers of its own");
  }
  std::size_t found = 0;
  for (const std::string& file : flags.files) {
    const auto text = runtime::system_files().read(file);
    auto workloads =
        text.ok() ? read_workloads(*text) : Result<std::vector<Workload>>(text.error());
    if (!workloads.ok()) return refuse(workloads.error().within(file).message());
    const auto count = std::count_if(workloads->begin(), workloads->end(),
                                     [&](const Workload& one) { return wanted(one, flags); });
    if (!flags.kubeconfig.empty() && !flags.list && (count > 1 || flags.files.size() > 1)) {
      return refuse("--kubeconfig takes one workload, which fills the cluster: see --workload");
    }
    const auto slash = file.rfind('/');
    BenchRunOptions options;
    options.folder = slash == std::string::npos ? "." : file.substr(0, slash);
    options.release = flags.release;
    options.store = flags.store;
    options.etcd_endpoints = flags.etcd_endpoints;
    options.all_controllers = flags.all_controllers;
    options.kubeconfig = flags.kubeconfig;
    for (const Workload& workload : *workloads) {
      if (!wanted(workload, flags)) continue;
      ++found;
      if (flags.list) {
        print(cat(workload.name, " [", join(workload.labels, ", "), "]"));
        continue;
      }
      auto measured = run_workload(workload, options);
      if (measured.ok()) {
        print(text_of(workload, *measured));
      } else if (measured.error().code() == Code::not_found) {
        print(cat(workload.name, ": skipped: ", measured.error().message()));
      } else {
        print(cat(workload.name, ": failed: ", measured.error().message()));
        made.status = 1;
      }
    }
  }
  if (found == 0) return refuse(cat("no workload is named like ", quoted(flags.workload)));
  return made;
}

}  // namespace dibs::bench
