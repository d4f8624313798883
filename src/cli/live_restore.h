#pragma once
// Backup and restore through a live server (server/backup.h).

#include <cstddef>
#include <functional>
#include <string>

#include "base/result.h"
#include "cli/backup_file.h"
#include "client/transport.h"
#include "server/backup_format.h"
#include "store/fill.h"

namespace dibs::cli {

/// Reads what the server has. `take` gets head and keys in order; its error ends the reading.
/// Errors: of the server, and invalid when the answer is not whole.
Result<> read_server(client::Transport& transport,
                     const std::function<Result<>(server::BackupEntry&)>& take);

/// Makes the server hold what the backup does: the difference is read, written and read again until
/// there is none. `id` names this restore.
class LiveRestore {
 public:
  LiveRestore(client::Transport& transport, BackupInput& backup, std::string id)
      : transport_(transport), backup_(backup), id_(std::move(id)) {}

  Result<store::FillCount> run(const std::function<void(const store::FillProgress&)>& progress);
  /// Ends a restore that somebody has begun, as far as it has come.
  Result<> abandon();

  /// The server's revision when it began.
  store::Revision began_at() const { return began_at_; }
  /// Keys of the backup whose values no server could read: they are left out.
  const std::vector<std::string>& unreadable() const { return unreadable_; }

 private:
  struct Put {
    std::string key;
    std::int64_t place = 0;    // in the backup
    std::string instead = {};  // of the value there, where it is not empty
  };
  /// In the order in which it is written.
  struct Difference {
    std::vector<std::string> removals;
    std::vector<Put> first_puts;  // definitions and namespaces: others need them
    std::vector<Put> puts;
    std::vector<std::string> last_removals;

    std::size_t size() const {
      return removals.size() + first_puts.size() + puts.size() + last_removals.size();
    }
  };

  Result<store::Revision> begin();
  Result<json::Value> post(const std::string& query, std::string body);
  Result<Difference> difference();
  Result<> judge(const store::Item* wanted, const store::Item* is, Difference& out);
  Result<> write(const Difference& difference);
  Result<> remove(const std::vector<std::string>& keys);
  Result<> put(const std::vector<Put>& puts);
  Result<> add_change(const std::string& key, const std::string* value);
  Result<> flush();

  client::Transport& transport_;
  BackupInput& backup_;
  const std::string id_;
  store::Revision began_at_ = 0;
  std::vector<std::string> unreadable_;
  std::string body_;
  std::size_t changes_ = 0;
  std::size_t done_ = 0;
  std::size_t all_ = 0;
  std::function<void(const store::FillProgress&)> progress_;
};

}  // namespace dibs::cli
