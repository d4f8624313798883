#include "server/usage/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>

#include "base/log.h"
#include "base/strings.h"
#include "runtime/files.h"
#include "server/usage/lines.h"

namespace dibs::server {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSumsHead = "dibs usage sums 1";
constexpr std::string_view kEnding = ".log";
constexpr std::int64_t kDay = std::int64_t{24} * 60 * 60 * 1000;
// Who looks for a moment reads so much more than he needs, at most.
constexpr std::size_t kBetweenMarks = std::size_t{64} << 10;
// Of a disk that takes nothing: lines that wait for it.
constexpr std::size_t kMostWaiting = std::size_t{64} << 20;
constexpr auto kNoEnd = std::numeric_limits<std::int64_t>::max();

std::string file_name(std::uint64_t number) {
  char name[32];
  std::snprintf(name, sizeof name, "%010llu%s", static_cast<unsigned long long>(number),
                std::string(kEnding).c_str());
  return name;
}

template <typename Number>
bool read_number(std::string_view text, Number& out) {
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, out);
  return read.ec == std::errc() && read.ptr == end;
}

}  // namespace

struct UsageLog::File {
  ~File() {
    if (goes) ::unlink(path.c_str());
  }
  std::string path;
  std::uint64_t number = 0;
  // The rest by who has the log's lock.
  std::size_t size = 0;
  std::int64_t latest = 0;  // end of an interval in it
  /// Before that offset, nothing ended later.
  std::vector<std::pair<std::int64_t, std::size_t>> marks;
  bool goes = false;  // removed when nobody reads it any more

  void grow(std::size_t bytes, std::int64_t ended) {
    if (size - (marks.empty() ? 0 : marks.back().second) >= kBetweenMarks)
      marks.emplace_back(latest, size);
    size += bytes;
    latest = std::max(latest, ended);
  }
};

struct UsageLog::Sums {
  std::uint64_t folded = 0;  // files up to this one are in it
  std::int64_t exact_since = 0;
  /// By day; by "namespace\tclass".
  std::map<std::int64_t, std::map<std::string, DeviceSeconds>> days;

  std::string text() const {
    std::string made = cat(kSumsHead, "\t", folded, "\t", exact_since, "\n");
    for (const auto& [day, rows] : days) {
      for (const auto& [names, sum] : rows) {
        char numbers[80];
        std::snprintf(numbers, sizeof numbers, "\t%.3f\t%.3f\n", sum.held, sum.used);
        append(made, day, "\t", names, numbers);
      }
    }
    return made;
  }

  static Result<Sums> parse(std::string_view text) {
    Sums made;
    bool head = true;
    for (const std::string_view line : split(text, '\n')) {
      if (line.empty()) continue;
      const auto words = split(line, '\t');
      if (std::exchange(head, false)) {
        if (words.size() != 3 || words[0] != kSumsHead || !read_number(words[1], made.folded) ||
            !read_number(words[2], made.exact_since)) {
          return Error::invalid("its first line is not of this version");
        }
        continue;
      }
      std::int64_t day = 0;
      DeviceSeconds sum;
      if (words.size() != 5 || !read_number(words[0], day) || !read_number(words[3], sum.held) ||
          !read_number(words[4], sum.used)) {
        return Error::invalid(cat("no row of sums: ", quoted(line)));
      }
      made.days[day][cat(words[1], "\t", words[2])] = sum;
    }
    return made;
  }

  void keep(std::size_t most_rows) {
    std::size_t rows = 0;
    for (const auto& [day, of_day] : days) rows += of_day.size();
    while (rows > most_rows && days.size() > 1) {
      rows -= days.begin()->second.size();
      days.erase(days.begin());
    }
  }
};

struct UsageLog::View::Data {
  struct Part {
    FilePtr file;
    std::size_t size = 0;
    std::int64_t latest = 0;
    std::vector<std::pair<std::int64_t, std::size_t>> marks;
  };
  std::vector<Part> parts;
  std::vector<std::string> waiting;
  std::shared_ptr<const Sums> sums;
};

UsageLog::UsageLog(std::string folder, UsageLimits limits)
    : folder_(std::move(folder)), limits_(limits), sums_(std::make_shared<Sums>()) {}

UsageLog::~UsageLog() {
  if (fd_ >= 0) ::close(fd_);
}

Error UsageLog::failure(const std::string& path, std::string_view what) const {
  return Error::unavailable(cat(path, ": cannot ", what, " it: ", std::strerror(errno)));
}

Result<UsageLog::Start> UsageLog::open() {
  std::error_code failed;
  fs::create_directories(folder_, failed);
  if (failed) return Error::unavailable(cat(folder_, ": cannot make it: ", failed.message()));
  fs::permissions(folder_, fs::perms::owner_all, failed);
  const MutexLock lock(mutex_);
  if (const auto text = runtime::system_files().read(cat(folder_, "/sums")); text.ok()) {
    auto sums = Sums::parse(*text);
    if (!sums.ok()) return sums.error().within(cat(folder_, "/sums"));
    sums_ = std::make_shared<Sums>(std::move(sums).value());
  }
  std::vector<std::uint64_t> numbers;
  for (const auto& entry : fs::directory_iterator(folder_, failed)) {
    const std::string name = entry.path().filename().string();
    std::uint64_t number = 0;
    if (name.ends_with(kEnding) &&
        read_number(std::string_view(name).substr(0, name.size() - kEnding.size()), number))
      numbers.push_back(number);
  }
  if (failed) return Error::unavailable(cat(folder_, ": cannot list it: ", failed.message()));
  std::sort(numbers.begin(), numbers.end());
  last_number_ = sums_->folded;
  for (const std::uint64_t number : numbers) {
    last_number_ = std::max(last_number_, number);
    auto file = std::make_shared<File>();
    file->path = cat(folder_, "/", file_name(number));
    file->number = number;
    if (number <= sums_->folded) {
      file->goes = true;
      continue;
    }
    file->size = static_cast<std::size_t>(fs::file_size(file->path, failed));
    std::optional<std::int64_t> head;
    bool torn = true;
    DIBS_CHECK(read_lines(file->path, 0, file->size, [&](std::string_view line) {
      torn = false;
      head = parse_head(line);
      return false;
    }));
    if (!head) {
      file->goes = torn;
      if (!torn) log::warn("this version cannot read a file of usage", {{"file", file->path}});
      continue;
    }
    // Nothing ended later than the next file began.
    if (!files_.empty()) files_.back()->latest = *head;
    files_.push_back(std::move(file));
  }
  return replay();
}

Result<UsageLog::Start> UsageLog::replay() {
  Start start;
  while (!files_.empty()) {
    File& file = *files_.back();
    const std::size_t all = std::exchange(file.size, 0);
    file.latest = 0;
    bool head = true;
    std::size_t begun = 0;  // where what was held at its beginning ends
    DIBS_TRY(const std::size_t end, read_lines(file.path, 0, all, [&](std::string_view text) {
               const std::size_t bytes = text.size() + 1;
               if (std::exchange(head, false)) {
                 if (!parse_head(text)) return false;
                 file.grow(bytes, 0);
                 return true;
               }
               const auto line = parse_line(text);
               if (!line) return false;
               const UsageInterval& one = line->interval;
               if (line->kind != UsageLine::Kind::known && !parse_holding(one.holding))
                 return false;
               std::int64_t ended = 0;
               if (line->kind == UsageLine::Kind::begin) {
                 start.held[std::string(one.claim)] = {one.from, std::string(one.holding)};
                 start.known = std::max(start.known, one.from);
               } else if (line->kind == UsageLine::Kind::end) {
                 start.known = std::max(start.known, one.to);
                 start.held.erase(std::string(one.claim));
                 ended = one.to;
               } else {
                 // After a clock that was set back it is less than what stands before.
                 start.known = one.to;
               }
               file.grow(bytes, ended);
               if (begun == 0 && line->kind == UsageLine::Kind::known) begun = file.size;
               return true;
             }));
    if (begun > 0) {
      if (end < all) {
        log::warn("records of usage end in a torn line, which is cut off",
                  {{"file", file.path}, {"bytes", all - end}});
        if (::truncate(file.path.c_str(), static_cast<off_t>(end)) != 0)
          return failure(file.path, "cut");
      }
      first_bytes_ = begun;
      file_bytes_ = file.size;
      wants_file_ = false;
      return start;
    }
    // Killed while it was begun: the one before knows all that it says.
    start = {};
    file.goes = true;
    files_.pop_back();
  }
  return start;
}

UsageLog::Piece& UsageLog::last_piece() {
  if (waiting_.empty()) waiting_.emplace_back();
  return waiting_.back();
}

void UsageLog::add_line(std::string_view line, std::int64_t latest) {
  Piece& piece = last_piece();
  piece.lines.append(line);
  piece.latest = std::max(piece.latest, latest);
  waiting_bytes_ += line.size();
  file_bytes_ += line.size();
}

void UsageLog::add_end(const UsageInterval& interval) {
  const MutexLock lock(mutex_);
  add_line(end_line(interval), interval.to);
}

void UsageLog::add_begin(std::string_view claim, const UsageHold& hold) {
  const MutexLock lock(mutex_);
  add_line(begin_line(hold.since, claim, hold.holding), 0);
}

void UsageLog::add_known(std::int64_t at) {
  const MutexLock lock(mutex_);
  add_line(known_line(at), 0);
}

bool UsageLog::is_full() const {
  const MutexLock lock(mutex_);
  // Where much is held, what each file begins with must not be most of it.
  return wants_file_ || file_bytes_ > std::max(limits_.file, 4 * first_bytes_);
}

void UsageLog::begin_file(std::int64_t at, const UsageHolds& held) {
  const MutexLock lock(mutex_);
  // A clock may have been set back.
  std::int64_t begins = at;
  for (const FilePtr& file : files_) begins = std::max(begins, file->latest);
  if (writing_) begins = std::max(begins, writing_->latest);
  for (const Piece& piece : waiting_) begins = std::max(begins, piece.latest);
  waiting_.emplace_back().begins_file = true;
  file_bytes_ = 0;
  wants_file_ = false;
  add_line(head_line(begins), 0);
  for (const auto& [claim, hold] : held) add_line(begin_line(hold.since, claim, hold.holding), 0);
  add_line(known_line(at), 0);
  first_bytes_ = file_bytes_;
}

std::shared_ptr<UsageLog::Piece> UsageLog::next_piece() {
  const MutexLock lock(mutex_);
  if (!writing_ && !waiting_.empty()) {
    writing_ = std::make_shared<Piece>(std::move(waiting_.front()));
    waiting_.erase(waiting_.begin());
  }
  return writing_;
}

Result<> UsageLog::flush() {
  while (const auto piece = next_piece()) {
    if (auto written = write(*piece); !written.ok()) {
      drop_waiting();
      return written;
    }
    const MutexLock lock(mutex_);
    files_.back()->grow(piece->lines.size(), piece->latest);
    waiting_bytes_ -= piece->lines.size();
    writing_.reset();
  }
  return make_room();
}

void UsageLog::drop_waiting() {
  const MutexLock lock(mutex_);
  if (waiting_bytes_ < kMostWaiting) return;
  waiting_.clear();
  writing_.reset();
  waiting_bytes_ = 0;
  wants_file_ = true;
}

Result<> UsageLog::open_next() {
  auto file = std::make_shared<File>();
  file->number = last_number_ + 1;
  file->path = cat(folder_, "/", file_name(file->number));
  const int fd = ::open(file->path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return failure(file->path, "make");
  sync();
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
  ++last_number_;
  const MutexLock lock(mutex_);
  files_.push_back(std::move(file));
  return success();
}

Result<> UsageLog::write(Piece& piece) {
  if (std::exchange(piece.begins_file, false)) {
    if (auto opened = open_next(); !opened.ok()) {
      piece.begins_file = true;
      return opened;
    }
  }
  FilePtr file;
  std::size_t size = 0;
  {
    const MutexLock lock(mutex_);
    file = files_.back();
    size = file->size;
  }
  if (fd_ < 0) fd_ = ::open(file->path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd_ < 0) return failure(file->path, "open");
  synced_ = false;
  for (std::size_t at = 0; at < piece.lines.size();) {
    const ssize_t count = ::pwrite(fd_, piece.lines.data() + at, piece.lines.size() - at,
                                   static_cast<off_t>(size + at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const Error error = failure(file->path, "write");
      // What is there of it is written again.
      (void)::ftruncate(fd_, static_cast<off_t>(size));
      return error;
    }
    at += static_cast<std::size_t>(count);
  }
  return success();
}

void UsageLog::sync() {
  if (fd_ < 0 || std::exchange(synced_, true)) return;
  if (::fdatasync(fd_) != 0)
    log::warn("records of usage may not last", {{"error", std::strerror(errno)}});
}

Result<> UsageLog::make_room() {
  for (;;) {
    FilePtr oldest;
    auto sums = std::make_shared<Sums>();
    std::size_t size = 0;
    {
      const MutexLock lock(mutex_);
      std::size_t all = 0;
      for (const FilePtr& file : files_) all += file->size;
      if (files_.size() < 2 || all <= limits_.all) return success();
      oldest = files_.front();
      size = oldest->size;
      *sums = *sums_;
    }
    UsageTable table({{UsageBy::name_space, UsageBy::device_class}, "", 0, kNoEnd, kDay});
    DIBS_CHECK(read_lines(oldest->path, 0, size, [&](std::string_view text) {
      const auto line = parse_line(text);
      if (line && line->kind == UsageLine::Kind::end) {
        table.add(line->interval);
        sums->exact_since = std::max(sums->exact_since, line->interval.to);
      }
      return true;
    }));
    for (const auto& [key, sum] : table.rows()) {
      DeviceSeconds& row = sums->days[key.first / kDay][key.second];
      row.held += sum.held;
      row.used += sum.used;
    }
    sums->folded = oldest->number;
    sums->keep(limits_.day_rows);
    DIBS_CHECK(runtime::system_files().write(cat(folder_, "/sums"), sums->text()));
    const MutexLock lock(mutex_);
    sums_ = std::move(sums);
    files_.erase(files_.begin());
    oldest->goes = true;
  }
}

UsageLog::View UsageLog::view() const {
  auto data = std::make_shared<View::Data>();
  const MutexLock lock(mutex_);
  for (const FilePtr& file : files_)
    data->parts.push_back({file, file->size, file->latest, file->marks});
  if (writing_) data->waiting.push_back(writing_->lines);
  for (const Piece& piece : waiting_) data->waiting.push_back(piece.lines);
  data->sums = sums_;
  View view;
  view.data_ = std::move(data);
  return view;
}

Result<> UsageLog::View::read(UsageTable& table) const {
  const std::int64_t from = table.plan().from;
  const auto take = [&](std::string_view text) {
    if (text.empty() || text[0] != '-') return true;
    const auto line = parse_line(text);
    if (line) table.add(line->interval);
    return true;
  };
  for (const Data::Part& part : data_->parts) {
    if (part.latest <= from) continue;
    std::size_t offset = 0;
    for (const auto& [latest, at] : part.marks) {
      if (latest <= from) offset = at;
    }
    DIBS_CHECK(read_lines(part.file->path, offset, part.size, take));
  }
  for (const std::string& text : data_->waiting) {
    for (const std::string_view line : split(text, '\n')) take(line);
  }
  return success();
}

std::int64_t UsageLog::View::exact_since() const { return data_->sums->exact_since; }

void UsageLog::View::read_sums(UsageTable& table) const {
  const auto first = data_->sums->days.lower_bound(table.plan().from / kDay);
  for (auto day = first; day != data_->sums->days.end(); ++day) {
    for (const auto& [names, sum] : day->second) {
      const auto tab = names.find('\t');
      table.add(day->first * kDay, std::string_view(names).substr(0, tab),
                std::string_view(names).substr(tab + 1), sum);
    }
  }
}

}  // namespace dibs::server
