#include "store/ballast.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dibs::store {

bool Ballast::take() {
  if (bytes_ == 0) return false;
  const int fd = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  const auto wanted = static_cast<off_t>(bytes_);
  struct stat info {};
  // Blocks, not the length: a file with holes keeps no room.
  const bool whole =
      ::fstat(fd, &info) == 0 && info.st_size == wanted && info.st_blocks * 512 >= wanted;
  // Some more, which is given back: a disk that is full but for this is full.
  held_ =
      whole || (::posix_fallocate(fd, 0, wanted + wanted / 4) == 0 && ::ftruncate(fd, wanted) == 0);
  ::close(fd);
  if (!held_) ::unlink(path_.c_str());
  return held_;
}

bool Ballast::release() {
  held_ = false;
  return bytes_ > 0 && ::unlink(path_.c_str()) == 0;
}

}  // namespace dibs::store
