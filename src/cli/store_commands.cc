#include "cli/store_commands.h"

#include <cstdio>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "base/time.h"
#include "cli/process.h"
#include "json/parse.h"
#include "runtime/real_runtime.h"
#include "server/builtin_resources.h"
#include "server/store_check.h"
#include "store/sqlite_file.h"

namespace dibs::cli {
namespace {

constexpr std::size_t kMostFaults = 50;  // that are printed

Result<> copy(const CopyFlags& flags) {
  DIBS_TRY(const Place from, parse_place("--from", flags.from));
  DIBS_TRY(const Place to, parse_place("--to", flags.to));
  if (from.store == to.store && from.folder == to.folder && from.endpoints == to.endpoints) {
    return Error::bad_request("--from and --to: are the same place");
  }
  DIBS_TRY(const Reading source, read_whole_place(from, flags.place));
  const store::Revision revision = source.state->revision();
  store::FillOptions options;
  options.mark = json::write(
      json::Value::object({{"what", "copy"}, {"from", from.text}, {"revision", revision}}));
  options.resume = flags.resume;
  options.overwrite = flags.overwrite;
  options.progress = print_progress("store copy");
  DIBS_TRY(const auto count, fill_place(to, flags.place, *source.state, std::move(options)));
  std::printf(
      "copied %zu objects at revision %lld of %s to %s: %zu written, %zu removed; all read "
      "back and the same\n",
      count.keys, static_cast<long long>(revision), from.text.c_str(), to.text.c_str(),
      count.written, count.removed);
  return success();
}

/// Prints the first faults and counts all.
class Faults {
 public:
  void add(const std::string& what) {
    if (++count_ <= kMostFaults) std::printf("%s\n", what.c_str());
  }
  std::size_t count() const { return count_; }
  void tell_rest() const {
    if (count_ > kMostFaults) std::printf("and %zu more\n", count_ - kMostFaults);
  }

 private:
  std::size_t count_ = 0;
};

Result<std::size_t> check(const CheckFlags& flags) {
  DIBS_TRY(const Place place, parse_place("PLACE", flags.place_text));
  Faults faults;
  const auto fault = [&faults](const std::string& what) { faults.add(what); };
  std::string size;
  if (place.store == "sqlite") {
    DIBS_TRY(auto at_rest, place_values(place, flags.place));
    DIBS_TRY(const auto file, store::SqliteFile::open(place.file(), std::move(at_rest)));
    DIBS_CHECK(file->check(fault));
    size = cat(", ", file->rows(), " rows");
  }
  DIBS_TRY(const Reading reading, read_place(place, flags.place));
  DIBS_TRY(const auto builtin, server::builtin_resources({}));
  server::StoreCheck objects(builtin, fault);
  DIBS_CHECK(objects.run(*reading.state));
  faults.tell_rest();
  std::printf("%s: revision %lld%s, %zu objects, %zu faults\n", place.text.c_str(),
              static_cast<long long>(reading.state->revision()), size.c_str(), objects.objects(),
              faults.count());
  return faults.count();
}

}  // namespace

int copy_store(const CopyFlags& flags) {
  log::set_level(log::Level::warn);
  return exit_status("store copy", copy(flags));
}

int check_store(const CheckFlags& flags) {
  log::set_level(log::Level::warn);
  const auto faults = check(flags);
  if (!faults.ok()) return exit_status("store check", faults.error());
  return *faults == 0 ? 0 : 1;
}

}  // namespace dibs::cli
