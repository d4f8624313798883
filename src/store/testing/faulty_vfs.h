#pragma once
// SQLite's file layer over a FaultyDisk. It promises SQLite what the system's does: no more of a
// file changes than is written, and the first sync of a journal or write-ahead log makes the names
// in its folder durable, too.
//
// One per disk, registered with SQLite as long as it lives.

#include <memory>

namespace dibs::store::testing {

class FaultyDisk;

class FaultyVfs {
 public:
  explicit FaultyVfs(FaultyDisk& disk);
  ~FaultyVfs();
  FaultyVfs(const FaultyVfs&) = delete;
  FaultyVfs& operator=(const FaultyVfs&) = delete;

  const char* name() const;

 private:
  struct Registered;
  std::unique_ptr<Registered> registered_;
};

}  // namespace dibs::store::testing
