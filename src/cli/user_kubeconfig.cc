#include "cli/user_kubeconfig.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/strings.h"
#include "client/kubeconfig.h"
#include "json/yaml.h"
#include "runtime/files.h"

namespace dibs::cli {
namespace {

using json::Value;

/// Says whose an entry is: kubectl keeps what it does not know.
constexpr const char* kExtension = "dibs.dev/data-dir";
constexpr const char* kBefore = "dibs.dev/context-before";
constexpr std::chrono::seconds kPatience{5};
constexpr std::time_t kForgotten = 60;
constexpr const char* kLists[] = {"clusters", "users", "contexts"};

Result<std::string> user_file() {
  const char* variable = std::getenv("KUBECONFIG");
  const char* home = std::getenv("HOME");
  const auto paths = client::Kubeconfig::paths("", variable ? variable : "", home ? home : "");
  if (paths.empty()) {
    return Error::bad_request("--merge: neither KUBECONFIG nor HOME says where your kubeconfig is");
  }
  return paths.front();
}

Result<Value> read_config(const std::string& file) {
  const auto text = runtime::system_files().read(file);
  if (!text.ok() && text.error().code() != Code::not_found) return text.error();
  if (!text.ok() || trim(*text).empty()) {
    return Value::object({{"apiVersion", "v1"}, {"kind", "Config"}});
  }
  auto parsed = json::parse_yaml(*text);
  if (!parsed.ok()) return parsed.error().within(file);
  if (!parsed->is_object()) return Error::invalid(cat(file, ": is no kubeconfig"));
  return parsed;
}

Result<> write_config(const std::string& file, const Value& config) {
  const auto folder = std::filesystem::path(file).parent_path().string();
  if (!folder.empty()) DIBS_CHECK(runtime::system_files().make_dirs(folder, 0700));
  // Through a link, as kubectl does: the file may be kept elsewhere.
  std::error_code failed;
  const auto place = std::filesystem::canonical(file, failed);
  return runtime::system_files().write(failed ? file : place.string(), json::write_yaml(config),
                                       0600);
}

/// Of the cluster entry, which alone says whose it is.
const Value& extension_of(const Value& cluster, std::string_view name) {
  for (const Value& extension : cluster["cluster"]["extensions"].items()) {
    if (extension["name"].as_string() == name) return extension["extension"];
  }
  return json::null_value();
}

bool is_ours(const Value& cluster, const std::string& folder) {
  return extension_of(cluster, kExtension).as_string() == folder;
}

/// kubectl takes the same file for the time of a change.
class Lock {
 public:
  static Result<Lock> take(const std::string& file) {
    const std::string path = file + ".lock";
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (true) {
      const int made = ::open(path.c_str(), O_CREAT | O_EXCL | O_CLOEXEC, 0600);
      if (made >= 0) {
        ::close(made);
        return Lock(path);
      }
      if (errno != EEXIST) {
        return Error::internal(cat("--merge: create ", path, ": ", std::strerror(errno)));
      }
      // Of one that was killed over it.
      struct stat found = {};
      if (::stat(path.c_str(), &found) == 0 && ::time(nullptr) - found.st_mtime > kForgotten) {
        ::unlink(path.c_str());
        continue;
      }
      if (std::chrono::steady_clock::now() > until) {
        return Error::unavailable(cat("--merge: ", path,
                                      " is there: another program is writing that file; where "
                                      "none is, remove it"));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  Lock(Lock&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Lock& operator=(Lock&&) = delete;
  ~Lock() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }

 private:
  explicit Lock(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

const Value* find(const Value& list, const std::string& name) {
  for (const Value& entry : list.items()) {
    if (entry["name"].as_string() == name) return &entry;
  }
  return nullptr;
}

Result<> check_names(const Value& config, const std::string& file, const std::string& context,
                     const std::string& folder) {
  const Value* known = find(config["clusters"], context);
  if (known != nullptr && is_ours(*known, folder)) return success();
  for (const char* list : kLists) {
    if (find(config[list], context) == nullptr) continue;
    return Error::conflict(cat("--merge: ", file, " has entries named ", quoted(context),
                               " that are not of this cluster: take them out, or give the cluster "
                               "another name"));
  }
  return success();
}

bool knows(const std::string& file, const std::string& context, const std::string& folder) {
  if (!runtime::system_files().exists(file)) return false;
  const auto config = read_config(file);
  if (!config.ok()) return false;  // not one that we wrote
  const Value* cluster = find((*config)["clusters"], context);
  return cluster != nullptr && is_ours(*cluster, folder);
}

/// The context that was the current one, to be it again.
std::string context_before(const Value& config, const std::string& context) {
  const std::string now = config["current-context"].str();
  if (now != context) return now;
  const Value* known = find(config["clusters"], context);
  return known == nullptr ? std::string() : extension_of(*known, kBefore).str();
}

void erase(Value& config, const std::string& name) {
  for (const char* list : kLists) {
    Value kept = Value::array({});
    for (const Value& entry : config[list].items()) {
      if (entry["name"].as_string() != name) kept.push(entry);
    }
    config.set(list, std::move(kept));
  }
}

}  // namespace

Result<> check_user_kubeconfig(const std::string& context, const std::string& folder) {
  DIBS_TRY(const std::string file, user_file());
  if (std::filesystem::path(file).parent_path() == folder) return success();
  const auto config = read_config(file);
  if (!config.ok()) return config.error().within("--merge");
  return check_names(*config, file, context, folder);
}

Result<std::string> join_user_kubeconfig(const std::string& context, const std::string& kubeconfig,
                                         const std::string& folder) {
  DIBS_TRY(std::string file, user_file());
  // The cluster's own file needs nothing.
  std::error_code failed;
  if (std::filesystem::equivalent(file, kubeconfig, failed)) return file;
  const auto place = std::filesystem::path(file).parent_path().string();
  if (!place.empty()) DIBS_CHECK(runtime::system_files().make_dirs(place, 0700));
  DIBS_TRY(const Lock lock, Lock::take(file));
  DIBS_TRY(Value config, read_config(file));
  DIBS_CHECK(check_names(config, file, context, folder));
  DIBS_TRY(const Value own, read_config(kubeconfig));
  const std::string before = context_before(config, context);
  erase(config, context);
  for (const char* list : kLists) {
    const Value* found = find(own[list], context);
    if (found == nullptr) return Error::internal(cat(kubeconfig, ": has no ", list, " ", context));
    Value entry = *found;
    if (std::string_view(list) == "clusters") {
      Value extensions =
          Value::array({Value::object({{"name", kExtension}, {"extension", folder}})});
      if (!before.empty()) {
        extensions.push(Value::object({{"name", kBefore}, {"extension", before}}));
      }
      entry.mut("cluster").set("extensions", std::move(extensions));
    }
    Value entries = config[list];
    entries.push(std::move(entry));
    config.set(list, std::move(entries));
  }
  config.set("current-context", context);
  DIBS_CHECK(write_config(file, config));
  return file;
}

Result<> leave_user_kubeconfig(const std::string& context, const std::string& folder,
                               std::vector<std::string> others) {
  if (const auto file = user_file(); file.ok()) others.push_back(*file);
  for (const std::string& file : others) {
    if (!knows(file, context, folder)) continue;
    DIBS_TRY(const Lock lock, Lock::take(file));
    auto config = read_config(file);
    if (!config.ok()) return config.error();
    const Value* cluster = find((*config)["clusters"], context);
    if (cluster == nullptr || !is_ours(*cluster, folder)) continue;
    const std::string before = extension_of(*cluster, kBefore).str();
    erase(*config, context);
    if ((*config)["current-context"].as_string() == context) {
      const bool is_there = find((*config)["contexts"], before) != nullptr;
      config->set("current-context", is_there ? before : std::string());
    }
    DIBS_CHECK(write_config(file, *config));
  }
  return success();
}

Result<> remove_kubeconfig(const std::string& file, const std::string& context,
                           std::string_view authority_pem) {
  const auto is_of_cluster = [&](const Value& config) {
    const Value* cluster = find(config["clusters"], context);
    std::string pem;
    return cluster != nullptr &&
           base64_decode((*cluster)["cluster"]["certificate-authority-data"].as_string(), pem) &&
           pem == authority_pem;
  };
  // What is no kubeconfig any more is not ours, and neither is its folder.
  const auto before = read_config(file);
  if (!before.ok() || !is_of_cluster(*before)) return success();
  DIBS_TRY(const Lock lock, Lock::take(file));
  DIBS_TRY(Value config, read_config(file));
  if (!is_of_cluster(config)) return success();
  erase(config, context);
  const bool is_empty = std::all_of(std::begin(kLists), std::end(kLists),
                                    [&](const char* list) { return config[list].size() == 0; });
  if (is_empty) return runtime::system_files().remove(file);
  if (config["current-context"].as_string() == context) config.set("current-context", "");
  return write_config(file, config);
}

}  // namespace dibs::cli
