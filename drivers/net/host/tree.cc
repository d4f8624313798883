#include "drivers/net/host/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <deque>
#include <memory>

#include "base/strings.h"

namespace dibs::drivers::net {
namespace {

constexpr int kMaxLinks = 40;
constexpr std::size_t kMaxFile = 64 * 1024;

std::optional<std::string> read_link(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink(path.c_str(), target, sizeof target);
  if (size <= 0) return std::nullopt;
  return std::string(target, static_cast<std::size_t>(size));
}

void put_before(std::deque<std::string>& rest, std::string_view path) {
  const auto parts = split(path, '/');
  rest.insert(rest.begin(), parts.begin(), parts.end());
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

std::string Tree::host_path(std::string_view canonical) const { return cat(root_, "/", canonical); }

std::optional<std::string> Tree::resolve(std::string_view path) const {
  if (path.find('\0') != std::string_view::npos) return std::nullopt;
  std::deque<std::string> rest;
  put_before(rest, path);
  std::vector<std::string> done;
  int links = 0;
  while (!rest.empty()) {
    const std::string part = std::move(rest.front());
    rest.pop_front();
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (!done.empty()) done.pop_back();
      continue;
    }
    done.push_back(part);
    const auto target = read_link(host_path(join(done, "/")));
    if (!target) continue;
    if (++links > kMaxLinks) return std::nullopt;
    done.pop_back();
    if (target->front() == '/') done.clear();
    put_before(rest, *target);
  }
  std::string canonical = join(done, "/");
  struct stat found = {};
  if (::lstat(host_path(canonical).c_str(), &found) != 0) return std::nullopt;
  return canonical;
}

bool Tree::is_link(std::string_view path) const {
  const std::size_t slash = path.rfind('/');
  const auto folder = resolve(slash == std::string_view::npos ? "" : path.substr(0, slash));
  if (!folder) return false;
  struct stat found = {};
  return ::lstat(host_path(cat(*folder, "/", last_part(path))).c_str(), &found) == 0 &&
         S_ISLNK(found.st_mode);
}

std::optional<std::string> Tree::read(std::string_view path) const {
  const auto canonical = resolve(path);
  if (!canonical) return std::nullopt;
  // Never waits, should it be a pipe.
  const Descriptor file(
      ::open(host_path(*canonical).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat found = {};
  if (file.get() < 0 || ::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) {
    return std::nullopt;
  }
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t size = ::read(file.get(), buffer, sizeof buffer);
    if (size < 0) return std::nullopt;
    if (size == 0) return std::string(trim(text));
    text.append(buffer, static_cast<std::size_t>(size));
    if (text.size() > kMaxFile) return std::nullopt;
  }
}

std::optional<std::int64_t> Tree::read_number(std::string_view path) const {
  const auto text = read(path);
  if (!text) return std::nullopt;
  std::int64_t number = 0;
  const char* end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

std::vector<std::string> Tree::list(std::string_view path) const {
  std::vector<std::string> names;
  const auto canonical = resolve(path);
  if (!canonical) return names;
  struct Close {
    void operator()(DIR* folder) const { ::closedir(folder); }
  };
  const std::unique_ptr<DIR, Close> folder(::opendir(host_path(*canonical).c_str()));
  if (!folder) return names;
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace dibs::drivers::net
