#pragma once
// Changes GPUs for claims, and back: MIG mode and instances, time slices, MPS daemons.
//
// Every step stands in the ledger before it is taken, so that it may end anywhere:
//
//   prepare    take back what an unfinished prepare left; write what is to be made; switch MIG
//   mode;
//              make the instances, one by one; set how they are shared; write that it is ready
//   unprepare  stop daemons, reset time slices, destroy instances; forget the claim; put MIG mode
//   back
//
// Where the ledger cannot be written nothing more is done to a GPU, as if the process had died
// there. An instance is destroyed only if it is the one that was made: of that profile, at that
// place, with the number and the uuid that it had, or, where nobody lived to note these, at the
// place that was free when the ledger said that it would be made. MIG mode is put back when nothing
// of ours is on the GPU; that it cannot be keeps nobody from going on.
//
// One call at a time: whoever calls has a Turn.

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "drivers/nvidia/config.h"
#include "drivers/nvidia/inventory.h"
#include "drivers/nvidia/ledger.h"
#include "drivers/nvidia/parts.h"
#include "drivers/nvidia/sharing.h"
#include "runtime/runtime.h"

namespace dibs::drivers::nvidia {

/// Devices of a claim that share one configuration.
struct OrderGroup {
  DeviceConfig config = {};
  std::vector<std::size_t> parts = {};  // in Order::parts
};

/// What a claim is to have for itself.
struct Order {
  driver::ClaimName id = {};
  std::vector<Part> parts = {};
  std::vector<OrderGroup> groups = {};
};

class Workshop {
 public:
  struct Parts {
    nvml::Library& library;
    runtime::Files& files;  // of the ledger
    runtime::Clock& clock;
    std::string ledger_path = {};
    TimeSlices slices;
    MpsDaemons daemons;
    /// Whether MIG mode and instances are this driver's to change.
    MigMode mig = MigMode::dynamic;
    /// What of ours has GPUs open beside the calls that are made here: lets go of it before a MIG
    /// mode is switched, as it may be in the way, and takes it up again after, as a watch that was
    /// begun in another mode is not to be relied on.
    std::function<void()> let_go = {};
    std::function<void()> take_up = {};
  };
  explicit Workshop(Parts parts);

  /// Nobody else has one while it lives.
  class Turn {
   public:
    /// Waits.
    explicit Turn(Workshop& workshop);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    friend class Workshop;
    struct Adopted {};
    Turn(Workshop& workshop, Adopted) : workshop_(workshop) {}
    Workshop& workshop_;
  };
  /// Null where somebody else has it.
  std::unique_ptr<Turn> try_turn();

  /// Takes back what a process that died was preparing, and instances of GPUs that were lost.
  Result<> recover();
  /// What the claim has now. What it had before is kept if it is still there, and made anew if not.
  Result<LedgerClaim> prepare(const Order& order);
  /// Success too for a claim that has nothing. Tells the devices that are free now, by name.
  Result<std::vector<std::string>> unprepare(const driver::ClaimName& claim);

  /// The ledger as it is.
  Result<Ledger> ledger();
  /// GPU instances on it that the ledger names.
  static std::set<unsigned> own_instances(const Ledger& ledger, const Gpu& gpu);
  /// MIG modes as they were before the driver switched them, of GPUs that no claim has. Somebody
  /// had such a GPU open when its last claim went. Errors: the first one's.
  Result<> put_back_modes();
  /// Of prepared claims.
  Result<std::vector<LedgerDaemon>> mps_daemons();
  /// Starts these MPS daemons, where their claims are still prepared. Errors: the first one's.
  Result<> start_daemons(const std::vector<LedgerDaemon>& ended);

 private:
  std::int64_t milliseconds_since(Duration begun) const;
  Result<> write(const Ledger& ledger);
  Result<> take_back_unfinished(Ledger& ledger);
  Result<> take_back(Ledger& ledger, const std::string& uid);
  Result<> destroy(const LedgerInstance& instance);
  Result<> destroy_orphans(Ledger& ledger);
  Result<bool> is_intact(const LedgerClaim& claim, const Order& order);
  Result<> check_free(const Ledger& ledger, const Order& order);
  Result<LedgerClaim> intent(const Order& order);
  Result<> make(Ledger& ledger, const Order& order);
  Result<> share(Ledger& ledger, const Order& order);
  Result<> switch_mode(Ledger& ledger, const Part& part);
  Result<> set_mode(const std::string& gpu, bool enabled);
  Result<> restore_modes(Ledger& ledger);
  void try_to_restore_modes(Ledger& ledger);

  Parts parts_;
  std::string driver_version_;  // of this call
  bool disk_failed_ = false;    // in this call

  Mutex mutex_;
  CondVar free_;
  bool taken_ DIBS_GUARDED_BY(mutex_) = false;
};

}  // namespace dibs::drivers::nvidia
