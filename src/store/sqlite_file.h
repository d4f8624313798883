#pragma once
// The file of a SQLite store, read and judged without changing it: docs/formats/store.md is what it
// must be. A server may have it open meanwhile; what it writes later is not seen.

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "store/at_rest.h"
#include "store/state.h"

namespace dibs::store {

class SqliteFile : public State {
 public:
  /// `at_rest` opens encrypted values; null: there are none. Errors: not_found, unavailable (cannot
  /// be read), invalid (not ours, a newer format), internal (damaged).
  static Result<std::unique_ptr<SqliteFile>> open(const std::string& path,
                                                  std::shared_ptr<const AtRest> at_rest);
  ~SqliteFile() override;

  Revision revision() const override;
  /// Errors: invalid, for a value that cannot be opened; of reading.
  Result<bool> next(Item& item) override;
  Result<> rewind() override;

  /// The number of rows in the log, and the mark of kUnfinished, "" where there is none.
  std::size_t rows() const;
  const std::string& unfinished() const;
  /// It was not closed: a process has it open, or had when it was killed.
  bool may_be_in_use() const;

  /// Reads everything: SQLite's own check of the file, then every row by the rules of the format.
  /// `fault` gets a line for each that is broken. Errors: of reading.
  Result<> check(const std::function<void(std::string)>& fault);

 private:
  struct Impl;
  explicit SqliteFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace dibs::store
