#pragma once
// Room kept for bad times: a file of zeros beside the store, which is given up when the disk is
// full, so that what makes room can still be written.
//
// Not thread-safe.

#include <cstddef>
#include <string>
#include <utility>

#include "store/disk.h"

namespace dibs::store {

class Ballast {
 public:
  /// No file is touched. 0 bytes: there is none, and it never helps.
  Ballast(Disk& disk, std::string path, std::size_t bytes)
      : disk_(disk), path_(std::move(path)), bytes_(bytes) {}

  /// Makes the file, where it is missing or short. False when that would leave less than a quarter
  /// of it as room for others, or none: then there is no file.
  bool take();
  /// False when there was nothing to give up.
  bool release();

  bool is_held() const { return held_; }

 private:
  Disk& disk_;
  const std::string path_;
  const std::size_t bytes_;
  bool held_ = false;
};

}  // namespace dibs::store
