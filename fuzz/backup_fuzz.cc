// Any bytes as a backup: what is read is written as something that reads the same, and nothing that
// is cut off or changed counts.
#include <vector>

#include "base/strings.h"
#include "fuzz/targets.h"
#include "server/backup_format.h"

namespace dibs::fuzz {
namespace {

using server::BackupEntry;

/// All entries, or nothing where it is refused.
std::vector<BackupEntry> read(std::string_view text) {
  server::BackupReader reader;
  std::vector<BackupEntry> entries;
  while (!text.empty()) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return {};
    auto entry = reader.line(text.substr(0, end));
    if (!entry.ok()) {
      require(!entry.error().message().empty(), "an error has a message");
      return {};
    }
    entries.push_back(std::move(entry).value());
    text.remove_prefix(end + 1);
  }
  return reader.end().ok() ? std::move(entries) : std::vector<BackupEntry>();
}

std::string write(const std::vector<BackupEntry>& entries) {
  server::BackupWriter writer;
  std::string out;
  for (const auto& entry : entries) {
    if (const auto* head = std::get_if<server::BackupHead>(&entry)) writer.head(out, *head);
    if (const auto* item = std::get_if<store::Item>(&entry)) {
      require(writer.key(out, *item).ok(), "a key that was read can be written");
      require(item->key.starts_with(store::kObjects), "keys are those of objects");
    }
    if (const auto* file = std::get_if<server::BackupFile>(&entry)) {
      require(file->name.starts_with("pki/") && file->name.find('/', 4) == std::string::npos &&
                  file->name.find("..") != 4,
              "a file stays in its folder");
      writer.file(out, *file);
    }
    if (std::holds_alternative<server::BackupEnd>(entry)) writer.end(out);
  }
  return out;
}

void check_backup(std::string_view text) {
  const auto entries = read(text);
  if (entries.empty()) return;
  const std::string written = write(entries);
  const auto again = read(written);
  require(again.size() == entries.size(), "a backup reads back");
  require(write(again) == written, "and is written the same");
  const auto last = written.rfind('\n', written.size() - 2);
  require(last == std::string::npos || read(written.substr(0, last + 1)).empty(),
          "without its end it is none");
}

/// With the end that it should have, which chance would not find.
void check_sealed(std::string_view text) {
  std::size_t keys = 0;
  std::size_t files = 0;
  for (const std::string_view line : split(text, '\n')) {
    if (line.find("\"key\"") != std::string_view::npos) ++keys;
    if (line.find("\"file\"") != std::string_view::npos) ++files;
  }
  server::Digest digest;
  digest.add(text);
  check_backup(
      cat(text, "{\"keys\":", keys, ",\"files\":", files, ",\"sha256\":\"", digest.end(), "\"}\n"));
}

/// Any bytes as the value of a key.
void check_value(std::string_view bytes) {
  server::BackupWriter writer;
  std::string out;
  writer.head(out, {9, "2030-01-02T03:04:05Z"});
  require(writer.key(out, {"/registry/x", std::string(bytes), 3, 7}).ok(), "a value is written");
  writer.end(out);
  const auto entries = read(out);
  require(entries.size() == 3, "what is written is whole");
  require(std::get<store::Item>(entries[1]).value == bytes, "and has the value");
}

}  // namespace

int fuzz_backup(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      check_backup(text);
      break;
    case 1:
      check_sealed(text);
      break;
    case 2:
      check_value(text);
      break;
  }
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_backup)
