#pragma once
// What the parts of the image store share.

#include <sys/file.h>

#include <cstdint>
#include <string>
#include <string_view>
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
  ImageOrigin origin = ImageOrigin::archive;
  std::vector<std::string> logins = {};  // as ImageInfo's

  json::Value to_value() const;
  /// Of the file's text; an error where it is not the record of that image.
  static Result<Record> read(std::string_view text, std::string_view id);
};

std::uint64_t folder_size(const std::string& folder);

/// Waits until nobody else holds it; released with the descriptor.
Result<runtime::Fd> wait_for_lock(const std::string& path);

/// An error where the folder's disk would be all but full with so many bytes more: what a small
/// file unpacks to has no bound of its own.
Result<> need_room(const std::string& folder, std::uint64_t bytes);

/// Reads to the end into a new file; the sha256 of it. Stops where the disk gets full.
Result<std::string> copy_with_digest(int from, const std::string& to);

/// A folder for the time of its life; what was there is removed.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(std::string path);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace dibs::node
