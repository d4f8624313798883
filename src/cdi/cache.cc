#include "cdi/cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/mutex.h"
#include "base/strings.h"
#include "runtime/files.h"

namespace dibs::cdi {
namespace {

bool is_spec_name(std::string_view name) {
  return name.ends_with(".json") || name.ends_with(".yaml");
}

bool is_folder(const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

// As last read; `problem` when it cannot be used.
struct Cache::File {
  std::string bytes;
  Spec spec;
  Kind kind;
  std::string problem;

  static std::shared_ptr<const File> parse(const std::string& path, std::string bytes,
                                           const std::string& newest);
};

std::shared_ptr<const Cache::File> Cache::File::parse(const std::string& path, std::string bytes,
                                                      const std::string& newest) {
  auto file = std::make_shared<File>();
  file->bytes = std::move(bytes);
  auto spec = parse_spec(file->bytes);
  if (!spec.ok()) {
    file->problem = cat("failed to load CDI Spec failed to parse CDI Spec ", quoted(path), ": ",
                        spec.error().message());
  } else if (auto valid = validate(*spec, newest); !valid.ok()) {
    file->problem = cat("failed to load CDI Spec ", valid.error().message());
  } else {
    file->spec = std::move(*spec);
    file->kind = split_kind(file->spec.kind);
  }
  return file;
}

struct Cache::View {
  struct Entry {
    std::shared_ptr<const File> file;
    std::string path;
    const Device* device;
    std::size_t priority;
  };
  std::map<std::string, Entry> devices;
  std::map<std::string, std::vector<std::string>> problems;
};

Cache::Cache(std::vector<std::string> directories, HostNodes nodes, std::string newest)
    : directories_(std::move(directories)), nodes_(std::move(nodes)), newest_(std::move(newest)) {}

Cache::View Cache::look() {
  View view;
  Files seen;
  const Files known = last_seen();
  std::set<std::string> conflicts;
  for (std::size_t priority = 0; priority < directories_.size(); ++priority) {
    const std::string& directory = directories_[priority];
    auto names = runtime::system_files().list(directory);
    if (!names.ok()) {
      if (names.error().code() != Code::not_found) {
        view.problems[directory].push_back(names.error().message());
      }
      continue;
    }
    for (const auto& name : *names) {
      const std::string path = cat(directory, '/', name);
      if (!is_spec_name(name) || is_folder(path)) continue;
      auto bytes = runtime::system_files().read(path);
      if (!bytes.ok()) {
        // Gone since the listing: nobody can want it.
        if (bytes.error().code() == Code::not_found) continue;
        view.problems[path].push_back(cat("failed to load CDI Spec failed to read CDI Spec ",
                                          quoted(path), ": ", bytes.error().message()));
        continue;
      }
      auto& file = seen[path];
      const auto old = known.find(path);
      const bool same = old != known.end() && old->second->bytes == *bytes;
      file = same ? old->second : File::parse(path, std::move(*bytes), newest_);
      if (!file->problem.empty()) {
        view.problems[path].push_back(file->problem);
        continue;
      }
      for (const auto& device : file->spec.devices) {
        const std::string qualified =
            qualified_name(file->kind.vendor, file->kind.class_name, device.name);
        const View::Entry entry{file, path, &device, priority};
        const auto [other, fresh] = view.devices.emplace(qualified, entry);
        if (fresh) continue;
        if (other->second.priority < priority) {
          other->second = entry;
          continue;
        }
        const std::string problem = cat("conflicting device ", quoted(qualified), " (specs ",
                                        quoted(path), ", ", quoted(other->second.path), ")");
        view.problems[path].push_back(problem);
        view.problems[other->second.path].push_back(problem);
        conflicts.insert(qualified);
      }
    }
  }
  for (const auto& name : conflicts) view.devices.erase(name);
  const MutexLock lock(mutex_);
  files_ = std::move(seen);
  return view;
}

Cache::Files Cache::last_seen() {
  const MutexLock lock(mutex_);
  return files_;
}

Result<ContainerEdits> Cache::edits(const std::vector<std::string>& names) {
  ContainerEdits merged;
  if (names.empty()) return merged;
  const View view = look();
  std::vector<std::string> unknown;
  std::set<std::string_view> done;
  std::set<const File*> files;
  for (const auto& name : names) {
    if (!done.insert(name).second) continue;
    const auto found = view.devices.find(name);
    if (found == view.devices.end()) {
      unknown.push_back(name);
      continue;
    }
    const File& file = *found->second.file;
    if (files.insert(&file).second) merged.append(file.spec.edits);
    merged.append(found->second.device->edits);
  }
  if (unknown.empty()) return merged;
  std::string message = cat("unresolvable CDI devices ", join(unknown, ", "));
  std::set<std::string> remarks;
  for (const auto& [path, problems] : view.problems) {
    remarks.insert(problems.begin(), problems.end());
  }
  for (const auto& remark : remarks) append(message, "; ", remark);
  return Error::invalid(std::move(message));
}

Result<> Cache::inject(const std::vector<std::string>& names, json::Value& config) {
  DIBS_TRY(const ContainerEdits wanted, edits(names));
  if (auto applied = apply(wanted, config, nodes_); !applied.ok()) {
    return applied.error().within("failed to inject devices");
  }
  return success();
}

}  // namespace dibs::cdi
