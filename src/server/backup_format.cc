#include "server/backup_format.h"

#include <openssl/evp.h>

#include <utility>

#include "base/strings.h"
#include "base/time.h"
#include "json/parse.h"

namespace dibs::server {
namespace {

constexpr std::int64_t kFormat = 1;
constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;

Error broken(std::size_t line, std::string_view what) {
  return Error::invalid(cat("line ", line, ": ", what));
}

void append_member(std::string& out, std::string_view name, std::string_view text) {
  out += ",\"";
  out += name;
  out += "\":";
  json::write_string(out, text);
}

}  // namespace

struct Digest::Impl {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~Impl() { EVP_MD_CTX_free(context); }
};

Digest::Digest() : impl_(std::make_unique<Impl>()) {
  EVP_DigestInit_ex(impl_->context, EVP_sha256(), nullptr);
}
Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;

void Digest::add(std::string_view bytes) {
  EVP_DigestUpdate(impl_->context, bytes.data(), bytes.size());
}

std::string Digest::end() {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_DigestFinal_ex(impl_->context, hash, &size);
  return hex_encode({reinterpret_cast<const char*>(hash), size});
}

void append_bytes_member(std::string& out, std::string_view bytes) {
  if (is_valid_utf8(bytes)) return append_member(out, "value", bytes);
  append_member(out, "base64", base64_encode(bytes));
}

Result<std::string> bytes_member(const json::Value& value) {
  const json::Value* text = value.find("value");
  const json::Value* packed = value.find("base64");
  if ((text == nullptr) == (packed == nullptr)) {
    return Error::invalid("must have either \"value\" or \"base64\"");
  }
  if (text != nullptr) {
    if (!text->is_string()) return Error::invalid("\"value\" must be a string");
    return text->str();
  }
  std::string bytes;
  if (!packed->is_string() || !base64_decode(packed->as_string(), bytes)) {
    return Error::invalid("\"base64\" is not base64");
  }
  return bytes;
}

bool is_backup_file_name(std::string_view name) {
  constexpr std::string_view kFolder = "pki/";
  if (!name.starts_with(kFolder) || name.size() > 100) return false;
  name.remove_prefix(kFolder.size());
  if (name.empty() || name.front() == '.') return false;
  return name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
             "0123456789.-_") == std::string_view::npos;
}

void BackupWriter::add(std::string& out, std::string_view line) {
  digest_.add(line);
  out += line;
}

void BackupWriter::head(std::string& out, const BackupHead& head) {
  std::string line =
      cat("{\"dibs\":\"backup\",\"format\":", kFormat, ",\"revision\":", head.revision);
  append_member(line, "taken", head.taken);
  line += "}\n";
  add(out, line);
}

Result<> BackupWriter::key(std::string& out, const store::Item& item) {
  if (!is_valid_utf8(item.key))
    return Error::invalid(cat("the key ", quoted(item.key), " is no text"));
  std::string line = "{\"key\":";
  json::write_string(line, item.key);
  append(line, ",\"created\":", item.created, ",\"modified\":", item.modified);
  append_bytes_member(line, item.value);
  line += "}\n";
  ++count_.keys;
  add(out, line);
  return success();
}

void BackupWriter::file(std::string& out, const BackupFile& file) {
  std::string line = "{\"file\":";
  json::write_string(line, file.name);
  append(line, ",\"mode\":", file.mode);
  append_bytes_member(line, file.bytes);
  line += "}\n";
  ++count_.files;
  add(out, line);
}

void BackupWriter::end(std::string& out) {
  append(out, "{\"keys\":", count_.keys, ",\"files\":", count_.files, ",\"sha256\":\"",
         digest_.end(), "\"}\n");
}

Result<BackupEntry> BackupReader::line(std::string_view text) {
  ++line_;
  if (stage_ == Stage::ended) return broken(line_, "there is more behind the end");
  if (text.size() > kMaxBackupLine) return broken(line_, "is too long");
  json::ParseOptions options;
  options.max_depth = 4;
  const auto value = json::parse(text, options);
  if (!value.ok() || !value->is_object()) return broken(line_, "is not a line of a backup");
  if (stage_ != Stage::head && value->contains("sha256")) return last(*value);
  digest_.add(text);
  digest_.add("\n");
  if (stage_ == Stage::head) return head(*value);
  return value->contains("file") ? file(*value) : key(*value);
}

Result<> BackupReader::end() const {
  if (stage_ == Stage::ended) return success();
  return broken(line_ + 1, "the backup is cut off: its end is missing");
}

Result<BackupEntry> BackupReader::head(const json::Value& value) {
  if (value["dibs"].as_string() != "backup" || !value["format"].is_integer()) {
    return broken(line_, "is not the head of a backup");
  }
  if (value["format"].as_int() != kFormat) {
    return broken(line_, cat("the backup has format ", value["format"].as_int(),
                             ", this program knows ", kFormat));
  }
  if (!value["revision"].is_integer() || value["revision"].as_int() < 0) {
    return broken(line_, "\"revision\" must be a number, not below 0");
  }
  if (!parse_rfc3339(value["taken"].as_string()).ok()) return broken(line_, "\"taken\" is no time");
  head_ = {value["revision"].as_int(), value["taken"].str()};
  stage_ = Stage::keys;
  return BackupEntry(head_);
}

Result<BackupEntry> BackupReader::key(const json::Value& value) {
  if (stage_ != Stage::keys) return broken(line_, "a key behind the files");
  store::Item item;
  item.key = value["key"].str();
  if (!item.key.starts_with(store::kObjects)) {
    return broken(line_, cat("the key must begin with ", store::kObjects));
  }
  if (item.key <= before_) return broken(line_, "keys must be in byte order, each once");
  before_ = item.key;
  if (!value["created"].is_integer() || !value["modified"].is_integer()) {
    return broken(line_, "\"created\" and \"modified\" must be numbers");
  }
  item.created = value["created"].as_int();
  item.modified = value["modified"].as_int();
  if (item.created < 1 || item.created > item.modified || item.modified > head_.revision) {
    return broken(line_, "1 <= created <= modified <= revision does not hold");
  }
  auto bytes = bytes_member(value);
  if (!bytes.ok()) return broken(line_, bytes.error().message());
  item.value = std::move(bytes).value();
  ++count_.keys;
  return BackupEntry(std::move(item));
}

Result<BackupEntry> BackupReader::file(const json::Value& value) {
  if (stage_ == Stage::keys) before_.clear();
  stage_ = Stage::files;
  BackupFile file;
  file.name = value["file"].str();
  if (!is_backup_file_name(file.name)) return broken(line_, "no name that a file may have");
  if (file.name <= before_) return broken(line_, "files must be in byte order, each once");
  before_ = file.name;
  const std::int64_t mode = value["mode"].as_int(-1);
  if (mode < 0 || mode > 0777) return broken(line_, "\"mode\" must be between 0 and 511");
  file.mode = static_cast<unsigned>(mode);
  auto bytes = bytes_member(value);
  if (!bytes.ok()) return broken(line_, bytes.error().message());
  if (bytes->size() > kMaxFileBytes) return broken(line_, "the file is too long");
  file.bytes = std::move(bytes).value();
  ++count_.files;
  return BackupEntry(std::move(file));
}

Result<BackupEntry> BackupReader::last(const json::Value& value) {
  if (value["keys"].as_int(-1) != static_cast<std::int64_t>(count_.keys) ||
      value["files"].as_int(-1) != static_cast<std::int64_t>(count_.files)) {
    return broken(line_, "something is missing: the end counts other numbers of keys or files");
  }
  if (value["sha256"].as_string() != digest_.end()) {
    return broken(line_, "the backup was changed: its SHA-256 is another");
  }
  stage_ = Stage::ended;
  return BackupEntry(count_);
}

}  // namespace dibs::server
