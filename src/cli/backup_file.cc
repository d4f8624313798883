#include "cli/backup_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::cli {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;

/// A new name lasts when its folder is on the disk.
int sync_folder(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -1;
  const int synced = ::fsync(fd);
  ::close(fd);
  return synced;
}

}  // namespace

Result<std::optional<std::string_view>> LineBuffer::take() {
  const std::size_t end = bytes_.find('\n', at_);
  if (end != std::string::npos && end - at_ <= server::kMaxBackupLine) {
    const std::string_view line = std::string_view(bytes_).substr(at_, end - at_);
    at_ = end + 1;
    return std::optional(line);
  }
  if (bytes_.size() - at_ > server::kMaxBackupLine) {
    return Error::invalid("is no backup: a line of it is too long");
  }
  bytes_.erase(0, at_);
  at_ = 0;
  return std::optional<std::string_view>();
}

BackupOutput::BackupOutput(std::string path, int fd)
    : path_(std::move(path)), partial_(path_ + ".partial"), fd_(fd) {}

BackupOutput::~BackupOutput() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(partial_.c_str());
}

Result<std::unique_ptr<BackupOutput>> BackupOutput::open(const std::string& path) {
  const std::string partial = path + ".partial";
  // One that was left by a killed command goes.
  ::unlink(partial.c_str());
  const int fd = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return Error::unavailable(cat("cannot write ", partial, ": ", std::strerror(errno)));
  return std::unique_ptr<BackupOutput>(new BackupOutput(path, fd));
}

Error BackupOutput::fail(std::string_view what) const {
  return Error::unavailable(cat("cannot ", what, " ", partial_, ": ", std::strerror(errno)));
}

Result<> BackupOutput::flush(std::size_t above) {
  if (waiting_.size() <= above) return success();
  for (std::string_view rest = waiting_; !rest.empty();) {
    const auto written = ::write(fd_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail("write");
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  waiting_.clear();
  return success();
}

Result<> BackupOutput::head(const server::BackupHead& head) {
  writer_.head(waiting_, head);
  return success();
}

Result<> BackupOutput::key(const store::Item& item) {
  DIBS_CHECK(writer_.key(waiting_, item));
  return flush(kChunk);
}

Result<> BackupOutput::file(const server::BackupFile& file) {
  writer_.file(waiting_, file);
  return flush(kChunk);
}

Result<> BackupOutput::finish() {
  writer_.end(waiting_);
  DIBS_CHECK(flush(0));
  if (::fsync(fd_) != 0) return fail("write");
  if (::rename(partial_.c_str(), path_.c_str()) != 0) return fail("rename");
  ::close(std::exchange(fd_, -1));
  if (sync_folder(path_) != 0) return fail("keep the name of");
  return success();
}

BackupInput::~BackupInput() { ::close(fd_); }

Result<std::unique_ptr<BackupInput>> BackupInput::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Error::not_found(cat("cannot read ", path, ": ", std::strerror(errno)));
  auto input = std::unique_ptr<BackupInput>(new BackupInput(path, fd));
  while (true) {
    DIBS_TRY(auto entry, input->entry());
    if (auto* head = std::get_if<server::BackupHead>(&entry)) input->head_ = std::move(*head);
    if (auto* file = std::get_if<server::BackupFile>(&entry)) {
      input->files_.push_back(std::move(*file));
    }
    if (std::holds_alternative<server::BackupEnd>(entry)) break;
  }
  DIBS_TRY(const auto more, input->line());
  if (more || input->lines_.has_rest()) {
    return Error::invalid(cat(path, ": there is more behind the end"));
  }
  DIBS_CHECK(input->rewind());
  return input;
}

Result<std::optional<std::string_view>> BackupInput::line() {
  while (true) {
    auto line = lines_.take();
    if (!line.ok()) return line.error().within(path_);
    if (*line) return *line;
    char bytes[65536];
    const auto size = ::read(fd_, bytes, sizeof bytes);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return Error::unavailable(cat("cannot read ", path_, ": ", std::strerror(errno)));
    if (size == 0) return std::optional<std::string_view>();
    lines_.add({bytes, static_cast<std::size_t>(size)});
  }
}

Result<server::BackupEntry> BackupInput::entry() {
  DIBS_TRY(const auto text, line());
  if (!text) {
    auto whole = reader_.end();
    return (whole.ok() ? Error::internal("read behind its end") : whole.error()).within(path_);
  }
  place_ = offset_;
  offset_ += static_cast<std::int64_t>(text->size()) + 1;
  auto entry = reader_.line(*text);
  if (!entry.ok()) return entry.error().within(path_);
  return entry;
}

Result<bool> BackupInput::next(store::Item& item) {
  while (true) {
    DIBS_TRY(auto found, entry());
    if (auto* key = std::get_if<store::Item>(&found)) {
      if (!store::is_of_state(key->key)) continue;
      item = std::move(*key);
      return true;
    }
    if (std::holds_alternative<server::BackupEnd>(found)) return false;
  }
}

Result<> BackupInput::rewind() {
  if (::lseek(fd_, 0, SEEK_SET) != 0) {
    return Error::unavailable(cat("cannot read ", path_, ": ", std::strerror(errno)));
  }
  lines_ = {};
  reader_ = {};
  offset_ = place_ = 0;
  return success();
}

Result<store::Item> BackupInput::at(std::int64_t place) const {
  std::string text;
  while (text.find('\n') == std::string::npos) {
    char bytes[65536];
    const auto size =
        ::pread(fd_, bytes, sizeof bytes, place + static_cast<std::int64_t>(text.size()));
    if (size <= 0 || text.size() > server::kMaxBackupLine) {
      return Error::unavailable(cat("cannot read ", path_, ": it was changed"));
    }
    text.append(bytes, static_cast<std::size_t>(size));
  }
  const auto value = json::parse(std::string_view(text).substr(0, text.find('\n')));
  if (!value.ok()) return Error::unavailable(cat("cannot read ", path_, ": it was changed"));
  store::Item item;
  item.key = (*value)["key"].str();
  DIBS_TRY(item.value, server::bytes_member(*value));
  return item;
}

}  // namespace dibs::cli
