#pragma once
// A CDI spec: what has to be changed in a container so that it can use a device.
//
// A vendor's driver writes a file of this form into a spec directory; the runtime that creates a
// container looks up the devices it was given by their qualified names and applies the edits to the
// container's OCI configuration (inject.h). Here is the spec as a value, its text forms and what
// makes it valid; cache.h has the directories.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cdi/names.h"
#include "json/value.h"

namespace dibs::cdi {

struct DeviceNode {
  std::string path = {};
  std::string host_path = {};  // since 0.5.0; "" is path
  std::string type = {};       // "b", "c", "u", "p"; "": that of the host's node
  std::int64_t major = 0;
  std::int64_t minor = 0;
  std::optional<std::uint32_t> file_mode = {};
  std::string permissions = {};  // of "rwm", or "none"; "" is "rwm"
  std::optional<std::uint32_t> uid = {};
  std::optional<std::uint32_t> gid = {};
};

/// Since 1.1.0.
struct NetDevice {
  std::string host_interface_name = {};
  std::string name = {};
};

struct Mount {
  std::string host_path = {};
  std::string container_path = {};
  std::vector<std::string> options = {};
  std::string type = {};  // since 0.4.0
};

struct Hook {
  std::string hook_name = {};
  std::string path = {};
  std::vector<std::string> args = {};
  std::vector<std::string> env = {};
  std::optional<std::int64_t> timeout = {};  // seconds
};

/// Since 0.7.0.
struct IntelRdt {
  std::string clos_id = {};
  std::string l3_cache_schema = {};
  std::string mem_bw_schema = {};
  std::optional<std::vector<std::string>> schemata = {};  // since 1.1.0
  bool enable_monitoring = false;                         // since 1.1.0
  bool enable_cmt = false;                                // from 0.7.0 to 1.0.0
  bool enable_mbm = false;                                // from 0.7.0 to 1.0.0
};

struct ContainerEdits {
  std::vector<std::string> env = {};
  std::vector<DeviceNode> device_nodes = {};
  std::vector<NetDevice> net_devices = {};
  std::vector<Hook> hooks = {};
  std::vector<Mount> mounts = {};
  std::optional<IntelRdt> intel_rdt = {};
  std::vector<std::uint32_t> additional_gids = {};  // since 0.7.0

  bool empty() const;
  void append(const ContainerEdits& more);
};

struct Device {
  std::string name = {};
  std::map<std::string, std::string> annotations = {};  // since 0.6.0
  ContainerEdits edits = {};
};

struct Spec {
  std::string version = {};
  std::string kind = {};                                // vendor/class
  std::map<std::string, std::string> annotations = {};  // since 0.6.0
  std::vector<Device> devices = {};
  /// Applied once as soon as one of the devices is used.
  ContainerEdits edits = {};
};

/// The oldest version that has all that the spec uses: what a writer should declare, so that
/// runtimes with an older library read the file.
std::string minimum_version(const Spec& spec);
/// With the version, names and edits of all parts. `newest`: as a library sees it that knows no
/// later version; "": as ours.
Result<> validate(const Spec& spec, std::string_view newest = {});
/// The versions that there are, the oldest first.
std::vector<std::string> versions();
Result<> validate(const ContainerEdits& edits);

/// JSON or YAML; unknown fields are errors, their case is not looked at. Not validated.
Result<Spec> parse_spec(std::string_view text);
Result<Spec> spec_from_value(const json::Value& value);

/// The bytes that the library of other drivers writes: fields in their order, after a `---` line.
std::string write_yaml(const Spec& spec);
/// As that library wrote it up to its release 0.6: keys by the alphabet, the spec's own edits even
/// where there are none.
std::string write_sorted_yaml(const Spec& spec);
std::string write_json(const Spec& spec);
json::Value to_value(const ContainerEdits& edits);

/// `vendor-class.yaml`, or `vendor-class_id.yaml` for what is made at run time, one per claim.
std::string spec_file_name(std::string_view vendor, std::string_view class_name,
                           std::string_view transient_id = {});

}  // namespace dibs::cdi
