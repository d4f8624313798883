// The twin of files.cc without a disk.
#include <map>
#include <set>

#include "base/mutex.h"
#include "base/strings.h"
#include "runtime/files.h"

namespace dibs::runtime {

namespace {

struct Tree {
  Mutex mutex;
  std::map<std::string, std::string> files DIBS_GUARDED_BY(mutex);
  std::set<std::string> folders DIBS_GUARDED_BY(mutex){"", "/"};
  std::set<std::string> locks DIBS_GUARDED_BY(mutex);
};

class MemoryLock : public FileLock {
 public:
  MemoryLock(std::shared_ptr<Tree> tree, std::string path)
      : tree_(std::move(tree)), path_(std::move(path)) {}
  ~MemoryLock() override {
    const MutexLock lock(tree_->mutex);
    tree_->locks.erase(path_);
  }

 private:
  std::shared_ptr<Tree> tree_;
  std::string path_;
};

std::string folder_of(const std::string& path) {
  std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return "";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Error missing(std::string_view action, const std::string& path) {
  return Error::not_found(cat(action, ' ', path, ": No such file or directory"));
}

class MemoryFiles : public Files {
 public:
  Result<std::string> read(const std::string& path) override {
    const MutexLock lock(tree_->mutex);
    auto found = tree_->files.find(path);
    if (found == tree_->files.end()) return missing("open", path);
    return found->second;
  }

  Result<> write(const std::string& path, std::string_view bytes, unsigned) override {
    const MutexLock lock(tree_->mutex);
    if (!tree_->folders.contains(folder_of(path))) return missing("create", path);
    if (tree_->folders.contains(path)) {
      return Error::internal(cat("rename ", path, ": Is a directory"));
    }
    tree_->files[path] = bytes;
    return success();
  }

  Result<> remove(const std::string& path) override {
    const MutexLock lock(tree_->mutex);
    tree_->files.erase(path);
    return success();
  }

  bool exists(const std::string& path) override {
    const MutexLock lock(tree_->mutex);
    return tree_->files.contains(path) || tree_->folders.contains(path);
  }

  Result<> make_dirs(const std::string& path, unsigned) override {
    const MutexLock lock(tree_->mutex);
    for (std::size_t end = 0; end != std::string::npos;) {
      end = path.find('/', end + 1);
      std::string part = path.substr(0, end);
      if (tree_->files.contains(part)) {
        return Error::internal(cat("mkdir ", part, ": Not a directory"));
      }
      tree_->folders.insert(part);
    }
    return success();
  }

  Result<std::vector<std::string>> list(const std::string& path) override {
    const MutexLock lock(tree_->mutex);
    if (!tree_->folders.contains(path)) return missing("list", path);
    std::set<std::string> names;
    std::string prefix = path.empty() || path == "/" ? path : path + "/";
    auto note = [&](const std::string& entry) {
      if (entry.size() <= prefix.size() || !entry.starts_with(prefix)) return;
      std::string name = entry.substr(prefix.size());
      if (name.find('/') == std::string::npos) names.insert(name);
    };
    for (const auto& [name, bytes] : tree_->files) note(name);
    for (const std::string& name : tree_->folders) note(name);
    return std::vector<std::string>(names.begin(), names.end());
  }

  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    const MutexLock lock(tree_->mutex);
    if (!tree_->folders.contains(folder_of(path))) return missing("open", path);
    if (!tree_->locks.insert(path).second) {
      return Error::unavailable(cat("lock ", path, ": Resource temporarily unavailable"));
    }
    tree_->files.emplace(path, "");
    return std::unique_ptr<FileLock>(std::make_unique<MemoryLock>(tree_, path));
  }

 private:
  std::shared_ptr<Tree> tree_ = std::make_shared<Tree>();
};

}  // namespace

std::unique_ptr<Files> make_memory_files() { return std::make_unique<MemoryFiles>(); }

}  // namespace dibs::runtime
