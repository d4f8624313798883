#pragma once
// Device metadata files: what a container can read about the devices it got, mounted into it
// through CDI.
//
// Per claim and request there is a file on the host, `<data dir>/dra-device-metadata/<namespace>_
// <claim>/<request>/metadata.json`, and a CDI file that mounts it where the API says. The file
// holds the same object once per API version, newest first.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "driver/driver.h"
#include "runtime/files.h"

namespace dibs::driver {

class MetadataFiles {
 public:
  MetadataFiles(runtime::Files& files, std::string driver_name, std::string data_dir,
                std::string cdi_dir);

  /// All requests of the claim, with generation 1, or one more than what is there.
  Result<> write(const Claim& claim, const std::vector<PreparedDevice>& devices);
  /// All files of these devices are there.
  bool exists(const ClaimName& claim, const std::vector<PreparedDevice>& devices) const;
  Result<> remove(const ClaimName& claim);
  /// Removes the files of claims for which `is_kept(uid)` is false.
  Result<> collect_garbage(const std::function<bool(std::string_view uid)>& is_kept);
  std::string cdi_id(const ClaimName& claim, std::string_view request) const;

 private:
  struct Place {
    std::string folder;    // of the claim
    std::string file;      // on the host
    std::string cdi_file;  // that mounts it
  };
  Place place(const ClaimName& claim, std::string_view request) const;
  std::string claim_folder(const ClaimName& claim) const;
  std::string cdi_prefix(std::string_view uid) const;

  runtime::Files& files_;
  std::string driver_;
  std::string root_;
  std::string cdi_dir_;
};

}  // namespace dibs::driver
