#pragma once
// Backups of a live server: GET /dibs/backup, and the way back, POST /dibs/restore.
//
// A backup is the state at one revision (store/state.h), sent piece by piece in the format of
// backup_format.h while others write.
//
// A restore is driven by its client, who has the backup, reads what is there now by GET and sends
// the difference: ?step=begin puts a mark (store/fill.h) that keeps all other writes waiting, on
// every server of the store; ?step=change commits a group of keys in one transaction, which anybody
// else's begin makes fail; ?step=end takes the mark away. Nothing of it is kept in this process: a
// client that is killed leaves the mark, and the next begin goes on. Both ask for the right to
// everything (Access::authorize).
//
// Thread-safe.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/context.h"
#include "server/writing.h"
#include "store/store.h"

namespace dibs::server {

inline constexpr std::string_view kBackupPath = "/dibs/backup";
inline constexpr std::string_view kRestorePath = "/dibs/restore";

/// A path for which the right to everything is asked.
inline bool is_backup_path(std::string_view path) {
  return path == kBackupPath || path == kRestorePath;
}

/// Keys that a restore on a live server leaves as they are: who leads and who lives is known by
/// those who run, and what has happened has happened.
bool is_left_alone(std::string_view key);

/// What servers read and write at `key`: an object that has the key's name and namespace. Errors:
/// invalid.
Result<Value> read_object(std::string_view key, std::string_view value);

/// Errors: unavailable, where a store was not filled to its end. One whose restore is driven
/// through servers is fine: they are needed for that.
Result<> check_whole(const store::Store& store);

class Backups {
 public:
  explicit Backups(store::Store& store) : store_(store) {}

  /// Of a path that is_backup_path(). Blocks until a change is durable.
  Result<Reply> handle(const Context& context);
  /// Errors: unavailable, to be tried again, while a restore is under way.
  Result<> may_write() const;

 private:
  Result<Reply> backup(const Context& context);
  Result<Response> restore(const Context& context);
  Result<Response> begin(const Context& context, const std::string& id);
  Result<Response> change(const Context& context, const std::string& id);
  Result<Response> end(const std::string& id);
  /// The mark of this restore. Errors: conflict, where there is none or that of another.
  Result<store::RecordPtr> mark_of(const std::string& id) const;

  store::Store& store_;
};

}  // namespace dibs::server
