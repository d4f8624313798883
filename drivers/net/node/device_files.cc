#include "drivers/net/node/device_files.h"

#include "base/strings.h"

namespace dibs::drivers::net {
namespace {

/// Interfaces are named by whoever makes the pod: a name must not lead out of the folder.
bool is_file_name(std::string_view text) {
  return !text.empty() && text.size() <= 64 && text.front() != '.' &&
         text.find_first_of(std::string_view("/\0\n", 3)) == text.npos;
}

}  // namespace

std::string DeviceFiles::list_of(const std::string& claim_uid) const {
  return cat(folder_, "/claim-", claim_uid);
}

Result<> DeviceFiles::write(const std::string& claim_uid,
                            const std::vector<InterfaceDevice>& devices) {
  if (devices.empty()) return success();
  std::string names;
  for (const auto& device : devices) {
    if (!is_file_name(device.interface) || !is_file_name(device.pod_uid)) {
      return Error::invalid(cat("no name of an interface: ", quoted(device.interface)));
    }
    append(names, device.pod_uid, "_", device.interface, "\n");
  }
  DIBS_CHECK(files_.make_dirs(folder_, 0750));
  DIBS_CHECK(files_.write(list_of(claim_uid), names));
  for (const auto& device : devices) {
    DIBS_CHECK(files_.write(cat(folder_, "/", device.pod_uid, "_", device.interface),
                            cat(device.pci_address, "\n")));
  }
  return success();
}

Result<> DeviceFiles::remove(const std::string& claim_uid) {
  const std::string list = list_of(claim_uid);
  if (!files_.exists(list)) return success();
  DIBS_TRY(const std::string names, files_.read(list));
  for (const auto name : split(names, '\n')) {
    if (is_file_name(name)) DIBS_CHECK(files_.remove(cat(folder_, "/", name)));
  }
  return files_.remove(list);
}

}  // namespace dibs::drivers::net
