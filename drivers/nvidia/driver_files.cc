#include "drivers/nvidia/driver_files.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/strings.h"
#include "drivers/nvidia/elf.h"

namespace dibs::drivers::nvidia {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibraryFolders[] = {"/usr/lib64",
                                           "/usr/lib/x86_64-linux-gnu",
                                           "/usr/lib/aarch64-linux-gnu",
                                           "/usr/lib/x86_64-linux-gnu/nvidia/current",
                                           "/usr/lib/aarch64-linux-gnu/nvidia/current",
                                           "/lib64",
                                           "/lib/x86_64-linux-gnu",
                                           "/lib/aarch64-linux-gnu",
                                           "/usr/local/nvidia/lib64",
                                           "/usr/lib",
                                           "/home/kubernetes/bin/nvidia/lib64"};
constexpr const char* kToolFolders[] = {"/usr/local/sbin",
                                        "/usr/local/bin",
                                        "/usr/sbin",
                                        "/usr/bin",
                                        "/sbin",
                                        "/bin",
                                        "/opt/bin",
                                        "/usr/local/nvidia/bin",
                                        "/home/kubernetes/bin/nvidia/bin"};
/// Where loaders look without being told to: Debian's and its kin, and the others'.
#if defined(__aarch64__)
constexpr const char* kLoaderFolders[] = {"/usr/lib/aarch64-linux-gnu", "/usr/lib64"};
#else
constexpr const char* kLoaderFolders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64"};
#endif
constexpr const char* kTools[] = {"nvidia-smi",
                                  "nvidia-debugdump",
                                  "nvidia-persistenced",
                                  "nvidia-cuda-mps-control",
                                  "nvidia-cuda-mps-server",
                                  "nvidia-imex",
                                  "nvidia-imex-ctl"};

/// On the machine, behind links: what is mounted has to be the file.
std::string real_path(const std::string& path) {
  std::error_code failed;
  const fs::path real = fs::canonical(path, failed);
  return failed ? path : real.string();
}

/// "1.1" of the loader's cache: a header of 48 bytes, then entries of 24.
constexpr std::string_view kNewMagic = "glibc-ld.so.cache1.1";
constexpr std::string_view kOldMagic = "ld.so-1.7.0";
constexpr std::size_t kOldHeader = 16;
constexpr std::size_t kOldEntry = 12;
constexpr std::size_t kNewHeader = 48;
constexpr std::size_t kNewEntry = 24;
constexpr std::uint32_t kTypeMask = 0x00ff;
constexpr std::uint32_t kElf = 0x0001;
constexpr std::uint32_t kArchitectureMask = 0xff00;
constexpr std::uint32_t kX8664 = 0x0300;
constexpr std::uint32_t kAarch64 = 0x0a00;

std::uint32_t word_at(std::string_view bytes, std::size_t at) {
  std::uint32_t word = 0;
  if (at + sizeof word <= bytes.size()) std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

std::string text_at(std::string_view bytes, std::size_t at) {
  if (at >= bytes.size()) return "";
  const std::string_view rest = bytes.substr(at);
  return std::string(rest.substr(0, rest.find('\0')));
}

/// Whether a folder has one of the two that every driver has.
bool has_driver(runtime::Files& files, const std::string& folder, const std::string& version) {
  return files.exists(cat(folder, "/libcuda.so.", version)) ||
         files.exists(cat(folder, "/libnvidia-ml.so.", version));
}

/// Where libraries may be, some more than once, without the root.
std::vector<std::string> candidate_folders(runtime::Files& files, const Roots& roots) {
  std::vector<std::string> candidates;
  if (const auto cache = files.read(below(roots.driver, "/etc/ld.so.cache"))) {
    for (const auto& path : paths_in_loader_cache(*cache)) {
      candidates.push_back(path.substr(0, path.rfind('/')));
    }
  }
  candidates.insert(candidates.end(), std::begin(kLibraryFolders), std::end(kLibraryFolders));
  return candidates;
}

/// Without the root, relative to which containers see it.
std::vector<std::string> folders_below(runtime::Files& files, const Roots& roots,
                                       const std::string& version) {
  std::vector<std::string> out;
  std::set<std::string> seen;
  for (const auto& folder : candidate_folders(files, roots)) {
    if (folder.empty() || !seen.insert(folder).second) continue;
    const std::string real = real_path(below(roots.driver, folder));
    // /lib may be a link to /usr/lib.
    if (!seen.insert(cat("real ", real)).second || !has_driver(files, real, version)) continue;
    out.push_back(folder);
  }
  return out;
}

/// "libcuda.so.1", which the library itself says, and "libcuda.so", where the machine has them as
/// links to this library: a hook of the container toolkit would link them anew, a mount needs no
/// hook.
std::vector<std::string> other_names(const std::vector<std::string>& names,
                                     const std::string& folder, const std::string& library) {
  const std::string stem = cat(library.substr(0, library.find(".so")), ".so");
  const std::string real = real_path(cat(folder, "/", library));
  std::vector<std::string> out;
  for (const auto& name : names) {
    if (name == library || (name != stem && !name.starts_with(stem + "."))) continue;
    if (real_path(cat(folder, "/", name)) == real) out.push_back(name);
  }
  const std::string soname = soname_of_file(real);
  const bool is_new = soname != library && std::find(out.begin(), out.end(), soname) == out.end();
  if (is_new && soname.starts_with(stem) && soname.find('/') == std::string::npos) {
    out.push_back(soname);
  }
  return out;
}

}  // namespace

std::string below(const std::string& root, std::string_view path) {
  std::string_view base = root;
  while (base.ends_with('/')) base.remove_suffix(1);
  return cat(base, path);
}

std::vector<std::string> paths_in_loader_cache(std::string_view bytes) {
  std::string_view rest = bytes;
  if (rest.starts_with(kOldMagic)) {
    std::size_t size = kOldHeader + std::size_t{word_at(rest, 12)} * kOldEntry;
    size = (size + 7) / 8 * 8;
    if (size >= rest.size()) return {};
    rest.remove_prefix(size);
  }
  if (!rest.starts_with(kNewMagic)) return {};
  const std::size_t count = word_at(rest, 20);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = kNewHeader + i * kNewEntry;
    if (at + kNewEntry > rest.size()) break;
    const std::uint32_t flags = word_at(rest, at);
    const std::uint32_t architecture = flags & kArchitectureMask;
    if ((flags & kTypeMask & kElf) == 0) continue;
    if (architecture != kX8664 && architecture != kAarch64) continue;
    std::string path = text_at(rest, word_at(rest, at + 8));
    if (path.starts_with('/') && path.rfind('/') > 0) out.push_back(std::move(path));
  }
  return out;
}

std::string find_nvml(runtime::Files& files, const Roots& roots) {
  constexpr std::string_view kName = "libnvidia-ml.so.1";
  std::set<std::string> seen;
  std::string other;
  for (const auto& folder : candidate_folders(files, roots)) {
    const std::string on_host = below(roots.driver, folder);
    if (!seen.insert(folder).second) continue;
    std::string path = cat(on_host, "/", kName);
    if (files.exists(path)) return path;
    const auto names = files.list(on_host);
    if (!names || !other.empty()) continue;
    for (const auto& name : *names) {
      if (name.starts_with("libnvidia-ml.so.")) other = cat(on_host, "/", name);
    }
  }
  return other;
}

std::vector<std::string> library_folders(runtime::Files& files, const Roots& roots,
                                         const std::string& version) {
  std::vector<std::string> out;
  for (const auto& folder : folders_below(files, roots, version)) {
    out.push_back(below(roots.driver, folder));
  }
  return out;
}

Result<std::vector<DriverFile>> find_libraries(runtime::Files& files, const Roots& roots,
                                               const std::string& version) {
  const auto folders = folders_below(files, roots, version);
  if (folders.empty()) {
    return Error::not_found(cat("libcuda.so.", version, " and libnvidia-ml.so.", version,
                                " are in no folder of the loader's cache or of the usual ones "
                                "below ",
                                roots.driver, ": --driver-root says where the driver is"));
  }
  std::vector<DriverFile> out;
  std::set<std::string> seen;
  const auto add = [&](const std::string& host, std::string container) {
    if (seen.insert(container).second) out.push_back({host, std::move(container)});
  };
  const std::string ending = cat(".so.", version);
  for (const auto& folder : folders) {
    for (const std::string& part : {folder, cat(folder, "/vdpau")}) {
      const std::string on_host = below(roots.driver, part);
      const auto names = files.list(on_host);
      if (!names) continue;
      for (const auto& name : *names) {
        const bool nvvm = name.starts_with("libnvidia-nvvm70.so.");
        if (!name.ends_with(ending) && !nvvm) continue;
        const std::string host = real_path(cat(on_host, "/", name));
        std::vector<std::string> known_as = other_names(*names, on_host, name);
        known_as.insert(known_as.begin(), name);
        for (const auto& one : known_as) add(host, cat(part, "/", one));
        if (part != folder) continue;
        for (const std::string loaders : kLoaderFolders) {
          if (cat("/usr", part) == loaders) continue;  // a loader looks in both
          for (const auto& one : known_as) add(host, cat(loaders, "/", one));
        }
      }
    }
  }
  return out;
}

std::vector<DriverFile> find_tools(runtime::Files& files, const Roots& roots) {
  std::vector<DriverFile> out;
  for (const char* name : kTools) {
    const std::string found = find_tool(files, roots, name);
    if (!found.empty()) out.push_back({real_path(found), cat("/usr/bin/", name)});
  }
  return out;
}

std::string find_tool(runtime::Files& files, const Roots& roots, std::string_view name) {
  for (const char* folder : kToolFolders) {
    std::string path = below(roots.driver, cat(folder, "/", name));
    if (files.exists(path)) return path;
  }
  return "";
}

std::vector<DriverFile> find_sockets(runtime::Files& files, const Roots& roots) {
  std::vector<DriverFile> out;
  for (const char* path : {"/run/nvidia-persistenced/socket", "/run/nvidia-fabricmanager/socket"}) {
    const std::string host = below(roots.driver, path);
    if (files.exists(host)) out.push_back({host, path});
  }
  return out;
}

std::vector<DriverFile> find_firmware(runtime::Files& files, const Roots& roots,
                                      const std::string& version) {
  std::vector<DriverFile> out;
  for (const char* folder : {"/lib/firmware/updates/nvidia/", "/lib/firmware/nvidia/"}) {
    const std::string path = cat(folder, version);
    const auto names = files.list(below(roots.driver, path));
    if (!names) continue;
    for (const auto& name : *names) {
      if (!name.starts_with("gsp") || !name.ends_with(".bin")) continue;
      out.push_back({real_path(below(roots.driver, cat(path, "/", name))), cat(path, "/", name)});
    }
    if (!out.empty()) break;
  }
  return out;
}

std::optional<unsigned> minor_in_access_file(std::string_view text) {
  for (const auto line : split(text, '\n')) {
    constexpr std::string_view kField = "DeviceFileMinor:";
    if (!line.starts_with(kField)) continue;
    const std::string_view number = trim(line.substr(kField.size()));
    unsigned minor = 0;
    const auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), minor);
    if (failed == std::errc() && end == number.data() + number.size()) return minor;
  }
  return {};
}

std::optional<unsigned> major_of(std::string_view proc_devices, std::string_view name) {
  for (const auto line : split(proc_devices, '\n')) {
    const std::string_view entry = trim(line);
    const auto blank = entry.find(' ');
    if (blank == std::string_view::npos || trim(entry.substr(blank)) != name) continue;
    unsigned major = 0;
    const auto [end, failed] = std::from_chars(entry.data(), entry.data() + blank, major);
    if (failed == std::errc()) return major;
  }
  return {};
}

}  // namespace dibs::drivers::nvidia
