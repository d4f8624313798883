// Any bytes as the files in which the node's agent, its container runtime and drivers note what
// they do: what is read is written as something that reads the same.
#include <zlib.h>

#include "base/log.h"
#include "base/strings.h"
#include "driver/checkpoint.h"
#include "fuzz/targets.h"
#include "json/parse.h"
#include "node/plugins/claim_cache.h"
#include "node/plugins/device_health.h"
#include "node/runtime/image_record.h"
#include "node/runtime/oci_records.h"
#include "runtime/sim_runtime.h"

namespace dibs::fuzz {
namespace {

using json::Value;

/// Of the agent.
void check_claims(std::string_view text) {
  using namespace node;
  const auto claims = decode_checkpoint(text);
  if (!claims.ok()) {
    require(!claims.error().message().empty(), "an error has a message");
    return;
  }
  std::vector<const ClaimInfo*> pointers;
  for (const auto& claim : *claims) pointers.push_back(&claim);
  const std::string written = encode_checkpoint(pointers);
  const auto again = decode_checkpoint(written);
  require(again.ok() && again->size() == claims->size(), "a checkpoint reads back");
  pointers.clear();
  for (const auto& claim : *again) pointers.push_back(&claim);
  require(encode_checkpoint(pointers) == written, "and is written the same");
}

/// With the checksum that it should have, which chance would not find.
void check_sealed_claims(std::string_view data) {
  const auto sum =
      ::crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size()));
  check_claims(json::write(Value::object({{"Data", data}, {"Checksum", sum}})));
}

void check_health(std::string_view text) {
  using namespace node;
  runtime::SimRuntime sim;
  const auto files = runtime::make_memory_files();
  (void)files->write("health", text).ok();
  DeviceHealth health("health", *files, sim.runtime().clock);
  const auto parsed = json::parse(text);
  if (!parsed.ok()) require(health.empty(), "a broken file is ignored");
  ClaimInfo claim;
  for (const auto& [driver, value] : parsed.ok() ? parsed->members() : Value().members()) {
    for (const auto& [key, device] : value["Devices"].members()) {
      claim.drivers[std::string(driver)].devices.push_back(
          {std::string(driver), device["PoolName"].str(), device["DeviceName"].str(), "", {}, {}});
    }
  }
  // The next word of a driver writes the file anew.
  (void)health.report("new", {{{"pool", "device"}, Health::healthy, Duration(0), "fine"}});
  const Value known = health.describe(claim, {}, true);
  const DeviceHealth again("health", *files, sim.runtime().clock);
  require(again.describe(claim, {}, true) == known, "health reads back");
  sim.advance(std::chrono::seconds(31));
  (void)health.expire();
}

template <typename Record>
void check_record(std::string_view text) {
  const auto value = json::parse(text);
  const std::string id = value.ok() ? (*value)["id"].str() : "";
  require(!Record::read(text, id + "x").ok(), "a record counts where it lies");
  const auto record = Record::read(text, id);
  if (!record.ok()) return;
  const std::string written = json::write(record->to_value());
  const auto again = Record::read(written, id);
  require(again.ok() && json::write(again->to_value()) == written, "a record reads back");
}

void check_driver(std::string_view text) {
  const auto files = runtime::make_memory_files();
  (void)files->write("checkpoint", text).ok();
  const driver::Checkpoint checkpoint(*files, "checkpoint", "v1");
  const auto entries = checkpoint.read();
  if (!entries.ok()) return;
  require(checkpoint.write(*entries).ok(), "a checkpoint is written");
  const auto again = checkpoint.read();
  require(again.ok() && again->size() == entries->size(), "a checkpoint reads back");
  for (std::size_t i = 0; i < entries->size(); ++i) {
    require((*again)[i].uid == (*entries)[i].uid && (*again)[i].devices == (*entries)[i].devices,
            "with the same entries");
  }
}

}  // namespace

int fuzz_checkpoint(const std::uint8_t* data, std::size_t size) {
  log::set_level(log::Level::off);
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 7) {
    case 0:
      check_claims(text);
      break;
    case 1:
      check_sealed_claims(text);
      break;
    case 2:
      check_health(text);
      break;
    case 3:
      check_record<node::SandboxRecord>(text);
      break;
    case 4:
      check_record<node::ContainerRecord>(text);
      break;
    case 5:
      check_record<node::ImageStore::Record>(text);
      break;
    case 6:
      check_driver(text);
      break;
  }
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_checkpoint)
