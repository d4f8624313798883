#pragma once
// What the oci runtime remembers of sandboxes and containers, on disk, so that a new agent goes on
// where the last one ended, wherever that was.
//
//     <root>/sandboxes/<id>/record.json
//     <root>/containers/<id>/record.json, config.json (the bundle), upper/, work/, merged/
//
// A phase is written before what it announces is begun: what is found half-done is known by it. A
// record counts only where it lies: what is removed by its id is never more than its folder.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "json/value.h"
#include "node/runtime/container_runtime.h"

namespace dibs::node {

enum class SandboxPhase : std::uint8_t { creating, ready, stopped, removing };
enum class ContainerPhase : std::uint8_t { creating, created, starting, running, exited, removing };

/// A process by number and by the tick it began at, which tells it from a later one.
struct ProcessMark {
  std::int64_t pid = 0;  // 0: none
  std::uint64_t began = 0;

  bool alive() const;
  static ProcessMark of(std::int64_t pid);
};

struct SandboxRecord {
  SandboxConfig config = {};
  SandboxStatus status = {};
  SandboxPhase phase = SandboxPhase::creating;
  json::Value cni = {};
  ProcessMark pause = {};  // the holder of a shared pid namespace
  std::string boot = {};   // the boot id it was made under

  json::Value to_value() const;
  /// Of the file's text; an error where it is not the record of that sandbox.
  static Result<SandboxRecord> read(std::string_view text, std::string_view id);
};

struct ContainerRecord {
  ContainerStatus status = {};
  ContainerPhase phase = ContainerPhase::creating;
  std::string stop_signal = {};
  bool tty = false;
  bool stdin_open = false;
  bool stdin_once = false;
  ProcessMark process = {};
  ProcessMark monitor = {};
  std::string boot = {};

  json::Value to_value() const;
  /// Of the file's text; an error where it is not the record of that container.
  static Result<ContainerRecord> read(std::string_view text, std::string_view id);
};

/// Replaces a file at once by one that nobody else may read; not flushed to the disk, since after a
/// power cut nothing runs anyway.
Result<> replace_file(const std::string& path, std::string_view bytes);
/// The id of this boot of the machine.
std::string machine_boot_id();

}  // namespace dibs::node
