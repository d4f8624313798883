#pragma once
// The driver as the SDK sees it: devices, health, and what claims get.
//
// What GPUs do by themselves is looked at from time to time on a task of the executor (look()):
// every second for errors that NVML tells, which costs a call that does not wait, and every ten
// seconds for GPUs that went or came, instances of others, rows of memory, MPS daemons. It asks
// instead of waiting in NVML so that it ends when it is told to, and keeps no thread. While a claim
// is prepared or unprepared it waits for its turn; NVML keeps errors for it.

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "client/work_queue.h"
#include "driver/driver.h"
#include "driver/plugin.h"
#include "drivers/nvidia/cdi_edits.h"
#include "drivers/nvidia/health.h"
#include "drivers/nvidia/known_gpus.h"
#include "drivers/nvidia/nvml/library.h"
#include "drivers/nvidia/workshop.h"
#include "runtime/runtime.h"

namespace dibs::drivers::nvidia {

struct HandlerOptions {
  std::string node_name = {};
  MigMode mig = MigMode::dynamic;
  Roots roots = {};
  std::string sysfs_root = "/sys";
  EditsOptions edits = {};
  std::set<std::uint64_t> harmless_xids = {};
  /// The driver's folder: ledger, daemons.
  std::string data_dir = {};
  /// Where the plugin writes the file of a claim.
  std::string cdi_dir = {};
  std::string cdi_class = {};
  /// Another instance may be preparing a claim when this one starts.
  bool may_have_predecessor = false;
  Duration usage_every = std::chrono::seconds(30);  // 0: never
  RunProgram run = {};
};

class ClaimsHandler : public driver::Driver {
 public:
  /// `files` has the driver's own folder and the CDI files, `machine` is where GPUs and their
  /// driver are. All must outlive it.
  ClaimsHandler(std::unique_ptr<nvml::Library> library, runtime::Files& files,
                runtime::Files& machine, runtime::Runtime& runtime, HandlerOptions options);
  ~ClaimsHandler() override;

  /// Before the plugin starts. Errors: NVML's, the disk's.
  Result<> begin();

  void started(driver::Plugin& plugin) override;
  void stopping() override;
  Result<std::vector<driver::Pool>> devices() override;
  Result<std::vector<driver::PreparedDevice>> prepare(const driver::Claim& claim) override;
  Result<> unprepare(const driver::ClaimName& claim) override;
  bool reports_health() const override { return true; }
  std::vector<driver::DeviceHealth> health() override;

 private:
  struct Chosen {
    driver::AllocatedDevice device = {};
    KnownGpus::Found found = {};
  };

  client::WorkOutcome look();
  // Each tells whether what is published changed.
  bool take_events();
  bool watch_events();
  void give_up_events();
  void load_uvm();
  /// MPS daemons as they were found, one after the other.
  struct DaemonsSeen {
    std::vector<LedgerDaemon> ended = {};
    Result<> trouble = success();  // of one of the others
  };
  DaemonsSeen see_daemons();
  bool take_stock(const DaemonsSeen& daemons);
  bool look_at_rows();
  bool measure();
  Result<bool> count_gpus();
  void tell_unread(const std::vector<nvml::UnreadGpu>& gpus);
  void tell();

  Result<std::vector<Chosen>> choose(const driver::Claim& claim, Order& order);
  Result<std::vector<driver::PreparedDevice>> answer(const std::vector<Chosen>& chosen,
                                                     const LedgerClaim& made,
                                                     const cdi::ContainerEdits& common);
  Result<MigIds> instance_of(const Chosen& chosen, const LedgerClaim& made);
  Result<> check_cdi_file(const std::string& claim_uid,
                          const std::vector<driver::PreparedDevice>& devices);

  const HandlerOptions options_;
  std::unique_ptr<nvml::Library> library_;
  runtime::Files& files_;
  runtime::Files& machine_;
  runtime::Runtime& runtime_;
  Health health_;
  KnownGpus gpus_;
  CdiEdits edits_;
  MpsDaemons daemons_;
  Workshop workshop_;

  // Of whoever has the workshop's turn.
  std::unique_ptr<nvml::EventSet> events_;
  std::vector<std::string> watched_;
  bool untold_ = false;              // something changed that is not published
  std::vector<std::string> unread_;  // last told

  // Of look() alone, which runs once at a time.
  unsigned looks_ = 0;
  Duration measured_{0};
  std::string trouble_;  // last told

  /// Something is not as it was known: the next look counts the GPUs.
  std::atomic<bool> stock_is_due_ = true;

  Mutex mutex_;
  driver::Plugin* plugin_ DIBS_GUARDED_BY(mutex_) = nullptr;
  json::Value usage_ DIBS_GUARDED_BY(mutex_) = json::Value::object();

  client::WorkQueue queue_;  // last: its end stops look()
};

}  // namespace dibs::drivers::nvidia
