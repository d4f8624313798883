#pragma once
// A backup in a file: written whole or not at all, and read only when it is whole.
//
// For one thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/backup_format.h"
#include "store/state.h"

namespace dibs::cli {

/// Cuts bytes that come in pieces into lines, none of them longer than a backup's may be.
class LineBuffer {
 public:
  void add(std::string_view bytes) { bytes_.append(bytes); }
  /// The next line without its '\n', valid until the next call; nothing while it is not complete.
  /// Errors: invalid, for one that is too long.
  Result<std::optional<std::string_view>> take();
  /// A line was begun and not ended.
  bool has_rest() const { return at_ < bytes_.size(); }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

/// Appears under its name, mode 0600, when it is complete.
class BackupOutput {
 public:
  static Result<std::unique_ptr<BackupOutput>> open(const std::string& path);
  ~BackupOutput();

  Result<> head(const server::BackupHead& head);
  Result<> key(const store::Item& item);
  Result<> file(const server::BackupFile& file);
  /// Durable when it returns.
  Result<> finish();

 private:
  BackupOutput(std::string path, int fd);
  Result<> flush(std::size_t above);
  Error fail(std::string_view what) const;

  const std::string path_;
  const std::string partial_;
  int fd_;
  std::string waiting_;
  server::BackupWriter writer_;
};

/// As a state, whose keys are read as they are asked for.
class BackupInput : public store::State {
 public:
  /// Reads all of it once. Errors: invalid, when it is not whole; of the file.
  static Result<std::unique_ptr<BackupInput>> open(const std::string& path);
  ~BackupInput() override;

  store::Revision revision() const override { return head_.revision; }
  Result<bool> next(store::Item& item) override;
  Result<> rewind() override;

  const server::BackupHead& head() const { return head_; }
  const std::vector<server::BackupFile>& files() const { return files_; }

  /// Where the line of the last key begins, and that key again.
  std::int64_t place() const { return place_; }
  Result<store::Item> at(std::int64_t place) const;

 private:
  BackupInput(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  Result<server::BackupEntry> entry();
  Result<std::optional<std::string_view>> line();

  const std::string path_;
  int fd_;
  server::BackupHead head_;
  std::vector<server::BackupFile> files_;
  LineBuffer lines_;
  server::BackupReader reader_;
  std::int64_t offset_ = 0;  // of the next line
  std::int64_t place_ = 0;
};

}  // namespace dibs::cli
