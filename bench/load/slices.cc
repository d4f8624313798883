#include "load/slices.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/strings.h"
#include "load/connection.h"
#include "load/load.h"
#include "load/objects.h"
#include "load/process.h"

namespace dibs::bench {
namespace {

constexpr std::string_view kPath = "/apis/resource.k8s.io/v1/resourceslices";
constexpr int kRounds = 3;

/// What the example driver publishes for a node of so many devices.
std::string slice(std::string_view node, int devices, std::string_view model) {
  std::string out =
      cat(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":")", node,
          R"(-gpu.example.com"},"spec":{"driver":"gpu.example.com","nodeName":")", node,
          R"(","pool":{"name":")", node, R"(","generation":1,"resourceSliceCount":1},"devices":[)");
  for (int i = 0; i < devices; ++i) {
    append(out, i > 0 ? "," : "", R"({"name":"gpu-)", i, R"(","attributes":{"index":{"int":)", i,
           R"(},"model":{"string":")", model,
           R"("},"uuid":{"string":"gpu-9df4af2f-59a7-4bf1-83a4-32180f07)", 1000 + i,
           R"("},"driverVersion":{"version":"1.0.0"}},"capacity":{"memory":{"value":"80Gi"},)",
           R"("compute":{"value":"100"}}})");
  }
  out.append("]}}");
  return out;
}

Work publishing(const SliceSettings& settings) {
  Work work;
  work.request = make_request("POST", kPath, slice(cat("node-", kNumber), settings.devices, "m0"));
  work.number_at = work.request.find(kNumber);
  for (auto at = work.request.find(kNumber, work.number_at + 1); at != std::string::npos;
       at = work.request.find(kNumber, at + 1)) {
    work.also_at.push_back(at);
  }
  work.count = settings.slices;
  work.expected_status = 201;
  return work;
}

/// The revision of now, for a watch that begins with what comes next.
std::string revision(Connection& connection) {
  connection.exchange(make_request("GET", cat(kPath, "?limit=1")));
  const std::string& body = connection.body();
  constexpr std::string_view kVersion = "\"resourceVersion\":\"";
  const auto at = body.find(kVersion);
  if (connection.status() != 200 || at == std::string::npos) die("a list has no resourceVersion");
  const auto begin = at + kVersion.size();
  return body.substr(begin, body.find('"', begin) - begin);
}

/// Sorted milliseconds from sending an update of one slice to its event at a watcher.
std::vector<double> update_times(const SliceSettings& settings, const TlsSettings& tls,
                                 std::string_view version) {
  constexpr int kWarm = 20;
  constexpr int kTimes = 300;
  Connection writer(tls);
  writer.keep_body();
  Watchers watcher(tls, 1,
                   cat("/apis/resource.k8s.io/", version,
                       "/resourceslices?watch=1&resourceVersion=", revision(writer)));
  const std::string node = cat("node-", kNumber);
  // Another model each time: an update that changes nothing is not an event.
  std::string request = make_request("PUT", cat(kPath, "/", node, "-gpu.example.com"),
                                     slice(node, settings.devices, cat("m", kNumber)));
  std::vector<std::size_t> marks;
  const std::string mark = cat("m", kNumber);
  for (auto at = request.find(mark); at != std::string::npos; at = request.find(mark, at + 1)) {
    marks.push_back(at + 1);
  }
  std::vector<double> times;
  for (std::uint64_t i = 0; i < kWarm + kTimes; ++i) {
    for (const std::size_t at : marks) write_number(request, at, i + 1);
    const double took = watcher.fan_out(writer, request);
    if (i >= kWarm) times.push_back(took);
  }
  std::sort(times.begin(), times.end());
  return times;
}

}  // namespace

void measure_slices(const SliceSettings& settings, const Baseline& baseline, Report& report) {
  const Work work = publishing(settings);
  Outcome best;
  double cpu = 0;
  std::optional<Folder> folder;
  std::optional<ServerProcess> server;
  for (int round = 0; round < kRounds; ++round) {
    server.reset();
    folder.emplace();
    server.emplace(settings.binary, folder->path(), "sqlite");
    const TlsSettings tls(read_kubeconfig(server->kubeconfig()));
    Load load(tls, settings.connections, settings.threads);
    const double before = server->cpu_seconds();
    const Outcome outcome = load.run(work);
    if (round > 0 && outcome.seconds >= best.seconds) continue;
    best = outcome;
    cpu = server->cpu_seconds() - before;
  }
  const auto count = static_cast<double>(settings.slices);
  report.add({cat("publishing ", settings.slices, " slices of ", settings.devices, " devices"),
              best.seconds, "s", best.rate() / baseline.syncs, "fdatasync, as a rate",
              cat(settings.connections, " conn., ", round_text(best.rate(), 0), " /s, p50 ",
                  round_text(best.middle_ms, 2), " ms, p99 ", round_text(best.late_ms, 2),
                  " ms, server cpu ", round_text(cpu / count * 1e6, 0), " us each")});

  const TlsSettings tls(read_kubeconfig(server->kubeconfig()));
  for (const std::string_view version : {"v1", "v1beta1"}) {
    const std::vector<double> times = update_times(settings, tls, version);
    const double middle = times[times.size() / 2];
    report.add({cat("slice update to a ", version, " watcher"), middle, "ms",
                middle * baseline.echoes / 1000, "TLS echo",
                cat("p99 ", round_text(times[times.size() * 99 / 100], 2), " ms, ", settings.slices,
                    " slices stored")});
  }
}

}  // namespace dibs::bench
