#pragma once
// The format of a backup (docs/formats/backup.md): lines of JSON, a head, a line for every key in
// byte order, files of the data folder, and an end with a digest of everything before it.
//
// Writer and reader keep a line at most in memory. For one thread each.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "json/value.h"
#include "store/state.h"

namespace dibs::server {

/// Of a line: what a store takes in one transaction, escaped at its worst.
inline constexpr std::size_t kMaxBackupLine = std::size_t{64} << 20;

struct BackupHead {
  store::Revision revision = 0;
  std::string taken;  // RFC 3339
};

/// A file of the data folder: "pki/ca.key".
struct BackupFile {
  std::string name;
  unsigned mode = 0600;
  std::string bytes;
};

struct BackupEnd {
  std::size_t keys = 0;
  std::size_t files = 0;
};

/// SHA-256 of what was added.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;
  void add(std::string_view bytes);
  /// In hexadecimal. Nothing is added after it.
  std::string end();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Each call appends its lines to `out`: the head first, then keys, then files, then the end.
class BackupWriter {
 public:
  void head(std::string& out, const BackupHead& head);
  /// Errors: invalid, for a key that is no text.
  Result<> key(std::string& out, const store::Item& item);
  void file(std::string& out, const BackupFile& file);
  void end(std::string& out);

 private:
  void add(std::string& out, std::string_view line);

  Digest digest_;
  BackupEnd count_;
};

using BackupEntry = std::variant<BackupHead, store::Item, BackupFile, BackupEnd>;

class BackupReader {
 public:
  /// The next line, without its '\n'. Errors: invalid, with what is wrong with it: after one,
  /// nothing that was read before counts.
  Result<BackupEntry> line(std::string_view text);
  /// Errors: invalid, when the end has not come.
  Result<> end() const;

 private:
  Result<BackupEntry> head(const json::Value& value);
  Result<BackupEntry> key(const json::Value& value);
  Result<BackupEntry> file(const json::Value& value);
  Result<BackupEntry> last(const json::Value& value);

  enum class Stage : std::uint8_t { head, keys, files, ended };
  Stage stage_ = Stage::head;
  std::size_t line_ = 0;
  std::string before_;  // the last key, or name of a file
  Digest digest_;
  BackupEnd count_;
  BackupHead head_;
};

/// A name that a file of a backup may have: "pki/" and a plain name.
bool is_backup_file_name(std::string_view name);

/// A member "value" or, of bytes that are no text, "base64".
void append_bytes_member(std::string& out, std::string_view bytes);
/// Errors: invalid.
Result<std::string> bytes_member(const json::Value& value);

}  // namespace dibs::server
