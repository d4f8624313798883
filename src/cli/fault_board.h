#pragma once
// Which devices of a cluster can have faults (driver/faults.h), which have some, and which of these
// their drivers have taken: put together from nodes and slices.

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "client/client.h"
#include "driver/faults.h"
#include "json/value.h"

namespace dibs::cli {

/// What a driver has to do with faults on one node.
struct BoardDriver {
  std::string node;
  std::string name;
  bool takes = false;     // it takes faults
  std::string text;       // what the node says
  bool taken = false;     // the driver has taken just that
  std::string trouble;    // why the text cannot be read
  driver::Faults faults;  // by pool and device
};

struct BoardDevice {
  std::string node;
  std::string driver;
  std::string pool;
  std::string name;
  bool published = false;  // a slice has it

  std::string key() const { return driver::fault_key(pool, name); }
  /// "node-1/gpu-0 (gpu.example.com)".
  std::string text() const;
  /// "node-1/gpu.example.com/node-1/gpu-0".
  std::string address() const;
};

class FaultBoard {
 public:
  /// Of these nodes; of all where none is named. Errors: not_found for a node, with the nearest
  /// name; else the server's.
  static Result<FaultBoard> read(client::Client& client, const std::vector<std::string>& nodes);

  /// By node, driver, pool and name: those that are published, and those that have faults.
  const std::vector<BoardDevice>& devices() const { return devices_; }
  const std::vector<BoardDriver>& drivers() const { return drivers_; }
  const BoardDriver& driver_of(const BoardDevice& device) const;

  /// The devices that NODE/DEVICE, NODE/DRIVER/DEVICE or NODE/DRIVER/POOL/DEVICE means, "*"
  /// standing for any letters. Errors: bad_request for another form, or where a name without "*"
  /// means several; not_found with the nearest name.
  Result<std::vector<const BoardDevice*>> choose(std::string_view target) const;

 private:
  void add(const json::Value& node, const std::vector<json::Value>& slices);

  std::vector<BoardDriver> drivers_;
  std::vector<BoardDevice> devices_;
};

/// The nodes that the targets name; none where one has a "*".
std::vector<std::string> nodes_of_targets(const std::vector<std::string>& targets);

/// Faults as they were written.
struct WrittenFaults {
  std::string node;
  std::string driver;
  std::string text;
};

/// Changes the faults of these devices, which are of one driver on one node, each with `change`.
/// Somebody else may change others at the same time.
Result<WrittenFaults> change_faults(client::Client& client, const BoardDriver& driver,
                                    const std::vector<const BoardDevice*>& devices,
                                    const std::function<void(driver::DeviceFaults&)>& change);

/// Whether the driver shows that it has taken them, in all of its pools.
Result<bool> are_taken(client::Client& client, const WrittenFaults& written);

}  // namespace dibs::cli
