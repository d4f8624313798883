#include "cli/bench_cluster.h"

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/strings.h"
#include "controllers/controllers.h"
#include "runtime/real_runtime.h"
#include "scheduler/scheduler.h"
#include "server/api_server.h"
#include "store/compactor.h"
#include "store/memory_store.h"
#include "store/sqlite_store.h"

namespace dibs::cli {
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

}  // namespace

struct BenchCluster::Parts {
  std::string folder;
  alloc::Features features;
  std::unique_ptr<runtime::RealRuntime> runtime;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<store::Compactor> compactor;
  std::unique_ptr<server::ApiServer> server;
  std::unique_ptr<client::Transport> transport;
  std::unique_ptr<client::Client> client;
  std::unique_ptr<client::Transport> parts_transport;
  std::unique_ptr<client::Client> parts_client;
  std::unique_ptr<controllers::Controllers> controllers;
  std::unique_ptr<scheduler::Scheduler> scheduler;

  Result<> open(const BenchClusterOptions& options);
};

Result<> BenchCluster::Parts::open(const BenchClusterOptions& options) {
  DIBS_TRY(folder, make_folder());
  runtime = std::make_unique<runtime::RealRuntime>();
  if (options.memory_store) {
    store = store::make_memory_store({});
  } else {
    store::SqliteOptions sqlite;
    sqlite.path = folder + "/store.db";
    sqlite.first_revision = 1000;
    DIBS_TRY(store, store::open_sqlite_store(sqlite));
  }
  compactor = std::make_unique<store::Compactor>(*store, runtime->runtime().timers);
  server::Options served;
  served.release = options.release;
  served.feature_gates = options.feature_gates;
  // As upstream's benchmark: nobody makes service accounts here, or finds nodes ready.
  served.disabled_plugins = {"ServiceAccount"};
  DIBS_TRY(server, server::ApiServer::open(runtime->runtime(), *store, served));
  client::InProcessOptions direct;
  direct.trees = server->trees();
  transport = client::make_in_process_transport(server->handler(), runtime->runtime(), direct);
  client = std::make_unique<client::Client>(*transport);
  client::InProcessOptions in_process;
  in_process.trees = server->trees();
  in_process.identity = {"system:kube-scheduler", {"system:masters"}};
  parts_transport =
      client::make_in_process_transport(server->handler(), runtime->runtime(), in_process);
  parts_client = std::make_unique<client::Client>(*parts_transport);
  controllers::ControllersOptions controlled;
  controlled.claims_only = !options.all_controllers;
  controlled.node_monitor_grace_period = std::chrono::hours(24);
  controllers =
      std::make_unique<controllers::Controllers>(*parts_client, runtime->runtime(), controlled);
  controllers->start();
  DIBS_TRY(const api::Features gates,
           api::Features::parse(served.answers_as(), options.feature_gates));
  features = alloc::Features::from_gates(gates);
  scheduler::Options scheduling;
  scheduling.configuration = options.configuration;
  scheduling.features = features;
  scheduling.metrics = &server->metrics();
  scheduling.attempt = options.attempt;
  scheduler = std::make_unique<scheduler::Scheduler>(*parts_client, runtime->runtime(), scheduling);
  scheduler->start();
  const auto deadline = std::chrono::steady_clock::now() + kReadyDeadline;
  while (!scheduler->ready() || !controllers->ready()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return Error::timeout("the cluster does not become ready");
    }
    std::this_thread::sleep_for(kReadyPoll);
  }
  return success();
}

BenchCluster::BenchCluster() : parts_(std::make_unique<Parts>()) {}

BenchCluster::~BenchCluster() {
  Parts& p = *parts_;
  if (p.scheduler) p.scheduler->stop();
  if (p.controllers) p.controllers->stop();
  if (p.server) p.server->close();
  p.controllers.reset();
  p.scheduler.reset();
  p.compactor.reset();
  if (p.store) p.store->close();  // calls back for every write that nobody waits for
  p.runtime.reset();              // finishes what was posted
  p.parts_client.reset();
  p.parts_transport.reset();
  p.client.reset();
  p.transport.reset();
  p.server.reset();
  p.store.reset();
  std::error_code ignored;
  if (!p.folder.empty()) std::filesystem::remove_all(p.folder, ignored);
}

Result<std::unique_ptr<BenchCluster>> BenchCluster::start(const BenchClusterOptions& options) {
  auto made = std::unique_ptr<BenchCluster>(new BenchCluster());
  DIBS_CHECK(made->parts_->open(options));
  return made;
}

client::Client& BenchCluster::client() { return *parts_->client; }
runtime::Runtime& BenchCluster::runtime() { return parts_->runtime->runtime(); }
const alloc::Features& BenchCluster::features() const { return parts_->features; }

void BenchCluster::settle() {
  constexpr auto kMoment = std::chrono::milliseconds(20);
  constexpr int kMoments = 3;
  constexpr double kIdle = 0.002;  // processor seconds in a moment
  constexpr int kMost = 1500;
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

}  // namespace dibs::cli
