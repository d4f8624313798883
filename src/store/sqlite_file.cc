#include "store/sqlite_file.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <map>
#include <utility>

#include "base/strings.h"
#include "store/fill.h"

namespace dibs::store {
namespace {

constexpr std::int64_t kFormat = 1;
constexpr std::int64_t kApplicationId = 0x64696273;  // "dibs"
constexpr int kOpBits = 16;
constexpr int kMostFaults = 100;  // that SQLite tells

struct CloseDatabase {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

bool has_bytes(const std::string& path) {
  struct stat found = {};
  return ::stat(path.c_str(), &found) == 0 && found.st_size > 0;
}

/// When the file was last written; 0 where it cannot be told.
std::int64_t written_at(const std::string& path) {
  struct stat found = {};
  if (::stat(path.c_str(), &found) != 0) return 0;
  return std::int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec;
}

/// The newest row of a key.
struct Newest {
  std::int64_t position = 0;
  Revision created = 0;
  bool removed = false;

  Revision revision() const { return position >> kOpBits; }
};
using Keys = std::map<std::string, Newest, std::less<>>;

struct Row {
  std::int64_t position = 0;
  std::string_view key;
  bool removed = false;
  Revision created = 0;

  Revision revision() const { return position >> kOpBits; }
};

/// What is wrong with a row, or "". `before` is the key's row before it, where there is one.
std::string fault_of(const Row& row, const Newest* before, Revision compacted) {
  if (row.revision() < 1) return "its revision is below 1";
  if (row.key.empty()) return "its key is empty";
  if (row.created < 0 || row.created > row.revision()) return "it was created after itself";
  if ((row.created == 0) != row.removed) return "only a removal was never created";
  if (before != nullptr && before->revision() == row.revision()) {
    return "its transaction names the key twice";
  }
  // Of what was compacted any part may be left.
  if (row.revision() <= compacted || (before != nullptr && before->revision() <= compacted)) {
    return "";
  }
  const bool existed = before != nullptr && !before->removed;
  if (row.removed) return existed ? "" : "it removes what was not there";
  if (existed && row.created != before->created) return "it was created anew while it was there";
  if (!existed && row.created != row.revision()) return "it goes on with what was not there";
  return "";
}

}  // namespace

struct SqliteFile::Impl {
  std::string path;
  std::shared_ptr<const AtRest> at_rest;
  Database db;
  Statement read;
  Keys keys;
  Keys::const_iterator at;
  Revision compacted = 0;
  Revision revision = 0;
  std::size_t rows = 0;
  std::string unfinished;
  bool alone = false;        // nobody had it open when it was
  std::int64_t written = 0;  // at that time

  Error fail(int result) const {
    const std::string text = db ? sqlite3_errmsg(db.get()) : sqlite3_errstr(result);
    switch (result & 0xff) {
      case SQLITE_NOTADB:
        return Error::invalid(cat(path, " is not a database, or its beginning is damaged"));
      case SQLITE_CORRUPT:
        return Error::internal(cat(path, " is damaged (", text, ")"));
      default:
        return Error::unavailable(cat("cannot read ", path, ": ", text));
    }
  }

  Result<> connect() {
    if (!has_bytes(path)) return Error::not_found(cat(path, ": there is no store"));
    // Without a write-ahead log nobody has it open, and SQLite would make one to read: it is told
    // that the file does not change, and looked at afterwards whether that was so.
    alone = !has_bytes(path + "-wal");
    written = written_at(path);
    const std::string uri =
        cat("file:", percent_encode(path), "?mode=ro", alone ? "&immutable=1" : "");
    sqlite3* opened = nullptr;
    const int result =
        sqlite3_open_v2(uri.c_str(), &opened,
                        SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
    db.reset(opened);
    if (result != SQLITE_OK) return fail(result);
    sqlite3_extended_result_codes(db.get(), 1);
    sqlite3_busy_timeout(db.get(), 5000);
    // One state from here to the end.
    if (const int begun = sqlite3_exec(db.get(), "BEGIN", nullptr, nullptr, nullptr);
        begun != SQLITE_OK) {
      return fail(begun);
    }
    return success();
  }

  Result<> check_unchanged() const {
    if (!alone || (!has_bytes(path + "-wal") && written_at(path) == written)) return success();
    return Error::unavailable(cat(path, " was changed while it was read: try again"));
  }

  Result<Statement> prepare(const char* sql) const {
    sqlite3_stmt* made = nullptr;
    const int result = sqlite3_prepare_v2(db.get(), sql, -1, &made, nullptr);
    Statement statement(made);
    if (result != SQLITE_OK) return fail(result);
    return statement;
  }

  Result<std::int64_t> number(const char* sql) const {
    DIBS_TRY(const auto statement, prepare(sql));
    const int result = sqlite3_step(statement.get());
    if (result == SQLITE_ROW) return sqlite3_column_int64(statement.get(), 0);
    if (result == SQLITE_DONE) return std::int64_t{-1};
    return fail(result);
  }

  Result<> check_kind() {
    DIBS_TRY(const auto application, number("PRAGMA application_id"));
    if (application != kApplicationId) {
      return Error::invalid(cat(path, " is a database of another program"));
    }
    DIBS_TRY(const auto format, number("SELECT value FROM meta WHERE name = 'format'"));
    if (format < 1) return Error::internal(cat(path, " is damaged (it names no format)"));
    if (format > kFormat) {
      return Error::invalid(
          cat(path, " has format ", format, ", this program knows up to ", kFormat));
    }
    DIBS_TRY(compacted, number("SELECT value FROM meta WHERE name = 'compacted'"));
    if (compacted < 0) return Error::internal(cat(path, " is damaged (it names no compaction)"));
    return success();
  }

  /// Every row in order, without its value.
  template <typename Take>
  Result<> each_row(Take take) const {
    DIBS_TRY(const auto statement,
             prepare("SELECT position, key, value IS NULL, created FROM log ORDER BY position"));
    sqlite3_stmt* row = statement.get();
    int result = 0;
    while ((result = sqlite3_step(row)) == SQLITE_ROW) {
      const auto* key = static_cast<const char*>(sqlite3_column_blob(row, 1));
      const auto size = static_cast<std::size_t>(sqlite3_column_bytes(row, 1));
      take(Row{sqlite3_column_int64(row, 0),
               key == nullptr ? std::string_view() : std::string_view(key, size),
               sqlite3_column_int(row, 2) != 0, sqlite3_column_int64(row, 3)});
    }
    if (result != SQLITE_DONE) return fail(result);
    return success();
  }

  Result<> load() {
    revision = compacted;
    DIBS_CHECK(each_row([this](const Row& row) {
      ++rows;
      revision = std::max(revision, row.revision());
      keys[std::string(row.key)] = {row.position, row.created, row.removed};
    }));
    std::erase_if(keys, [](const auto& entry) { return entry.second.removed; });
    DIBS_TRY(read, prepare("SELECT value FROM log WHERE position = ?1"));
    if (const auto mark = keys.find(kUnfinished); mark != keys.end()) {
      DIBS_TRY(unfinished, value_at(mark->second.position));
    }
    std::erase_if(keys, [](const auto& entry) { return !is_of_state(entry.first); });
    at = keys.begin();
    return success();
  }

  Result<std::string> value_at(std::int64_t position) const {
    sqlite3_reset(read.get());
    sqlite3_bind_int64(read.get(), 1, position);
    if (const int result = sqlite3_step(read.get()); result != SQLITE_ROW) return fail(result);
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(read.get(), 0));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(read.get(), 0));
    return bytes == nullptr ? std::string() : std::string(bytes, size);
  }
};

SqliteFile::SqliteFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SqliteFile::~SqliteFile() = default;

Result<std::unique_ptr<SqliteFile>> SqliteFile::open(const std::string& path,
                                                     std::shared_ptr<const AtRest> at_rest) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->at_rest = std::move(at_rest);
  DIBS_CHECK(impl->connect());
  DIBS_CHECK(impl->check_kind());
  DIBS_CHECK(impl->load());
  return std::unique_ptr<SqliteFile>(new SqliteFile(std::move(impl)));
}

Revision SqliteFile::revision() const { return impl_->revision; }
std::size_t SqliteFile::rows() const { return impl_->rows; }
const std::string& SqliteFile::unfinished() const { return impl_->unfinished; }

bool SqliteFile::may_be_in_use() const { return !impl_->alone; }

Result<bool> SqliteFile::next(Item& item) {
  if (impl_->at == impl_->keys.end()) {
    DIBS_CHECK(impl_->check_unchanged());
    return false;
  }
  const auto& [key, newest] = *impl_->at++;
  item.key = key;
  item.created = newest.created;
  item.modified = newest.revision();
  DIBS_TRY(item.value, impl_->value_at(newest.position));
  if (!impl_->at_rest) {
    if (!item.value.starts_with(kSealed)) return true;
    return Error::invalid(cat(key,
                              " is encrypted: give the --encryption-provider-config that it "
                              "was written with"));
  }
  auto opened = impl_->at_rest->open(key, item.value);
  if (!opened.ok()) return opened.error().within(key);
  item.value = std::move(opened->value);
  return true;
}

Result<> SqliteFile::rewind() {
  impl_->at = impl_->keys.begin();
  return success();
}

Result<> SqliteFile::check(const std::function<void(std::string)>& fault) {
  DIBS_TRY(const auto statement,
           impl_->prepare(cat("PRAGMA integrity_check(", kMostFaults, ")").c_str()));
  int result = 0;
  while ((result = sqlite3_step(statement.get())) == SQLITE_ROW) {
    const auto* said = reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), 0));
    if (said != nullptr && std::string_view(said) != "ok") fault(cat("SQLite: ", said));
  }
  if (result != SQLITE_DONE) return impl_->fail(result);
  Keys seen;
  DIBS_CHECK(impl_->each_row([&](const Row& row) {
    const auto before = seen.find(row.key);
    const std::string wrong =
        fault_of(row, before == seen.end() ? nullptr : &before->second, impl_->compacted);
    if (!wrong.empty()) fault(cat("row ", row.position, " (", row.key, "): ", wrong));
    seen[std::string(row.key)] = {row.position, row.created, row.removed};
  }));
  return impl_->check_unchanged();
}

}  // namespace dibs::store
