#include "store/testing/faulty_disk.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/strings.h"
#include "store/testing/faulty_vfs.h"

namespace dibs::store::testing {

std::string_view name_of(Call call) {
  constexpr std::string_view kNames[] = {"open",   "read", "write", "sync",   "truncate",
                                         "remove", "lock", "map",   "folder", "allocate"};
  return kNames[static_cast<std::size_t>(call)];
}

std::string_view name_of(Fault fault) {
  constexpr std::string_view kNames[] = {"io_error", "short_read", "full", "kill", "power_loss"};
  return kNames[static_cast<std::size_t>(fault)];
}

struct FaultyDisk::Vfs {
  explicit Vfs(FaultyDisk& disk) : registered(disk) {}
  FaultyVfs registered;
};

class FaultyDisk::Lock : public DiskLock {
 public:
  Lock(FaultyDisk& disk, std::string path) : disk_(disk), path_(std::move(path)) {}
  ~Lock() override {
    const MutexLock lock(disk_.mutex);
    disk_.locked_[path_] = false;
  }

 private:
  FaultyDisk& disk_;
  const std::string path_;
};

FaultyDisk::FaultyDisk(std::uint64_t seed, std::size_t sector)
    : sector_(sector), vfs_(std::make_unique<Vfs>(*this)), random_(seed) {}
FaultyDisk::~FaultyDisk() = default;

const char* FaultyDisk::vfs() const { return vfs_->registered.name(); }

// --- what goes wrong ---

void FaultyDisk::plan(const Plan& plan) {
  const MutexLock lock(mutex);
  plan_ = plan;
  seen_ = 0;
  failed_ = false;
}

bool FaultyDisk::has_failed() const {
  const MutexLock lock(mutex);
  return failed_;
}

bool FaultyDisk::is_down() const {
  const MutexLock lock(mutex);
  return down_.has_value();
}

void FaultyDisk::mend() {
  const MutexLock lock(mutex);
  plan_.reset();
  capacity_ = SIZE_MAX;
}

void FaultyDisk::crash(Fault how) {
  const MutexLock lock(mutex);
  if (!down_) go_down(how);
}

void FaultyDisk::go_down(Fault how) {
  failed_ = true;
  down_ = how;
}

void FaultyDisk::restart() {
  const MutexLock lock(mutex);
  const bool lost = down_ == Fault::power_loss;
  down_.reset();
  plan_.reset();
  if (lost) settle_names();
  for (auto& [path, file] : names_) {
    if (lost) {
      settle(*file);
      file->cache = file->disk;
    }
    // Of a dead process nothing is locked, and SQLite makes its shared memory anew.
    file->readers = 0;
    file->reserved = file->pending = file->exclusive = false;
    file->regions.clear();
    file->region_readers = {};
    file->region_writers = {};
  }
  locked_.clear();
}

bool FaultyDisk::has_lasting_fault() const {
  const MutexLock lock(mutex);
  return down_ || (failed_ && plan_ && plan_->lasts);
}

Outcome FaultyDisk::judge(Call call) {
  if (down_) return Outcome::io_error;
  if (!plan_ || (plan_->call && plan_->call != call)) return Outcome::ok;
  ++seen_;
  if (seen_ < plan_->at || (seen_ > plan_->at && !plan_->lasts)) return Outcome::ok;
  failed_ = true;
  switch (plan_->fault) {
    case Fault::io_error:
      return Outcome::io_error;
    case Fault::short_read:
      return call == Call::read ? Outcome::short_read : Outcome::ok;
    case Fault::full:
      if (!plan_->lasts) return Outcome::full;
      capacity_ = used();
      plan_.reset();
      return Outcome::ok;
    case Fault::kill:
    case Fault::power_loss:
      go_down(plan_->fault);
      return Outcome::io_error;
  }
  return Outcome::ok;
}

/// Lays `write` over `to`, but for lost sectors.
void FaultyDisk::apply(std::string& to, const FileState::Write& write, unsigned lost_of_16) {
  const auto is_lost = [&]() DIBS_REQUIRES(mutex) {
    return lost_of_16 > 0 && (lost_of_16 >= 16 || random_() % 16 < lost_of_16);
  };
  if (write.truncates) {
    if (!is_lost()) to.resize(write.offset, '\0');
    return;
  }
  for (std::size_t done = 0; done < write.bytes.size();) {
    const std::size_t at = write.offset + done;
    const std::size_t size = std::min(sector_ - at % sector_, write.bytes.size() - done);
    if (is_lost()) {
      // The length may have arrived without the data.
      if (lost_of_16 < 16 && to.size() < at + size && coin(4)) to.resize(at + size, '\0');
    } else {
      if (to.size() < at + size) to.resize(at + size, '\0');
      to.replace(at, size, write.bytes, done, size);
    }
    done += size;
  }
}

/// What was not synced reaches the disk or not.
void FaultyDisk::settle(FileState& file) {
  const auto writes = std::exchange(file.unsynced, {});
  enum { all, none, until, some_writes, some_sectors, modes };
  const auto mode = random_() % modes;
  const std::size_t last = writes.empty() ? 0 : random_() % writes.size();
  const unsigned share = 1 + static_cast<unsigned>(random_() % 15);
  for (std::size_t i = 0; i < writes.size(); ++i) {
    unsigned lost = 0;
    if (mode == none || (mode == until && i > last)) lost = 16;
    if (mode == until && i == last) lost = 8;
    if (mode == some_writes) lost = random_() % 16 < share ? 16 : 0;
    if (mode == some_sectors) lost = share;
    apply(file.disk, writes[i], lost);
  }
}

/// Each name is as after any of its changes.
void FaultyDisk::settle_names() {
  std::map<std::string, std::vector<FilePtr>> changes;
  for (auto& [path, file] : std::exchange(unsynced_names_, {})) changes[path].push_back(file);
  for (auto& [path, states] : changes) {
    const std::size_t kept = random_() % (states.size() + 1);
    if (kept == 0) continue;
    if (states[kept - 1]) {
      durable_names_[path] = states[kept - 1];
    } else {
      durable_names_.erase(path);
    }
  }
  names_ = durable_names_;
}

// --- content, for tests ---

std::map<std::string, std::size_t> FaultyDisk::files() const {
  const MutexLock lock(mutex);
  std::map<std::string, std::size_t> found;
  for (const auto& [path, file] : names_) found[path] = file->cache.size();
  return found;
}

void FaultyDisk::corrupt(const std::string& path, std::size_t byte, unsigned bit) {
  const MutexLock lock(mutex);
  FileState& file = *names_.at(path);
  file.cache.at(byte) = static_cast<char>(file.cache[byte] ^ (1 << bit));
  file.disk = file.cache;
  file.unsynced.clear();
}

std::map<std::string, std::string> FaultyDisk::image() const {
  const MutexLock lock(mutex);
  std::map<std::string, std::string> found;
  for (const auto& [path, file] : names_) found[path] = file->cache;
  return found;
}

void FaultyDisk::set_image(const std::map<std::string, std::string>& image) {
  const MutexLock lock(mutex);
  names_.clear();
  for (const auto& [path, bytes] : image) {
    auto file = std::make_shared<FileState>();
    file->cache = file->disk = bytes;
    names_[path] = std::move(file);
  }
  durable_names_ = names_;
  unsynced_names_.clear();
}

// --- for the store ---

Result<std::unique_ptr<DiskLock>> FaultyDisk::lock(const std::string& path) {
  const MutexLock lock(mutex);
  if (judge(Call::lock) != Outcome::ok) return cannot_open(path + ".lock", EIO);
  if (std::exchange(locked_[path], true)) return Error::unavailable(cat(path, " is in use"));
  return std::unique_ptr<DiskLock>(std::make_unique<Lock>(*this, path));
}

Result<> FaultyDisk::create(const std::string& path) {
  Outcome outcome = Outcome::ok;
  open(path, true, outcome);
  if (outcome == Outcome::full) return disk_full(path);
  if (outcome != Outcome::ok) return cannot_open(path, EIO);
  return success();
}

Result<> FaultyDisk::sync_folder(const std::string& path) {
  if (sync_names() != Outcome::ok) return cannot_open(path, EIO);
  return success();
}

bool FaultyDisk::allocate(const std::string& path, std::size_t bytes) {
  const MutexLock lock(mutex);
  const Outcome outcome = judge(Call::allocate);
  auto found = names_.find(path);
  const std::size_t had = found == names_.end() ? 0 : found->second->cache.size();
  const bool room = used() - had + bytes + bytes / 4 <= capacity_;
  if (outcome != Outcome::ok || (had != bytes && !room)) {
    if (found != names_.end() && !down_) name(path, nullptr);
    return false;
  }
  if (found == names_.end()) name(path, std::make_shared<FileState>());
  FileState& file = *names_[path];
  file.cache.assign(bytes, '\0');
  file.disk = file.cache;
  return true;
}

bool FaultyDisk::remove(const std::string& path) {
  bool was_there = false;
  return remove(path, was_there) == Outcome::ok && was_there;
}

// --- for SQLite ---

void FaultyDisk::name(const std::string& path, FilePtr file) {
  unsynced_names_.emplace_back(path, file);
  if (file) {
    names_[path] = std::move(file);
  } else {
    names_.erase(path);
  }
}

std::size_t FaultyDisk::used() const {
  std::size_t bytes = 0;
  for (const auto& [path, file] : names_) bytes += file->cache.size();
  return bytes;
}

FilePtr FaultyDisk::open(const std::string& path, bool create, Outcome& outcome) {
  const MutexLock lock(mutex);
  const bool was_down = down_.has_value();
  outcome = judge(Call::open);
  auto found = names_.find(path);
  // The call that a crash comes into may have been done already.
  const bool done = outcome == Outcome::ok || (!was_down && down_ && coin());
  if (found == names_.end() && create && done) {
    name(path, std::make_shared<FileState>());
    found = names_.find(path);
  }
  if (outcome == Outcome::ok && found == names_.end()) outcome = Outcome::io_error;
  return outcome == Outcome::ok ? found->second : nullptr;
}

Outcome FaultyDisk::read(FileState& file, std::size_t offset, std::span<char> into) {
  const MutexLock lock(mutex);
  Outcome outcome = judge(Call::read);
  if (outcome == Outcome::io_error || outcome == Outcome::full) return Outcome::io_error;
  std::size_t size =
      offset < file.cache.size() ? std::min(into.size(), file.cache.size() - offset) : 0;
  if (outcome == Outcome::short_read) size = size == 0 ? 0 : random_() % size;
  std::copy_n(file.cache.data() + std::min(offset, file.cache.size()), size, into.data());
  std::fill(into.begin() + static_cast<std::ptrdiff_t>(size), into.end(), '\0');
  return size < into.size() ? Outcome::short_read : Outcome::ok;
}

void FaultyDisk::put(FileState& file, FileState::Write write) {
  apply(file.cache, write, 0);
  file.unsynced.push_back(std::move(write));
}

Outcome FaultyDisk::write(FileState& file, std::size_t offset, std::string_view bytes) {
  const MutexLock lock(mutex);
  const bool was_down = down_.has_value();
  Outcome outcome = judge(Call::write);
  const std::size_t end = offset + bytes.size();
  if (outcome == Outcome::ok && end > file.cache.size() &&
      used() + (end - file.cache.size()) > capacity_) {
    outcome = Outcome::full;
  }
  if (outcome != Outcome::ok) {
    if (was_down) return outcome;
    // A part may have been written.
    const std::size_t part = random_() % (bytes.size() + 1);
    bytes = bytes.substr(0, coin() ? 0 : part);
    if (!bytes.empty() && used() + bytes.size() > capacity_) bytes = {};
  }
  if (!bytes.empty()) put(file, {false, offset, std::string(bytes)});
  return outcome;
}

Outcome FaultyDisk::truncate(FileState& file, std::size_t size) {
  const MutexLock lock(mutex);
  const bool was_down = down_.has_value();
  const Outcome outcome = judge(Call::truncate);
  if (outcome == Outcome::ok || (!was_down && down_ && coin())) put(file, {true, size, {}});
  return outcome;
}

Outcome FaultyDisk::sync(FileState& file, std::uint64_t& seen) {
  const MutexLock lock(mutex);
  const bool was_down = down_.has_value();
  Outcome outcome = judge(Call::sync);
  if (outcome == Outcome::ok && seen != file.failed_syncs) {
    seen = file.failed_syncs;
    outcome = Outcome::io_error;
  }
  if (outcome == Outcome::ok) {
    for (const auto& write : std::exchange(file.unsynced, {})) apply(file.disk, write, 0);
  } else if (!down_) {
    settle(file);
    seen = ++file.failed_syncs;
  } else if (!was_down && coin()) {
    for (const auto& write : std::exchange(file.unsynced, {})) apply(file.disk, write, 0);
  }
  return outcome;
}

Outcome FaultyDisk::sync_names() {
  const MutexLock lock(mutex);
  const Outcome outcome = judge(Call::folder);
  if (outcome == Outcome::ok) {
    durable_names_ = names_;
    unsynced_names_.clear();
  }
  return outcome;
}

Outcome FaultyDisk::remove(const std::string& path, bool& was_there) {
  const MutexLock lock(mutex);
  const bool was_down = down_.has_value();
  const Outcome outcome = judge(Call::remove);
  was_there = names_.contains(path);
  if (was_there && (outcome == Outcome::ok || (!was_down && down_ && coin()))) name(path, nullptr);
  return outcome;
}

bool FaultyDisk::exists(const std::string& path) const {
  const MutexLock lock(mutex);
  // As SQLite asks: an empty one does not count.
  const auto found = names_.find(path);
  return found != names_.end() && !found->second->cache.empty();
}

std::size_t FaultyDisk::size(const FileState& file) const {
  const MutexLock lock(mutex);
  return file.cache.size();
}

Outcome FaultyDisk::call(Call call) {
  const MutexLock lock(mutex);
  return judge(call);
}

void FaultyDisk::random(std::span<char> bytes) {
  const MutexLock lock(mutex);
  for (char& byte : bytes) byte = static_cast<char>(random_());
}

}  // namespace dibs::store::testing
