#include "node/pods/node_paths.h"

#include <fcntl.h>
#include <sys/mount.h>

#include <cerrno>

#include "base/strings.h"
#include "node/pods/volume_files.h"

namespace dibs::node {
namespace {

constexpr std::string_view kKubelet = "/var/lib/kubelet";

bool is_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

/// "." and ".." are worked out in the text, so that none is left to lead anywhere.
std::string normal(std::string_view path) {
  std::vector<std::string_view> parts;
  for (const auto part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (!parts.empty()) {
      parts.pop_back();
    }
  }
  std::string out;
  for (const auto part : parts) append(out, '/', part);
  if (out.empty()) return "/";
  if (is_below(out, "/var/run")) out.erase(0, std::string_view("/var").size());
  return out;
}

struct Found {
  const NodePlace* place = nullptr;
  std::string rest = {};  // "" or "/a/b"
};

/// The node's own paths are meant as they stand, also where its root lies below the kubelet's.
Found find(const NodeFacts& facts, std::string_view path) {
  if (!path.starts_with('/')) return {};
  const std::string wanted = normal(path);
  for (const auto& place : facts.places) {
    if (is_below(wanted, place.folder)) return {};
  }
  for (const auto& place : facts.places) {
    if (is_below(wanted, place.path)) return {&place, wanted.substr(place.path.size())};
  }
  return {};
}

}  // namespace

std::vector<NodePlace> node_places(const std::string& root, const std::string& log_root) {
  std::vector<NodePlace> out = {{"/var/log/pods", log_root}};
  if (root == kKubelet) return out;
  out.push_back({std::string(kKubelet), root});
  out.push_back({"/run/cdi", cat(root, "/cdi")});
  out.push_back({"/etc/cdi", cat(root, "/etc-cdi")});
  return out;
}

std::vector<std::string> own_cdi_folders(const std::string& root) {
  if (root == kKubelet) return {};
  return {cat(root, "/etc-cdi"), cat(root, "/cdi")};
}

std::string node_path(const NodeFacts& facts, std::string_view path) {
  const Found found = find(facts, path);
  return found.place == nullptr ? std::string(path) : cat(found.place->folder, found.rest);
}

std::string kubelet_path(const NodeFacts& facts, std::string_view path) {
  // The logs and CDI files of a node may lie below its root: the narrower folder is meant.
  const NodePlace* best = nullptr;
  for (const auto& place : facts.places) {
    if (!is_below(path, place.folder)) continue;
    if (best == nullptr || place.folder.size() > best->folder.size()) best = &place;
  }
  return best == nullptr ? std::string(path) : cat(best->path, path.substr(best->folder.size()));
}

Result<> check_node_path(const NodeFacts& facts, std::string_view path) {
  const Found found = find(facts, path);
  if (found.place == nullptr || found.rest.empty()) return success();
  const Descriptor folder(::open(found.place->folder.c_str(), O_PATH | O_CLOEXEC));
  if (folder.get() < 0) return success();  // nothing in it can lead anywhere
  const Descriptor there(open_below(folder.get(), found.rest.substr(1), O_PATH));
  if (there.get() >= 0 || errno == ENOENT) return success();
  if (errno != EXDEV && errno != ELOOP) return file_error("open", path, errno);
  return Error::invalid(cat(path, " leads out of the node's folder by a link"));
}

Result<> share_mounts(const NodeFacts& facts, const std::string& folder) {
  const MountPoint mount = mount_of(folder);
  if (mount.shared) return success();
  if (!is_below(folder, facts.root)) {
    return Error::invalid(cat("path ", quoted(folder), " is mounted on ", quoted(mount.path),
                              " but it is not a shared mount"));
  }
  // Machines with systemd have it so from the start.
  if (::mount("", mount.path.c_str(), "", MS_SHARED, nullptr) != 0) {
    return file_error("mount", mount.path, errno);
  }
  return success();
}

}  // namespace dibs::node
