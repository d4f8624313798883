#pragma once
// What the parts of the image store share.

#include <sys/file.h>

#include <cstdint>
#include <string>
#include <vector>

#include "node/runtime/image_store.h"
#include "runtime/processes.h"

namespace dibs::node {

/// One image as its file under images/ has it.
struct ImageStore::Record {
  std::string id = {};
  std::string digest = {};  // of the manifest; "" where it is not known
  json::Value config = {};
  std::vector<std::string> layers = {};  // names below layers/
  std::uint64_t size = 0;

  json::Value to_value() const;
  static Record from_value(const json::Value& value);
};

std::uint64_t folder_size(const std::string& folder);

/// Waits until nobody else holds it; released with the descriptor.
Result<runtime::Fd> wait_for_lock(const std::string& path);

}  // namespace dibs::node
