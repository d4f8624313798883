#include "server/backup_format.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace dibs::server {
namespace {

std::string sample() {
  BackupWriter writer;
  std::string out;
  writer.head(out, {1234, "2030-01-02T03:04:05Z"});
  EXPECT_TRUE(
      writer.key(out, {"/registry/configmaps/a/x", "{\"a\":\"\\u2028<\xc3\xa4\"}", 7, 9}).ok());
  EXPECT_TRUE(writer.key(out, {"/registry/configmaps/a/y", std::string("\0\xff\n", 3), 8, 8}).ok());
  writer.file(out, {"pki/ca.key", 0600, "secret\n"});
  writer.end(out);
  return out;
}

/// What is in it, or the error.
std::string read(std::string_view text) {
  BackupReader reader;
  std::string out;
  while (!text.empty()) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return "cut";
    const auto entry = reader.line(text.substr(0, end));
    if (!entry.ok()) return entry.error().message();
    if (const auto* head = std::get_if<BackupHead>(&*entry)) out += cat(head->revision);
    if (const auto* item = std::get_if<store::Item>(&*entry)) {
      out += cat(" ", item->key, "=", hex_encode(item->value), "@", item->created, "-",
                 item->modified);
    }
    if (const auto* file = std::get_if<BackupFile>(&*entry)) {
      out += cat(" ", file->name, " ", file->mode, " ", file->bytes.size());
    }
    text.remove_prefix(end + 1);
  }
  const auto whole = reader.end();
  return whole.ok() ? out : whole.error().message();
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  text.replace(text.find(what), what.size(), by);
  return text;
}

TEST(BackupFormat, reads_back_as_it_was_written) {
  EXPECT_EQ(read(sample()),
            cat("1234 /registry/configmaps/a/x=", hex_encode("{\"a\":\"\\u2028<\xc3\xa4\"}"),
                "@7-9 /registry/configmaps/a/y=00ff0a@8-8 pki/ca.key 384 7"));
}

TEST(BackupFormat, is_refused_when_it_is_cut_off_after_any_line) {
  const std::string whole = sample();
  for (std::size_t at = whole.find('\n'); at + 1 < whole.size(); at = whole.find('\n', at + 1)) {
    const std::string said = read(whole.substr(0, at + 1));
    EXPECT_NE(said.find("cut off"), std::string::npos) << said;
  }
}

TEST(BackupFormat, is_refused_when_anything_was_changed) {
  const std::string whole = sample();
  EXPECT_NE(read(replaced(whole, "\"created\":7", "\"created\":6")).find("SHA-256"),
            std::string::npos);
  EXPECT_NE(read(replaced(whole, "secret", "Secret")).find("SHA-256"), std::string::npos);
  EXPECT_NE(read(replaced(whole, "\"revision\":1234", "\"revision\":1235")).find("SHA-256"),
            std::string::npos);
  EXPECT_NE(read(replaced(whole, "\"keys\":2", "\"keys\":3")).find("missing"), std::string::npos);
  EXPECT_NE(read(whole + whole).find("behind the end"), std::string::npos);
}

TEST(BackupFormat, says_what_is_wrong_with_a_line) {
  const std::string whole = sample();
  EXPECT_EQ(read("{}\n"), "line 1: is not the head of a backup");
  EXPECT_EQ(read(replaced(whole, "\"format\":1", "\"format\":2")),
            "line 1: the backup has format 2, this program knows 1");
  EXPECT_EQ(read(replaced(whole, "/registry/configmaps/a/x", "/registry/configmaps/a/z")),
            "line 3: keys must be in byte order, each once");
  EXPECT_EQ(read(replaced(whole, "/registry/configmaps/a/x", "/registry.dibs/unfinished")),
            "line 2: the key must begin with /registry/");
  EXPECT_EQ(read(replaced(whole, "\"modified\":9", "\"modified\":9999")),
            "line 2: 1 <= created <= modified <= revision does not hold");
  EXPECT_EQ(read(replaced(whole, "\"base64\"", "\"bytes\"")),
            "line 3: must have either \"value\" or \"base64\"");
  for (const char* name : {"pki/../x", "pki/", "pki/.x", "kubeconfig", "/etc/passwd", "pki/a/b"}) {
    EXPECT_EQ(read(replaced(whole, "pki/ca.key", name)), "line 4: no name that a file may have");
  }
}

}  // namespace
}  // namespace dibs::server
