#include "node/pods/volume_writer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <set>

#include "base/strings.h"
#include "node/pods/volume_files.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;

constexpr const char* kData = "..data";
constexpr const char* kNewData = "..data_tmp";

Result<> check_path(const std::string& path) {
  if (path.empty() || path.front() == '/') {
    return Error::invalid(cat("invalid path: must be relative path: ", path));
  }
  if (path.size() > 4096) return Error::invalid("invalid path: must be less than or equal to 4096");
  for (const auto part : split(path, '/')) {
    if (part == "..") return Error::invalid(cat("invalid path: must not contain '..': ", path));
  }
  if (path.starts_with("..")) {
    return Error::invalid(cat("invalid path: must not start with '..': ", path));
  }
  return success();
}

std::string folder_name(Time now) {
  const std::time_t seconds = now.seconds();
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  const std::size_t size = std::strftime(text, sizeof text, "..%Y_%m_%d_%H_%M_%S.", &parts);
  char fraction[16];
  std::snprintf(fraction, sizeof fraction, "%09lld",
                static_cast<long long>(now.nanoseconds - now.seconds() * 1'000'000'000));
  return cat(std::string_view(text, size), fraction);
}

std::string first_part(const std::string& path) { return path.substr(0, path.find('/')); }

std::string link_target(const std::string& path) {
  char text[4096];
  const ssize_t size = ::readlink(path.c_str(), text, sizeof text);
  return size < 0 ? std::string() : std::string(text, static_cast<std::size_t>(size));
}

/// The mode a file of this volume ends up with.
unsigned final_mode(unsigned mode, const VolumeWrite& how) {
  return how.group ? (mode & 07777U) | 0440U : mode & 07777U;
}

bool holds(const std::string& folder, const VolumeFiles& files, const VolumeWrite& how) {
  std::error_code error;
  std::size_t found = 0;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at->is_directory(error)) continue;
    const std::string name = at->path().lexically_relative(folder).string();
    const auto wanted = files.find(name);
    if (wanted == files.end()) return false;
    struct stat info {};
    if (::lstat(at->path().c_str(), &info) != 0) return false;
    if ((info.st_mode & 07777U) != final_mode(wanted->second.mode, how)) return false;
    const auto bytes = read_file(at->path().string(), wanted->second.bytes.size() + 1);
    if (!bytes || *bytes != wanted->second.bytes) return false;
    ++found;
  }
  return !error && found == files.size();
}

Result<> fill(const std::string& folder, const VolumeFiles& files, const VolumeWrite& how) {
  for (const auto& [name, file] : files) {
    const std::string path = cat(folder, '/', name);
    for (std::size_t at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1)) {
      DIBS_CHECK(make_folder(cat(folder, '/', name.substr(0, at)), 0755));
    }
    DIBS_CHECK(write_file(path, file.bytes, file.mode));
    if (file.owner && ::chown(path.c_str(), static_cast<uid_t>(*file.owner), gid_t(-1)) != 0) {
      return file_error("chown", path, errno);
    }
  }
  if (how.group) DIBS_CHECK(give_to_group(folder, *how.group, true));
  return success();
}

Result<> switch_link(const std::string& folder, const std::string& target) {
  const std::string fresh = cat(folder, '/', kNewData);
  const std::string data = cat(folder, '/', kData);
  ::unlink(fresh.c_str());
  if (::symlink(target.c_str(), fresh.c_str()) != 0) return file_error("symlink", fresh, errno);
  if (::rename(fresh.c_str(), data.c_str()) != 0) return file_error("rename", data, errno);
  return success();
}

/// The names that users open, each a link into ..data; links of files that are gone go too.
Result<> update_names(const std::string& folder, const VolumeFiles& files) {
  std::set<std::string> wanted;
  for (const auto& [name, file] : files) wanted.insert(first_part(name));
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("..") || wanted.count(name) != 0) continue;
    if (link_target(entry.path().string()) == cat(kData, '/', name)) {
      ::unlink(entry.path().c_str());
    }
  }
  for (const auto& name : wanted) {
    const std::string link = cat(folder, '/', name);
    const std::string target = cat(kData, '/', name);
    if (link_target(link) == target) continue;
    ::unlink(link.c_str());
    if (::symlink(target.c_str(), link.c_str()) != 0) return file_error("symlink", link, errno);
  }
  return success();
}

}  // namespace

Result<bool> write_volume(const std::string& folder, const VolumeFiles& files,
                          const VolumeWrite& how) {
  for (const auto& [name, file] : files) DIBS_CHECK(check_path(name));
  const std::string old = link_target(cat(folder, '/', kData));
  if (!old.empty() && holds(cat(folder, '/', old), files, how)) {
    DIBS_CHECK(update_names(folder, files));
    return false;
  }

  std::string name = folder_name(how.now);
  // A write cut short may have left a folder of the same moment.
  for (int i = 0; fs::exists(cat(folder, '/', name)); ++i) name = cat(folder_name(how.now), i);
  const std::string fresh = cat(folder, '/', name);
  DIBS_CHECK(make_folder(fresh, 0755));
  if (auto filled = fill(fresh, files, how); !filled) {
    (void)remove_tree(fresh);
    return filled.error();
  }
  DIBS_CHECK(switch_link(folder, name));
  DIBS_CHECK(update_names(folder, files));
  // Whatever else a write cut short left behind goes with the old content.
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string other = entry.path().filename().string();
    if (other.starts_with("..2") && other != name) (void)remove_tree(entry.path().string());
  }
  return true;
}

}  // namespace dibs::node
