#include "store/sqlite_log.h"

#include <sqlite3.h>

#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "base/mutex.h"
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

bool wants_room(int result, sqlite3* db) {
  return (result & 0xff) == SQLITE_FULL ||
         ((result & 0xff) == SQLITE_IOERR && is_full(sqlite3_system_errno(db)));
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

/// Whether a check of the file stopped at a page that could not be read: that is no damage yet.
bool is_unread(std::string_view finding) {
  constexpr std::string_view kCode = "unable to get the page. error code=";
  if (const auto at = finding.find(kCode); at != finding.npos) {
    int code = 0;
    const char* digits = finding.data() + at + kCode.size();
    std::from_chars(digits, finding.data() + finding.size(), code);
    return (code & 0xff) == SQLITE_IOERR;
  }
  return finding.find("failed to get page") != finding.npos;
}

void bind_text(sqlite3_stmt* statement, int index, std::string_view text) {
  sqlite3_bind_text(statement, index, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
}

}  // namespace

struct SqliteLog::Impl {
  std::string path;
  Disk* disk = nullptr;
  std::unique_ptr<DiskLock> lock;
  Database writer;
  Database checkpointer;
  Mutex moving;  // SQLite would refuse the second at once
  Statement begin, commit, rollback, insert, erase, set_compacted, try_insert, try_erase;
  Revision noted_compacted = 0;
  std::size_t wal_pages = 0;
  std::shared_ptr<const AtRest> at_rest;
  std::vector<std::int64_t> stale;        // positions of values to be written anew
  mutable std::optional<Error> unsealed;  // why the last write failed, where it was not SQLite

  ~Impl() {
    for (Statement* statement :
         {&begin, &commit, &rollback, &insert, &erase, &set_compacted, &try_insert, &try_erase}) {
      statement->reset();
    }
    checkpointer.reset();
    if (writer) {
      sqlite3_wal_checkpoint_v2(writer.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr,
                                nullptr);
    }
  }

  Error fail(int result) const { return failure(path, writer.get(), result); }
  Error damaged(std::string_view what) const {
    return Error::internal(
        cat(path, " is damaged (", what, "): restore a backup, or move it away to start empty"));
  }
  Error damaged_row(std::int64_t position) const { return damaged(cat("row ", position)); }

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
    const int result = sqlite3_open_v2(path.c_str(), &db,
                                       SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, disk->vfs());
    Database owned(db);
    if (result != SQLITE_OK) return failure(path, db, result);
    sqlite3_extended_result_codes(db, 1);
    sqlite3_busy_timeout(db, 5000);
    return owned;
  }

  int move_all() {
    const MutexLock lock(moving);
    return sqlite3_wal_checkpoint_v2(writer.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr,
                                     nullptr);
  }

  static int step(const Statement& statement) {
    const int result = sqlite3_step(statement.get());
    sqlite3_reset(statement.get());
    return result == SQLITE_ROW ? SQLITE_DONE : result;
  }

  Result<> prepare_file(int max_pages);
  Result<> use_wal() const;
  Result<> make_durable() const;
  Result<> prepare_statements();
  Result<> check() const;
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
  DIBS_CHECK(use_wal());
  DIBS_CHECK(run("PRAGMA synchronous = FULL"));
  DIBS_CHECK(make_durable());
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

/// SQLite calls it no error when it stays with another journal.
Result<> SqliteLog::Impl::use_wal() const {
  DIBS_CHECK(run("PRAGMA journal_mode = WAL"));
  DIBS_TRY(auto statement, prepare("PRAGMA journal_mode"));
  const int result = sqlite3_step(statement.get());
  if (result != SQLITE_ROW) return fail(result);
  const auto* mode = reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), 0));
  if (mode != nullptr && std::string_view(mode) == "wal") return success();
  return Error::unavailable(cat("cannot use a write-ahead log for ", path,
                                ": choose a data directory on a local file system"));
}

/// What a process that was killed had written last may be in the system's memory alone, and after a
/// failed sync the system may even take it for written. Whoever reads it now must find it again
/// after a power loss: all of the write-ahead log is written once more, into the file.
Result<> SqliteLog::Impl::make_durable() const {
  int length = 0;
  int moved = 0;
  const int result =
      sqlite3_wal_checkpoint_v2(writer.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, &length, &moved);
  // Another program that reads the file keeps the log from being emptied, which can wait.
  if (result == SQLITE_OK || (result == SQLITE_BUSY && length == moved)) return success();
  return fail(result);
}

Result<> SqliteLog::Impl::prepare_statements() {
  DIBS_TRY(begin, prepare("BEGIN IMMEDIATE"));
  DIBS_TRY(commit, prepare("COMMIT"));
  DIBS_TRY(rollback, prepare("ROLLBACK"));
  DIBS_TRY(insert,
           prepare("INSERT INTO log (position, key, value, created) VALUES (?1, ?2, ?3, ?4)"));
  DIBS_TRY(erase, prepare("DELETE FROM log WHERE position BETWEEN ?1 AND ?2 AND key = ?3"));
  DIBS_TRY(try_insert, prepare("INSERT INTO meta VALUES ('probe', 0)"));
  DIBS_TRY(try_erase, prepare("DELETE FROM meta WHERE name = 'probe'"));
  DIBS_TRY(set_compacted, prepare("UPDATE meta SET value = ?1 WHERE name = 'compacted'"));
  return success();
}

/// Takes an eighth of the time that loading takes.
Result<> SqliteLog::Impl::check() const {
  DIBS_TRY(auto statement, prepare("PRAGMA quick_check(1)"));
  const int result = sqlite3_step(statement.get());
  if (result != SQLITE_ROW) return fail(result);
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), 0));
  const std::string_view found = text != nullptr ? text : "";
  if (found == "ok") return success();
  return is_unread(found) ? Error::unavailable(cat("cannot read ", path, ": ", found))
                          : damaged(found);
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
      return damaged_row(sqlite3_column_int64(row, 0));
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
    if (!loader.change(std::move(change))) return damaged_row(sqlite3_column_int64(row, 0));
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
  return SQLITE_DONE;
}

SqliteLog::SqliteLog(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SqliteLog::~SqliteLog() = default;

Result<std::unique_ptr<SqliteLog>> SqliteLog::open(const SqliteLogOptions& options,
                                                   const Loader& loader) {
  auto impl = std::make_unique<Impl>();
  impl->path = options.path;
  impl->at_rest = options.at_rest;
  impl->disk = &options.disk;
  DIBS_TRY(impl->lock, options.disk.lock(options.path));
  // SQLite would make the file readable for everyone; its companions take the mode of the file.
  DIBS_CHECK(options.disk.create(options.path));
  DIBS_CHECK(impl->prepare_file(options.max_pages));
  // SQLite does it too, but does not look whether it worked.
  DIBS_CHECK(options.disk.sync_folder(options.path));
  DIBS_CHECK(impl->check());
  DIBS_CHECK(impl->load(loader));
  DIBS_CHECK(impl->rewrite_stale());
  DIBS_CHECK(impl->prepare_statements());
  return std::unique_ptr<SqliteLog>(new SqliteLog(std::move(impl)));
}

Result<> SqliteLog::write(const std::vector<Change>& changes, std::span<const Garbage> garbage,
                          Revision compacted) {
  DIBS_CHECK(transaction([&] { return impl_->write(changes, garbage, compacted); }));
  if (!garbage.empty()) impl_->noted_compacted = std::max(impl_->noted_compacted, compacted);
  return success();
}

Result<> SqliteLog::probe() {
  return transaction([&] {
    if (const int result = Impl::step(impl_->try_insert); result != SQLITE_DONE) return result;
    return Impl::step(impl_->try_erase);
  });
}

/// After a failed commit the system may take for written what is not on the disk, and the end of
/// the write-ahead log may hold what nobody was promised. Neither is built upon: what was
/// acknowledged is written once more, into the file, and the log begins anew.
Result<> SqliteLog::settle() {
  if (!unsettled_) return success();
  const int result = impl_->move_all();
  unsettled_ = result != SQLITE_OK;
  was_full_ = unsettled_ && wants_room(result, impl_->writer.get());
  return unsettled_ ? Result<>(impl_->fail(result)) : success();
}

Result<> SqliteLog::transaction(const std::function<int()>& body) {
  DIBS_CHECK(settle());
  int result = Impl::step(impl_->begin);
  if (result == SQLITE_DONE) result = body();
  const bool commits = result == SQLITE_DONE;
  if (commits) result = Impl::step(impl_->commit);
  if (result == SQLITE_DONE) {
    wal_pages_ = impl_->wal_pages;
    return success();
  }
  was_full_ = wants_room(result, impl_->writer.get());
  // Without room the last page, which makes it a commit, was not written.
  unsettled_ = commits && (result & 0xff) != SQLITE_FULL;
  // The text must be taken before the rollback overwrites it.
  Error error =
      impl_->unsealed ? *std::exchange(impl_->unsealed, std::nullopt) : impl_->fail(result);
  if (sqlite3_get_autocommit(impl_->writer.get()) == 0) Impl::step(impl_->rollback);
  return error;
}

Result<> SqliteLog::checkpoint() {
  sqlite3* db = impl_->checkpointer.get();
  const MutexLock lock(impl_->moving);
  const int result =
      sqlite3_wal_checkpoint_v2(db, nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  if (result == SQLITE_OK || result == SQLITE_BUSY) return success();
  return failure(impl_->path, db, result);
}

bool SqliteLog::checkpoint_all() {
  int length = -1;
  int moved = -1;
  const int result = sqlite3_wal_checkpoint_v2(impl_->writer.get(), nullptr,
                                               SQLITE_CHECKPOINT_PASSIVE, &length, &moved);
  return result == SQLITE_OK && length == moved;
}

bool SqliteLog::checkpoint_and_shrink() { return impl_->move_all() == SQLITE_OK; }

std::size_t SqliteLog::free_bytes() const {
  const auto pages = impl_->number("PRAGMA freelist_count");
  return pages.ok() && *pages > 0 ? static_cast<std::size_t>(*pages) * kPageBytes : 0;
}

}  // namespace dibs::store
