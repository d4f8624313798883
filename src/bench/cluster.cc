#include "bench/cluster.h"

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/strings.h"
#include "client/https_transport.h"
#include "controllers/controllers.h"
#include "runtime/files.h"
#include "runtime/real_runtime.h"
#include "server/etcd_form.h"
#include "store/stores.h"

namespace dibs::bench {
namespace {

constexpr auto kReadyPoll = std::chrono::milliseconds(2);
constexpr auto kReadyDeadline = std::chrono::seconds(30);

Result<std::string> make_folder() {
  const char* named = std::getenv("DIBS_BENCH_DIR");
  std::string pattern =
      cat(named != nullptr && *named != '\0' ? named : "/var/tmp", "/dibs-bench-XXXXXX");
  if (mkdtemp(pattern.data()) == nullptr) {
    return Error::internal(cat("no temporary folder can be made: ", pattern));
  }
  return pattern;
}

Result<> wait_until(const std::function<bool()>& ready) {
  const auto deadline = std::chrono::steady_clock::now() + kReadyDeadline;
  while (!ready()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return Error::timeout("the cluster does not become ready");
    }
    std::this_thread::sleep_for(kReadyPoll);
  }
  return success();
}

}  // namespace

/// Freed from the last to the first.
struct BenchCluster::Running {
  runtime::RealRuntime runtime;
  std::unique_ptr<client::Transport> transport;
  std::unique_ptr<client::Client> client;
  alloc::Features features;
  std::unique_ptr<controllers::Controllers> controllers;

  ~Running() {
    if (controllers) controllers->stop();
    controllers.reset();
    runtime.stop();
  }
};

BenchCluster::BenchCluster() = default;

BenchCluster::~BenchCluster() {
  cluster_.reset();
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

Result<std::unique_ptr<BenchCluster>> BenchCluster::start(const BenchClusterOptions& options) {
  auto made = std::unique_ptr<BenchCluster>(new BenchCluster());
  DIBS_CHECK(options.kubeconfig.empty() ? made->open(options) : made->reach(options));
  return made;
}

client::Client& BenchCluster::client() { return running_ ? *running_->client : cluster_->client(); }

runtime::Runtime& BenchCluster::runtime() {
  return running_ ? running_->runtime.runtime() : cluster_->runtime();
}

const alloc::Features& BenchCluster::features() const {
  return running_ ? running_->features : cluster_->features();
}

Result<> BenchCluster::reach(const BenchClusterOptions& options) {
  runtime::Files& files = runtime::system_files();
  DIBS_TRY(const auto config, client::Kubeconfig::load(files, {options.kubeconfig}));
  DIBS_TRY(const client::Access access, config.resolve(files));
  running_ = std::make_unique<Running>();
  runtime::Runtime& runtime = running_->runtime.runtime();
  DIBS_TRY(running_->transport, client::make_https_transport(access, files, runtime));
  running_->client = std::make_unique<client::Client>(*running_->transport);
  client::ListOptions one;
  one.limit = 1;
  DIBS_TRY(const client::List nodes, client().list_page({"", "v1", "nodes"}, "", one));
  if (!nodes.items.empty()) {
    return Error::bad_request(
        cat("the cluster at ", access.server, " has nodes, and the workload wants an empty one"));
  }
  DIBS_TRY(
      const api::Features gates,
      api::Features::parse(options.release.empty() ? api::known_releases().back() : options.release,
                           options.feature_gates));
  running_->features = alloc::Features::from_gates(gates);
  controllers::ControllersOptions claims;
  claims.only = {"resource-claim-controller"};
  running_->controllers = std::make_unique<controllers::Controllers>(client(), runtime, claims);
  running_->controllers->start();
  return wait_until([this] { return running_->controllers->ready(); });
}

Result<> BenchCluster::open(const BenchClusterOptions& options) {
  DIBS_TRY(folder_, make_folder());
  cluster::Options parts;
  parts.server.release = options.release;
  parts.server.feature_gates = options.feature_gates;
  store::StoreOptions place{.folder = folder_};
  place.etcd.endpoints = options.etcd_endpoints;
  if (options.store == "etcd") {
    // Each cluster has keys of its own, as it has a folder.
    place.etcd.prefix = folder_.substr(folder_.rfind('/'));
    DIBS_TRY(place.at_rest, server::make_etcd_form(parts.server, nullptr));
  }
  if (options.store != "etcd" && !options.etcd_endpoints.empty()) {
    return Error::bad_request(
        cat("--etcd-endpoints needs --store etcd, and it is ", options.store));
  }
  DIBS_TRY(auto store, store::open_store(options.store, place));
  // As upstream's benchmark: nobody makes service accounts here, or finds nodes ready.
  parts.server.disabled_plugins = {"ServiceAccount"};
  auto& controllers = parts.controllers.emplace();
  if (!options.all_controllers) controllers.only = {"resource-claim-controller"};
  controllers.node_monitor_grace_period = std::chrono::hours(24);
  auto& scheduler = parts.scheduler.emplace();
  scheduler.configuration = options.configuration;
  scheduler.attempt = options.attempt;
  DIBS_TRY(cluster_,
           cluster::Cluster::start(cluster::real_world(), std::move(store), std::move(parts)));
  return wait_until([this] { return cluster_->ready(); });
}

void BenchCluster::settle() {
  constexpr auto kMoment = std::chrono::milliseconds(20);
  constexpr int kMoments = 3;
  constexpr double kIdle = 0.002;  // processor seconds in a moment
  constexpr int kMost = 1500;
  if (running_) std::this_thread::sleep_for(std::chrono::seconds(1));
  int quiet = 0;
  for (int i = 0; i < kMost && quiet < kMoments; ++i) {
    const double before = processor_seconds();
    std::this_thread::sleep_for(kMoment);
    quiet = processor_seconds() - before < kIdle ? quiet + 1 : 0;
  }
}

double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

double resident_megabytes() {
  long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    long total = 0;
    if (std::fscanf(file, "%ld %ld", &total, &pages) != 2) pages = 0;
    std::fclose(file);
  }
  return static_cast<double>(pages) * 4096 / 1e6;
}

}  // namespace dibs::bench
