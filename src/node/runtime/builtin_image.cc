#include "node/runtime/builtin_image.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/image_reference.h"
#include "base/strings.h"
#include "node/runtime/image_store.h"
#include "runtime/files.h"
#include "runtime/processes.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;

// Changes with what make_layer() writes, so that an older layer is not taken for it.
constexpr std::string_view kRevision = "3";

// Busybox has no printenv. A shell script would lose names that are no identifiers.
constexpr std::string_view kPrintenv = R"(#!/bin/awk -f
BEGIN {
  if (ARGC == 1) for (name in ENVIRON) print name "=" ENVIRON[name]
  for (i = 1; i < ARGC; i++) {
    if (ARGV[i] in ENVIRON) print ENVIRON[ARGV[i]]; else missing = 1
  }
  exit missing
}
)";
constexpr std::string_view kBash = "#!/bin/sh\nexec /bin/sh \"$@\"\n";
// Holds a pid namespace: as its first process it also buries what others leave behind.
constexpr std::string_view kPause =
    "#!/bin/sh\ntrap 'exit 0' TERM INT\nwhile :; do sleep 2147483647 & wait $!; done\n";

// Stands in for web servers: the first process of a container hears only signals that it handles.
constexpr std::string_view kServePages =
    "#!/bin/sh\ntrap 'exit 0' TERM INT QUIT\n"
    "httpd -f -p 80 -h /usr/share/nginx/html & wait $!\n";

std::string find_busybox() {
  for (const char* path : {"/bin/busybox", "/usr/bin/busybox", "/usr/local/bin/busybox"}) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    Elf64_Ehdr header;
    if (bytes.size() < sizeof header) continue;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) continue;
    bool is_static = true;
    for (int i = 0; i < header.e_phnum; ++i) {
      const std::size_t at = header.e_phoff + static_cast<std::size_t>(i) * header.e_phentsize;
      Elf64_Phdr part;
      if (at + sizeof part > bytes.size()) break;
      std::memcpy(&part, bytes.data() + at, sizeof part);
      if (part.p_type == PT_INTERP) is_static = false;
    }
    if (is_static) return path;
  }
  return "";
}

void write_file(const fs::path& path, std::string_view text, unsigned mode) {
  std::ofstream(path, std::ios::binary) << text;
  ::chmod(path.c_str(), mode);
}

Result<> make_layer(const fs::path& root, const std::string& busybox) {
  DIBS_TRY(const std::string applets, runtime::run_checked({.argv = {busybox, "--list"}}));
  for (const char* folder : {"bin",
                             "dev",
                             "etc",
                             "home",
                             "mnt",
                             "opt",
                             "proc",
                             "root",
                             "run",
                             "srv",
                             "sys",
                             "tmp",
                             "usr",
                             "usr/lib",
                             "usr/local",
                             "usr/local/bin",
                             "usr/share",
                             "usr/share/nginx",
                             "usr/share/nginx/html",
                             "var",
                             "var/log",
                             "var/tmp"}) {
    fs::create_directories(root / folder);
    ::chmod((root / folder).c_str(), 0755);
  }
  for (const char* folder : {"tmp", "var/tmp"}) ::chmod((root / folder).c_str(), 01777);
  ::chmod((root / "root").c_str(), 0700);
  fs::copy_file(busybox, root / "bin/busybox");
  ::chmod((root / "bin/busybox").c_str(), 0755);
  for (const auto name : split(trim(applets), '\n')) {
    if (name.empty() || name == "busybox") continue;
    fs::create_symlink("busybox", root / "bin" / name);
  }
  for (const char* link : {"sbin", "usr/bin", "usr/sbin"}) {
    fs::create_symlink(std::string_view(link) == "sbin" ? "bin" : "../bin", root / link);
  }
  fs::create_symlink("../run", root / "var/run");
  write_file(root / "bin/printenv", kPrintenv, 0755);
  write_file(root / "bin/bash", kBash, 0755);
  write_file(root / "pause", kPause, 0755);
  write_file(root / "bin/serve-pages", kServePages, 0755);
  write_file(root / "usr/share/nginx/html/index.html",
             "<h1>Served by the image that comes with dibs</h1>\n", 0644);
  write_file(root / "etc/passwd",
             "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n", 0644);
  write_file(root / "etc/group", "root:x:0:\nnogroup:x:65534:\n", 0644);
  write_file(root / "etc/nsswitch.conf", "hosts: files dns\n", 0644);
  write_file(root / "etc/hosts", "127.0.0.1\tlocalhost\n", 0644);
  return success();
}

}  // namespace

const std::vector<BuiltinName>& builtin_names() {
  static const std::vector<BuiltinName> names = [] {
    struct Repository {
      const char* name;
      std::vector<const char*> tags;
      std::vector<std::string> command;
    };
    const std::vector<Repository> repositories = {
        {"docker.io/library/alpine", {"latest", "3", "3.20", "3.21", "3.22"}, {"/bin/sh"}},
        {"docker.io/library/busybox", {"latest", "1.36", "1.37", "stable"}, {"sh"}},
        {"docker.io/library/debian",
         {"latest", "12", "13", "bookworm", "bookworm-slim", "stable", "stable-slim", "trixie"},
         {"bash"}},
        {"docker.io/library/nginx", {"latest", "stable", "alpine", "mainline"}, {"serve-pages"}},
        {"docker.io/library/ubuntu", {"latest", "20.04", "22.04", "24.04"}, {"/bin/bash"}},
        {"registry.k8s.io/e2e-test-images/busybox", {"1.29-4", "1.36.1-1", "1.37.0-1"}, {"sh"}},
        {"registry.k8s.io/pause", {"3.9", "3.10", "3.10.1"}, {"/pause"}},
    };
    std::vector<BuiltinName> all;
    for (const auto& repository : repositories) {
      for (const char* tag : repository.tags) {
        all.push_back({cat(repository.name, ":", tag), repository.command});
      }
    }
    return all;
  }();
  return names;
}

const std::vector<BuiltinName>& builtin_own_name() {
  static const std::vector<BuiltinName> name = {{cat(kBuiltinRepository, ":latest"), {"sh"}}};
  return name;
}

Result<std::vector<BuiltinName>> builtin_aliases(const std::vector<std::string>& names) {
  std::vector<BuiltinName> out;
  for (const auto& name : names) {
    auto reference = parse_image_reference(name);
    if (!reference.ok()) return reference.error().within(dibs::quoted(name));
    if (!reference->digest.empty()) {
      return Error::invalid(cat(dibs::quoted(name), ": a digest names one image, not this one"));
    }
    const bool tagged = name.ends_with(':' + reference->tag);
    std::vector<std::string> command = {"sh"};
    bool known = false;
    for (const auto& builtin : builtin_names()) {
      if (!builtin.name.starts_with(reference->repository + ':')) continue;
      command = builtin.command;
      known = true;
      if (!tagged) out.push_back(builtin);
    }
    if (tagged || !known) out.push_back({reference->text(), command});
  }
  return out;
}

json::Value builtin_config(const BuiltinName& name) {
  using json::Value;
  Value command = Value::array();
  for (const auto& word : name.command) command.push(word);
  return Value::object(
      {{"architecture", machine_architecture()},
       {"os", "linux"},
       {"author", cat("made from the machine's busybox for ", name.name)},
       {"config",
        Value::object(
            {{"Env", Value::array({"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:"
                                   "/bin"})},
             {"Cmd", command}})}});
}

Result<> make_private_folder(const std::string& path) {
  DIBS_CHECK(runtime::system_files().make_dirs(path, 0700));
  if (::chmod(path.c_str(), 0700) != 0) {
    return Error::internal(cat("close ", path, " to others: ", std::strerror(errno)));
  }
  return success();
}

Result<std::optional<std::string>> make_builtin_layer(const std::string& layers) {
  static const std::string busybox = find_busybox();
  if (busybox.empty()) return std::optional<std::string>();
  static const Result<std::string> digest = digest_of_file(busybox);
  if (!digest.ok()) return digest.error();
  const std::string name = cat("builtin-", kRevision, "-", digest->substr(7, 16));
  std::error_code failed;
  const fs::path target = fs::path(layers) / name;
  DIBS_CHECK(make_private_folder(layers));
  if (fs::exists(target, failed)) return std::optional(name);
  // Made aside and moved: another node or process may be doing the same.
  std::string aside = cat(target.string(), ".XXXXXX");
  try {
    if (::mkdtemp(aside.data()) == nullptr) {
      return Error::internal(cat("make the built-in image: ", std::strerror(errno)));
    }
    ::chmod(aside.c_str(), 0755);
    const Result<> made = make_layer(aside, busybox);
    if (made.ok()) fs::rename(aside, target, failed);
    if (!made.ok() || failed) fs::remove_all(aside);
    DIBS_CHECK(made);
  } catch (const std::exception& problem) {
    return Error::internal(cat("make the built-in image: ", problem.what()));
  }
  return std::optional(name);
}

}  // namespace dibs::node
