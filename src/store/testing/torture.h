#pragma once
// The embedded store on a disk that fails: lives of a process that writes, meets a fault, dies or
// recovers, and is looked at after each. What may happen and what may not is the Book's to say.
//
// The same seed and plans give the same run, unless `chores` is set.

#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "base/result.h"
#include "store/sqlite_store.h"
#include "store/testing/book.h"
#include "store/testing/faulty_disk.h"

namespace dibs::store::testing {

struct TortureOptions {
  std::uint64_t seed = 1;
  std::size_t sector = 512;
  /// How many steps a life has; each is a transaction, several at once, or a compaction.
  int steps = 16;
  /// The store's second thread moves the write-ahead log and forgets history: in an order of its
  /// own.
  bool chores = false;
  bool ballast = false;
};

class Torture {
 public:
  explicit Torture(const TortureOptions& options);
  ~Torture();

  /// How a life ends that the plan does not end.
  enum class End { close, kill, power_loss };

  /// Opens, looks, writes, looks again and ends. A fault that the plan has is mended before the
  /// end, and the store must then work again. Errors: what is wrong.
  Result<> live(const std::optional<Plan>& plan, End end);
  /// A life that only reads, until the power goes: what it has read must be there after that.
  Result<> look();
  /// One more life without faults, then the file itself.
  Result<> check_end();

  FaultyDisk& disk() { return disk_; }
  const Book& book() const { return book_; }
  /// Whether the last life met its plan.
  bool has_met_fault() const { return met_fault_; }

  SqliteOptions store_options();

 private:
  class Work;

  Result<> check_refusal(const Error& error, const std::optional<Plan>& plan) const;
  Result<> works_again(Store& store);
  Result<> check_file();

  const TortureOptions options_;
  FaultyDisk disk_;
  std::mt19937_64 random_;
  Book book_;
  int next_value_ = 0;
  bool met_fault_ = false;
};

}  // namespace dibs::store::testing
