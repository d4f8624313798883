#include "cli/place.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/strings.h"
#include "cli/values.h"
#include "json/parse.h"
#include "runtime/files.h"
#include "runtime/real_runtime.h"
#include "store/sqlite_file.h"

namespace dibs::cli {
namespace {

constexpr std::string_view kFileName = "store.db";

/// As of servers that keep Events for an hour.
constexpr Duration kEventLife = std::chrono::hours(1);

Error unfinished(const Place& place, std::string_view mark) {
  return Error::invalid(
      cat(place.text, ": was not filled to its end (", mark, "): there is no whole state to read"));
}

Result<std::unique_ptr<store::Store>> open_place(const Place& place, const PlaceFlags& flags,
                                                 store::Revision first) {
  store::StoreOptions options;
  options.folder = place.folder;
  if (place.store == "etcd") {
    DIBS_TRY(options.etcd, etcd_options(flags.etcd, place.store));
    options.etcd.endpoints = place.endpoints;
    options.etcd.rewrites = false;  // a server does
  }
  options.first_revision = std::max(options.first_revision, first);
  DIBS_TRY(options.at_rest, place_values(place, flags));
  if (!place.folder.empty()) {
    DIBS_CHECK(runtime::system_files().make_dirs(place.folder, 0700));
  }
  auto opened = store::open_store(place.store, options);
  if (!opened.ok()) return opened.error().within(place.text);
  return opened;
}

}  // namespace

Result<Place> parse_place(std::string_view flag, std::string_view text) {
  Place place;
  place.text = text;
  const auto colon = text.find(':');
  place.store = text.substr(0, colon);
  const std::string_view rest =
      colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  if (place.store == "sqlite" && !rest.empty()) {
    std::filesystem::path path(rest);
    // The file itself is as good a name as its folder.
    if (path.filename() == kFileName) path = path.parent_path();
    place.folder = path.empty() ? "." : path.string();
    return place;
  }
  if (place.store == "etcd" && !rest.empty()) {
    for (const std::string_view url : split(rest, ',')) place.endpoints.emplace_back(url);
    return place;
  }
  return Error::bad_request(cat(flag, " ", quoted(text),
                                ": must be sqlite:FOLDER or etcd:URL,URL, for example "
                                "sqlite:/var/lib/dibs or etcd:https://10.0.0.1:2379"));
}

Result<std::shared_ptr<const store::AtRest>> place_values(const Place& place,
                                                          const PlaceFlags& flags) {
  // Nonces come from a runtime that lives as long.
  struct Kept {
    runtime::RealRuntime runtime;
    std::shared_ptr<const store::AtRest> at_rest = {};
  };
  const auto kept = std::make_shared<Kept>();
  DIBS_TRY(kept->at_rest, form_of_values(place.store, flags.encryption_provider_config,
                                         flags.etcd.options, {}, kept->runtime.runtime().random));
  if (!kept->at_rest) return std::shared_ptr<const store::AtRest>();
  return std::shared_ptr<const store::AtRest>(kept, kept->at_rest.get());
}

Result<Reading> read_place(const Place& place, const PlaceFlags& flags) {
  Reading reading;
  if (place.store == "sqlite") {
    DIBS_TRY(auto at_rest, place_values(place, flags));
    DIBS_TRY(auto file, store::SqliteFile::open(place.file(), std::move(at_rest)));
    if (!file->unfinished().empty()) return unfinished(place, file->unfinished());
    if (file->may_be_in_use()) {
      std::fprintf(stderr,
                   "%s: a server has it open, or was killed: what it writes from now on is not "
                   "seen\n",
                   place.text.c_str());
    }
    reading.state = std::move(file);
    return reading;
  }
  DIBS_TRY(reading.store, open_place(place, flags, 0));
  if (const auto mark = reading.store->get(store::kUnfinished)) {
    return unfinished(place, *mark->value);
  }
  DIBS_TRY(reading.state, store::state_of(*reading.store));
  return reading;
}

Result<Reading> read_whole_place(const Place& place, const PlaceFlags& flags) {
  DIBS_TRY(Reading reading, read_place(place, flags));
  store::Item item;
  while (true) {
    DIBS_TRY(const bool more, reading.state->next(item));
    if (!more) break;
    if (const auto unreadable = store::as_unreadable(item.value)) {
      return Error::invalid(cat(place.text, ": ", item.key, " cannot be read: ", unreadable->why));
    }
  }
  DIBS_CHECK(reading.state->rewind());
  return reading;
}

bool same_json(std::string_view a, std::string_view b) {
  const auto left = json::parse(a);
  const auto right = json::parse(b);
  return left.ok() && right.ok() && *left == *right;
}

std::function<void(const store::FillProgress&)> print_progress(std::string command) {
  using Clock = std::chrono::steady_clock;
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  const auto every = terminal ? std::chrono::milliseconds(200) : std::chrono::milliseconds(5000);
  return [command = std::move(command), terminal, every,
          told = Clock::now()](const store::FillProgress& progress) mutable {
    if (Clock::now() - told < every) return;
    told = Clock::now();
    const std::string line =
        cat("dibs ", command, ": ", progress.done,
            progress.all > 0 ? cat(" of ", progress.all) : std::string(), " ", progress.what);
    std::fprintf(stderr, terminal ? "\r\033[K%s\r" : "%s\n", line.c_str());
  };
}

Result<store::FillCount> fill_place(const Place& place, const PlaceFlags& flags,
                                    store::State& state, store::FillOptions options,
                                    const std::function<Result<>()>& last) {
  options.same = same_json;
  options.lifetime = [](std::string_view key) {
    return key.starts_with("/registry/events/") ? std::optional<Duration>(kEventLife)
                                                : std::nullopt;
  };
  const auto within = [&](const Error& error) { return error.within(place.text); };
  DIBS_TRY(auto store, open_place(place, flags, state.revision() + 1));
  const auto filled = store::fill(*store, state, options);
  if (!filled.ok()) return within(filled.error());
  store->close();
  store.reset();

  // As the next server will find it.
  DIBS_TRY(store, open_place(place, flags, state.revision() + 1));
  const auto compared = store::compare(*store, state, options);
  if (!compared.ok()) return within(compared.error());
  if (last) DIBS_CHECK(last());
  if (auto finished = store::finish(*store); !finished.ok()) return within(finished.error());
  store->close();
  return filled;
}

}  // namespace dibs::cli
