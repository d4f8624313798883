// UniqueDevices: no write puts a device into two live allocations, whoever writes it.
//
// Allocators look before they write, but two of them, or one with an old view, may choose the same
// device; the same goes for the named resources of the classic model. This is the last word: the
// devices of an allocation are held from the judgement of the write to its end, and from then on by
// the stored claim. Shares of a device that is published as shareable may be many, as long as what
// they consume fits, and so may devices that are made of the same counters; access for
// administration takes nothing. The index is made from the store, so a restart begins with what is
// stored.
//
// Where other servers write to the store as well, each device and counter set of the allocation has
// its fence in the write (fences.h). What is published of a device has none: a slice may change a
// moment after the claim anyway. But the judge must not know less of it than the request, so where
// it matters (the device is unknown, shared, or made of counters) he looks when that is sure.
#include <optional>

#include "base/mutex.h"
#include "base/strings.h"
#include "server/fences.h"
#include "server/plugins/device_index.h"
#include "server/plugins/plugins.h"
#include "server/plugins/store_follower.h"
#include "server/status.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

constexpr std::string_view kGroup = "resource.k8s.io";

class UniqueDevices : public AdmissionPlugin {
 public:
  explicit UniqueDevices(PluginSources sources)
      : sources_(sources), fences_(sources.store, "devices") {}
  std::string_view name() const override { return "UniqueDevices"; }

  Result<TicketPtr> allocate(Write& write) override {
    if (!write.is(kGroup, "resourceclaims") || write.object.is_null()) return TicketPtr();
    std::vector<DeviceHold> holds = holds_of(write.object);
    // What a claim keeps it has had since it was judged.
    if (holds.empty() || write.object["status"]["allocation"] == write.old["status"]["allocation"])
      return TicketPtr();
    std::string key = cat(write.name_space, "/", write.name);
    MutexLock lock(mutex_);
    do {
      const store::Revision seen = fences_.before_judging();
      catch_up();
      DIBS_CHECK(check(write, key, holds));
      if (fences_.guard(write, things_of(holds), seen)) break;
    } while (true);
    return std::make_unique<Hold>(*this, index_.reserve(key, holds));
  }

 private:
  /// Devices on their way into a claim. Once that is stored, catch_up() finds them there.
  class Hold : public Ticket {
   public:
    Hold(UniqueDevices& owner, DeviceIndex::Reservation reservation)
        : owner_(owner), reservation_(reservation) {}
    ~Hold() override {
      MutexLock lock(owner_.mutex_);
      owner_.index_.release(reservation_);
    }

   private:
    UniqueDevices& owner_;
    DeviceIndex::Reservation reservation_;
  };

  Result<> check(const Write& write, const std::string& key,
                 const std::vector<DeviceHold>& holds) const DIBS_REQUIRES(mutex_) {
    if (fences_.are_needed() && !write.context.fresh && index_.depends_on_slices(holds)) {
      return Error::unavailable("what is published of the devices may have changed");
    }
    auto conflict = index_.conflict(key, holds);
    if (!conflict) return success();
    return forbidden_error(
        kGroup, write.resource.plural, write.name,
        cat(conflict->device.find(' ') == std::string::npos ? "device " : "", conflict->device,
            " cannot be allocated to claim ", key, ": ", conflict->why));
  }

  std::vector<std::string> things_of(const std::vector<DeviceHold>& holds) const
      DIBS_REQUIRES(mutex_) {
    if (!fences_.are_needed()) return {};
    std::vector<std::string> things = index_.counter_sets_of(holds);
    for (const DeviceHold& one : holds) things.push_back(one.device);
    return things;
  }

  void catch_up() DIBS_REQUIRES(mutex_) {
    follow("resourceclaims", claims_);
    follow("resourceslices", slices_);
    if (claims_) {
      claims_->catch_up([this]() DIBS_REQUIRES(mutex_) { index_.clear_claims(); },
                        [this](const std::string& key, const store::Record* now)
                            DIBS_REQUIRES(mutex_) { take(key, now, true); });
    }
    if (slices_) {
      slices_->catch_up([this]() DIBS_REQUIRES(mutex_) { index_.clear_slices(); },
                        [this](const std::string& key, const store::Record* now)
                            DIBS_REQUIRES(mutex_) { take(key, now, false); });
    }
  }

  void follow(std::string_view plural, std::optional<StoreFollower>& follower)
      DIBS_REQUIRES(mutex_) {
    if (follower) return;
    auto resource = sources_.resources.get()->find_plural(kGroup, plural);
    if (resource) follower.emplace(sources_.store, resource->storage_prefix);
  }

  void take(const std::string& key, const store::Record* now, bool claim) DIBS_REQUIRES(mutex_) {
    if (now == nullptr) {
      claim ? index_.remove_claim(key) : index_.remove_slice(key);
      return;
    }
    auto object = decode_stored(*now);
    if (!object.ok()) return;
    claim ? index_.put_claim(key, *object) : index_.put_slice(key, *object);
  }

  PluginSources sources_;
  const Fences fences_;
  Mutex mutex_;
  DeviceIndex index_ DIBS_GUARDED_BY(mutex_);
  std::optional<StoreFollower> claims_ DIBS_GUARDED_BY(mutex_);
  std::optional<StoreFollower> slices_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace

PluginPtr make_unique_devices(PluginSources sources) {
  return std::make_unique<UniqueDevices>(sources);
}

}  // namespace dibs::server
