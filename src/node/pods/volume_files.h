#pragma once
// What volumes need of the file system: modes, owners, mounts. Errors read as Go programs word
// them: "open /a/b: no such file or directory".
//
// Blocking and thread-safe.

#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/runtime/mounts.h"

namespace dibs::node {

/// An open file; closed with the object.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void reset(int fd) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

/// "op path: text of errno"
Error file_error(std::string_view operation, std::string_view path, int error_number);

/// With the folders above it, which get 0750. The mode is what the folder has afterwards, whatever
/// the process's umask, when this call made it.
Result<> make_folder(const std::string& path, unsigned mode);
/// Replaces the file's content; the mode counts always.
Result<> write_file(const std::string& path, std::string_view bytes, unsigned mode);
/// Null when there is no such file.
std::optional<std::string> read_file(const std::string& path, std::size_t limit);
/// Opens a relative path: links are followed as long as they stay below `folder`. -1: see errno.
int open_below(int folder, const std::string& path, unsigned flags);
/// Does not follow symbolic links and does not enter other mounts. Success when nothing is there.
Result<> remove_tree(const std::string& path);

/// Gives everything under `path` to the group: read (and write, unless read_only) for files, also
/// enter and inherit for folders. Others may change the tree meanwhile: no link is followed.
Result<> give_to_group(const std::string& path, std::int64_t group, bool read_only);
/// The folder itself is the group's already, as give_to_group() leaves it.
bool is_given_to_group(const std::string& path, std::int64_t group);

/// A file system in memory; size 0: the kernel's default.
Result<> mount_memory(const std::string& path, std::int64_t size_bytes);
/// `source` at `target` too, with the flags of mount(8) among `options` ("ro", "noexec", …); others
/// are an error. Nothing is left where it fails.
Result<> mount_bind(const std::string& source, const std::string& target,
                    const std::vector<std::string>& options);
/// Another file system than the folder above.
bool is_mounted(const std::string& path);

}  // namespace dibs::node
