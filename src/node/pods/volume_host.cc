#include "node/pods/volume_host.h"

#include <sys/stat.h>

#include <cerrno>

#include "base/strings.h"
#include "node/pods/container_config.h"
#include "node/pods/env.h"
#include "node/pods/node_paths.h"
#include "node/pods/volume_files.h"

namespace dibs::node {
namespace {

using json::Value;

struct PathType {
  std::string_view type;
  unsigned format;  // of st_mode
  std::string_view text;
};
constexpr PathType kTypes[] = {
    {"Directory", S_IFDIR, "is not a directory"},
    {"DirectoryOrCreate", S_IFDIR, "is not a directory"},
    {"File", S_IFREG, "is not a file"},
    {"FileOrCreate", S_IFREG, "is not a file"},
    {"Socket", S_IFSOCK, "is not a socket file"},
    {"CharDevice", S_IFCHR, "is not a character device"},
    {"BlockDevice", S_IFBLK, "is not a block device"},
};

constexpr std::size_t kMaxHosts = 1 << 20;

void add_aliases(const Value& aliases, std::string& out) {
  if (aliases.empty()) return;
  out.append("\n# Entries added by HostAliases.\n");
  for (const auto& alias : aliases.items()) {
    out.append(alias["ip"].as_string());
    for (const auto& name : alias["hostnames"].items()) append(out, '\t', name.as_string());
    out.push_back('\n');
  }
}

}  // namespace

Result<> check_host_path(const Value& host_path, const NodeFacts& facts) {
  const std::string named = host_path["path"].str();
  DIBS_CHECK(check_node_path(facts, named));
  const std::string path = node_path(facts, named);
  const auto type = host_path["type"].as_string();
  if (type.empty()) return success();
  for (const auto& known : kTypes) {
    if (known.type != type) continue;
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
      if (errno == ENOENT && type == "DirectoryOrCreate") return make_folder(path, 0755);
      if (errno == ENOENT && type == "FileOrCreate") return write_file(path, "", 0644);
    } else if ((info.st_mode & S_IFMT) == known.format) {
      return success();
    }
    return Error::invalid(cat("hostPath type check failed: ", named, ' ', known.text));
  }
  return Error::invalid(cat(type, " is an invalid volume type"));
}

Result<> prepare_host_path(const Value& host_path, const NodeFacts& facts) {
  struct stat info {};
  const std::string named = host_path["path"].str();
  DIBS_CHECK(check_node_path(facts, named));
  const std::string path = node_path(facts, named);
  if (!host_path["type"].as_string().empty() || ::stat(path.c_str(), &info) == 0) return success();
  return make_folder(path, 0755);
}

std::string hosts_content(const Value& pod, const std::vector<std::string>& pod_ips,
                          const NodeFacts& facts) {
  const Value& spec = pod["spec"];
  std::string out;
  if (spec["hostNetwork"].as_bool()) {
    out = "# Kubernetes-managed hosts file (host network).\n";
    out.append(read_file("/etc/hosts", kMaxHosts).value_or("127.0.0.1\tlocalhost\n"));
  } else {
    out =
        "# Kubernetes-managed hosts file.\n"
        "127.0.0.1\tlocalhost\n"
        "::1\tlocalhost ip6-localhost ip6-loopback\n"
        "fe00::0\tip6-localnet\n"
        "fe00::0\tip6-mcastprefix\n"
        "fe00::1\tip6-allnodes\n"
        "fe00::2\tip6-allrouters\n";
    const PodHostname names = pod_hostname(pod, facts);
    for (const auto& ip : pod_ips) {
      if (!names.fqdn.empty()) {
        append(out, ip, '\t', names.fqdn, '\t', names.name, '\n');
      } else {
        append(out, ip, '\t', names.name, '\n');
      }
    }
  }
  add_aliases(spec["hostAliases"], out);
  return out;
}

Result<> check_sub_path(const std::string& path) {
  if (path.starts_with('/')) {
    return Error::invalid(cat("error SubPath `", path, "` must not be an absolute path"));
  }
  for (const auto part : split(path, '/')) {
    if (part == "..") {
      return Error::invalid(cat("unable to provision SubPath `", path, "`: must not contain '..'"));
    }
  }
  return success();
}

Result<std::string> expand_strictly(std::string_view text,
                                    const std::vector<std::pair<std::string, std::string>>& env) {
  std::string missing;
  std::string out = expand_references(text, env, &missing);
  if (!missing.empty()) return Error::invalid(cat("missing value for ", quoted(missing)));
  return out;
}

}  // namespace dibs::node
