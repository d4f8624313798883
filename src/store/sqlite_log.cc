#include "store/sqlite_log.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/strings.h"

namespace dibs::store {
namespace {

constexpr std::int64_t kFormat = 1;
constexpr std::int64_t kApplicationId = 0x64696273;  // "dibs"
constexpr int kOpBits = 16;
constexpr std::size_t kPageBytes = 16384;

constexpr const char* kSchema = R"(
  CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE log (position INTEGER PRIMARY KEY, key TEXT NOT NULL, value BLOB, created INTEGER NOT NULL);
  INSERT INTO meta VALUES ('format', 1), ('compacted', 0);
)";

std::int64_t first_position(Revision revision) { return revision << kOpBits; }

struct CloseDatabase {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

constexpr std::string_view kDiskFull = "the disk is full, cannot write ";

bool is_full(int os_error) { return os_error == ENOSPC || os_error == EDQUOT; }

Error disk_full(const std::string& path) {
  return Error::unavailable(cat(kDiskFull, path, ": free some space"));
}

/// What SQLite's result means to the owner of the file.
Error failure(const std::string& path, sqlite3* db, int result) {
  const std::string text = db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(result);
  const int os_error = db != nullptr ? sqlite3_system_errno(db) : 0;
  switch (result & 0xff) {
    case SQLITE_FULL:
      return disk_full(path);
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return Error::unavailable(
          cat("cannot write ", path, ": it or its directory is read-only for this user"));
    case SQLITE_CANTOPEN:
      if (is_full(os_error)) return disk_full(path);
      return Error::unavailable(cat("cannot open ", path, ": ",
                                    os_error != 0 ? std::strerror(os_error) : text.c_str(),
                                    ": check that the directory exists and is writable"));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Error::unavailable(cat(path, " is locked by another program: close that one"));
    case SQLITE_NOTADB:
      return Error::invalid(
          cat(path,
              " is not a database: it is another kind of file, or its beginning is damaged; "
              "restore a backup, or move it away to start empty"));
    case SQLITE_CORRUPT:
      return Error::internal(
          cat(path, " is damaged (", text, "): restore a backup, or move it away to start empty"));
    case SQLITE_IOERR:
      if (is_full(os_error)) return disk_full(path);
      return Error::unavailable(cat("cannot read or write ", path, ": ",
                                    os_error != 0 ? std::strerror(os_error) : text.c_str()));
    default:
      return Error::internal(cat(path, ": ", text));
  }
}

Error system_failure(const std::string& path, int error) {
  if (error == EROFS || error == EACCES || error == EPERM) {
    return Error::unavailable(
        cat("cannot write ", path, ": it or its directory is read-only for this user"));
  }
  if (is_full(error)) return disk_full(path);
  return Error::unavailable(cat("cannot open ", path, ": ", std::strerror(error),
                                ": check that the directory exists and is writable"));
}

/// Another process with the same file would count the same revisions: the lock keeps it out. It
/// ends with the process, however that ends.
Result<FileDescriptor> lock_file(const std::string& path) {
  const std::string name = cat(path, ".lock");
  FileDescriptor fd(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (fd.get() < 0) return system_failure(name, errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return system_failure(name, errno);
    char owner[32] = {};
    const auto size = ::pread(fd.get(), owner, sizeof(owner) - 1, 0);
    const auto pid = size > 0 ? trim(std::string_view(owner, static_cast<std::size_t>(size)))
                              : std::string_view();
    return Error::unavailable(cat(path, " is in use by another process",
                                  pid.empty() ? std::string() : cat(" (", pid, ")"),
                                  ": stop it, or choose another data directory"));
  }
  // Only for the message above: a failure to write it does no harm.
  const std::string pid = cat(::getpid(), "\n");
  if (::ftruncate(fd.get(), 0) == 0) {
    [[maybe_unused]] const auto written = ::pwrite(fd.get(), pid.data(), pid.size(), 0);
  }
  return fd;
}

/// SQLite would make the file readable for everyone; its companions take the mode of the file.
Result<> make_private(const std::string& path) {
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (fd.get() < 0) return system_failure(path, errno);
  return success();
}

void bind_text(sqlite3_stmt* statement, int index, std::string_view text) {
  sqlite3_bind_text(statement, index, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
}

}  // namespace

struct SqliteLog::Impl {
  std::string path;
  FileDescriptor lock;
  Database writer;
  Database checkpointer;
  Statement begin, commit, rollback, insert, erase, set_compacted;
  Revision noted_compacted = 0;
  std::size_t wal_pages = 0;
  std::shared_ptr<const AtRest> at_rest;
  std::vector<std::int64_t> stale;        // positions of values to be written anew
  mutable std::optional<Error> unsealed;  // why the last write failed, where it was not SQLite

  ~Impl() {
    for (Statement* statement : {&begin, &commit, &rollback, &insert, &erase, &set_compacted}) {
      statement->reset();
    }
    checkpointer.reset();
    if (writer) {
      sqlite3_wal_checkpoint_v2(writer.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr,
                                nullptr);
    }
  }

  Error fail(int result) const { return failure(path, writer.get(), result); }

  Result<> run(const char* sql) const {
    const int result = sqlite3_exec(writer.get(), sql, nullptr, nullptr, nullptr);
    if (result != SQLITE_OK) return fail(result);
    return success();
  }

  Result<std::int64_t> number(const char* sql) const {
    DIBS_TRY(auto statement, prepare(sql));
    const int result = sqlite3_step(statement.get());
    if (result == SQLITE_ROW) return sqlite3_column_int64(statement.get(), 0);
    if (result == SQLITE_DONE) return std::int64_t{-1};
    return fail(result);
  }

  Result<Statement> prepare(const char* sql) const {
    sqlite3_stmt* statement = nullptr;
    const int result =
        sqlite3_prepare_v3(writer.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (result != SQLITE_OK) return fail(result);
    return Statement(statement);
  }

  Result<Database> connect() const {
    sqlite3* db = nullptr;
    const int result =
        sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
    Database owned(db);
    if (result != SQLITE_OK) return failure(path, db, result);
    sqlite3_extended_result_codes(db, 1);
    sqlite3_busy_timeout(db, 5000);
    return owned;
  }

  static int step(const Statement& statement) {
    const int result = sqlite3_step(statement.get());
    sqlite3_reset(statement.get());
    return result == SQLITE_ROW ? SQLITE_DONE : result;
  }

  Result<> prepare_file(int max_pages);
  Result<> prepare_statements();
  Result<> load(const Loader& loader);
  Result<std::string> opened(std::string_view key, std::string_view bytes, std::int64_t position);
  Result<> rewrite_stale();
  int put(const Change& change, std::int64_t position) const;
  int write(const std::vector<Change>& changes, std::span<const Garbage> garbage,
            Revision compacted);
};

Result<> SqliteLog::Impl::prepare_file(int max_pages) {
  DIBS_TRY(writer, connect());
  DIBS_TRY(const auto tables, number("SELECT count(*) FROM sqlite_schema"));
  DIBS_TRY(const auto application, number("PRAGMA application_id"));
  if (tables > 0 && application != kApplicationId) {
    return Error::invalid(
        cat(path, " is a database of another program: choose another data directory"));
  }
  if (tables > 0) {
    DIBS_TRY(const auto format, number("SELECT value FROM meta WHERE name = 'format'"));
    if (format > kFormat) {
      return Error::invalid(
          cat(path, " has format ", format, ", this program knows up to ", kFormat,
              ": use the newer program that wrote it, or another data directory"));
    }
    if (format < 1) return failure(path, nullptr, SQLITE_CORRUPT);
  }
  // Of a new file. Objects of a few kilobytes would leave half of smaller pages empty.
  DIBS_CHECK(run(cat("PRAGMA page_size = ", kPageBytes).c_str()));
  DIBS_CHECK(run("PRAGMA journal_mode = WAL"));
  DIBS_CHECK(run("PRAGMA synchronous = FULL"));
  DIBS_CHECK(run("PRAGMA wal_autocheckpoint = 0"));
  DIBS_CHECK(run("PRAGMA journal_size_limit = 67108864"));
  // What is deleted or written anew is overwritten, so that no copy in plain text stays behind.
  if (at_rest) DIBS_CHECK(run("PRAGMA secure_delete = ON"));
  // Kilobytes. Rows are added at one end, so few pages are needed again.
  DIBS_CHECK(run("PRAGMA cache_size = -8192"));
  if (tables == 0) {
    DIBS_CHECK(
        run(cat("BEGIN IMMEDIATE; PRAGMA application_id = ", kApplicationId, ";", kSchema, "COMMIT")
                .c_str()));
  }
  if (max_pages > 0) DIBS_CHECK(run(cat("PRAGMA max_page_count = ", max_pages).c_str()));
  DIBS_TRY(checkpointer, connect());
  // A connection that has never read does not know of the write-ahead log, and would move nothing.
  if (const int result = sqlite3_exec(checkpointer.get(), "SELECT count(*) FROM sqlite_schema",
                                      nullptr, nullptr, nullptr);
      result != SQLITE_OK) {
    return failure(path, checkpointer.get(), result);
  }
  sqlite3_wal_hook(
      writer.get(),
      [](void* self, sqlite3*, const char*, int pages) {
        static_cast<Impl*>(self)->wal_pages = static_cast<std::size_t>(pages);
        return SQLITE_OK;
      },
      this);
  return success();
}

Result<> SqliteLog::Impl::prepare_statements() {
  DIBS_TRY(begin, prepare("BEGIN IMMEDIATE"));
  DIBS_TRY(commit, prepare("COMMIT"));
  DIBS_TRY(rollback, prepare("ROLLBACK"));
  DIBS_TRY(insert,
           prepare("INSERT INTO log (position, key, value, created) VALUES (?1, ?2, ?3, ?4)"));
  DIBS_TRY(erase, prepare("DELETE FROM log WHERE position BETWEEN ?1 AND ?2 AND key = ?3"));
  DIBS_TRY(set_compacted, prepare("UPDATE meta SET value = ?1 WHERE name = 'compacted'"));
  return success();
}

Result<> SqliteLog::Impl::load(const Loader& loader) {
  DIBS_TRY(noted_compacted, number("SELECT value FROM meta WHERE name = 'compacted'"));
  if (noted_compacted < 0) return failure(path, nullptr, SQLITE_CORRUPT);
  loader.begin(noted_compacted);
  DIBS_TRY(auto rows, prepare("SELECT position, key, value, created FROM log ORDER BY position"));
  sqlite3_stmt* row = rows.get();
  int result = 0;
  while ((result = sqlite3_step(row)) == SQLITE_ROW) {
    Change change;
    change.revision = sqlite3_column_int64(row, 0) >> kOpBits;
    const auto* key = static_cast<const char*>(sqlite3_column_blob(row, 1));
    const auto key_size = static_cast<std::size_t>(sqlite3_column_bytes(row, 1));
    const bool removed = sqlite3_column_type(row, 2) == SQLITE_NULL;
    const Revision created = sqlite3_column_int64(row, 3);
    if (change.revision < 1 || key_size == 0 || created < 0 || created > change.revision ||
        (created == 0) != removed) {
      return Error::internal(cat(path, " is damaged (row ", sqlite3_column_int64(row, 0),
                                 "): restore a backup, or move it away to start empty"));
    }
    if (removed) {
      change.removed.assign(key, key_size);
    } else {
      const auto* bytes = static_cast<const char*>(sqlite3_column_blob(row, 2));
      const auto size = static_cast<std::size_t>(sqlite3_column_bytes(row, 2));
      std::string_view value =
          bytes == nullptr ? std::string_view() : std::string_view(bytes, size);
      std::string plain;
      if (at_rest || value.starts_with(kSealed)) {
        DIBS_TRY(plain, opened({key, key_size}, value, sqlite3_column_int64(row, 0)));
        value = plain;
      }
      change.now = std::make_shared<const Record>(loader.commons, std::string_view(key, key_size),
                                                  value, created, change.revision);
    }
    loader.change(std::move(change));
  }
  if (result != SQLITE_DONE) return fail(result);
  return success();
}

Result<std::string> SqliteLog::Impl::opened(std::string_view key, std::string_view bytes,
                                            std::int64_t position) {
  if (!at_rest) {
    return Error::invalid(cat(path, ": ", key,
                              " is encrypted: give the --encryption-provider-config that it was "
                              "written with"));
  }
  auto found = at_rest->open(key, bytes);
  if (!found.ok()) return found.error().within(cat(path, ": ", key));
  if (found->stale) stale.push_back(position);
  return std::move(found->value);
}

Result<> SqliteLog::Impl::rewrite_stale() {
  if (stale.empty()) return success();
  DIBS_TRY(auto read, prepare("SELECT key, value FROM log WHERE position = ?1"));
  DIBS_TRY(auto replace, prepare("UPDATE log SET value = ?2 WHERE position = ?1"));
  DIBS_CHECK(run("BEGIN IMMEDIATE"));
  for (const std::int64_t position : stale) {
    sqlite3_bind_int64(read.get(), 1, position);
    if (const int result = sqlite3_step(read.get()); result != SQLITE_ROW) return fail(result);
    const auto text = [&](int column) {
      const auto* bytes = static_cast<const char*>(sqlite3_column_blob(read.get(), column));
      return std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(read.get(), column)));
    };
    const std::string key = text(0);
    DIBS_TRY(const auto found, at_rest->open(key, text(1)));
    sqlite3_reset(read.get());
    DIBS_TRY(const std::string sealed, at_rest->seal(key, found.value));
    sqlite3_bind_int64(replace.get(), 1, position);
    sqlite3_bind_blob64(replace.get(), 2, sealed.data(), sealed.size(), SQLITE_STATIC);
    if (const int result = step(replace); result != SQLITE_DONE) return fail(result);
  }
  DIBS_CHECK(run("COMMIT"));
  stale.clear();
  // The pages that held the old values are in the write-ahead log, too: both are cleared of them.
  sqlite3_wal_checkpoint_v2(writer.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  return success();
}

int SqliteLog::Impl::put(const Change& change, std::int64_t position) const {
  sqlite3_stmt* statement = insert.get();
  sqlite3_bind_int64(statement, 1, position);
  bind_text(statement, 2, change.key());
  if (change.now) {
    thread_local std::string value;  // until the statement has run
    value.clear();
    change.now->value->append_to(value);
    if (at_rest) {
      auto sealed = at_rest->seal(change.key(), value);
      if (!sealed.ok()) {
        unsealed = sealed.error();
        return SQLITE_ERROR;
      }
      value = std::move(sealed).value();
    }
    sqlite3_bind_blob64(statement, 3, value.data(), value.size(), SQLITE_STATIC);
    sqlite3_bind_int64(statement, 4, change.now->created);
  } else {
    sqlite3_bind_null(statement, 3);
    sqlite3_bind_int64(statement, 4, 0);
  }
  return step(insert);
}

int SqliteLog::Impl::write(const std::vector<Change>& changes, std::span<const Garbage> garbage,
                           Revision compacted) {
  if (const int result = step(begin); result != SQLITE_DONE) return result;
  std::int64_t position = 0;
  for (const Change& change : changes) {
    position = std::max(position + 1, first_position(change.revision));
    if (const int result = put(change, position); result != SQLITE_DONE) return result;
  }
  if (!garbage.empty() && compacted > noted_compacted) {
    sqlite3_bind_int64(set_compacted.get(), 1, compacted);
    if (const int result = step(set_compacted); result != SQLITE_DONE) return result;
  }
  for (const Garbage& row : garbage) {
    sqlite3_bind_int64(erase.get(), 1, first_position(row.revision));
    sqlite3_bind_int64(erase.get(), 2, first_position(row.revision + 1) - 1);
    bind_text(erase.get(), 3, row.key);
    if (const int result = step(erase); result != SQLITE_DONE) return result;
  }
  return step(commit);
}

SqliteLog::SqliteLog(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SqliteLog::~SqliteLog() = default;

Result<std::unique_ptr<SqliteLog>> SqliteLog::open(const SqliteLogOptions& options,
                                                   const Loader& loader) {
  auto impl = std::make_unique<Impl>();
  impl->path = options.path;
  impl->at_rest = options.at_rest;
  DIBS_TRY(impl->lock, lock_file(options.path));
  DIBS_CHECK(make_private(options.path));
  DIBS_CHECK(impl->prepare_file(options.max_pages));
  DIBS_CHECK(impl->load(loader));
  DIBS_CHECK(impl->rewrite_stale());
  DIBS_CHECK(impl->prepare_statements());
  return std::unique_ptr<SqliteLog>(new SqliteLog(std::move(impl)));
}

Result<> SqliteLog::write(const std::vector<Change>& changes, std::span<const Garbage> garbage,
                          Revision compacted) {
  const int result = impl_->write(changes, garbage, compacted);
  if (result == SQLITE_DONE) {
    if (!garbage.empty()) impl_->noted_compacted = std::max(impl_->noted_compacted, compacted);
    wal_pages_ = impl_->wal_pages;
    return success();
  }
  was_full_ =
      (result & 0xff) == SQLITE_FULL || ((result & 0xff) == SQLITE_IOERR &&
                                         store::is_full(sqlite3_system_errno(impl_->writer.get())));
  // The text must be taken before the rollback overwrites it.
  Error error =
      impl_->unsealed ? *std::exchange(impl_->unsealed, std::nullopt) : impl_->fail(result);
  if (sqlite3_get_autocommit(impl_->writer.get()) == 0) Impl::step(impl_->rollback);
  return error;
}

void SqliteLog::checkpoint() {
  sqlite3_wal_checkpoint_v2(impl_->checkpointer.get(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr,
                            nullptr);
}

bool SqliteLog::checkpoint_all() {
  int length = -1;
  int moved = -1;
  const int result = sqlite3_wal_checkpoint_v2(impl_->writer.get(), nullptr,
                                               SQLITE_CHECKPOINT_PASSIVE, &length, &moved);
  return result == SQLITE_OK && length == moved;
}

bool SqliteLog::is_full(const Error& error) { return error.message().starts_with(kDiskFull); }

bool SqliteLog::checkpoint_and_shrink() {
  return sqlite3_wal_checkpoint_v2(impl_->writer.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE,
                                   nullptr, nullptr) == SQLITE_OK;
}

std::size_t SqliteLog::free_bytes() const {
  const auto pages = impl_->number("PRAGMA freelist_count");
  return pages.ok() && *pages > 0 ? static_cast<std::size_t>(*pages) * kPageBytes : 0;
}

Result<> SqliteLog::check() {
  DIBS_TRY(auto statement, impl_->prepare("PRAGMA quick_check(1)"));
  const int result = sqlite3_step(statement.get());
  if (result != SQLITE_ROW) return impl_->fail(result);
  const auto* found = reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), 0));
  if (found != nullptr && std::string_view(found) == "ok") return success();
  return Error::internal(cat(impl_->path, " is damaged (", found != nullptr ? found : "",
                             "): restore a backup, or move it away to start empty"));
}

}  // namespace dibs::store
