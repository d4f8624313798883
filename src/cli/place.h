#pragma once
// Where a cluster's objects are kept, as commands are told: "sqlite:FOLDER" or "etcd:URL,URL".
//
// Reading changes nothing, and a server may have the place open. Filling takes it for this process
// alone, where it is a file.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/etcd_flags.h"
#include "store/fill.h"
#include "store/state.h"
#include "store/stores.h"

namespace dibs::cli {

struct PlaceFlags {
  std::string encryption_provider_config;
  EtcdFlags etcd;  // without endpoints: the place names them
};

struct Place {
  std::string text;    // as it was given
  std::string store;   // "sqlite", "etcd"
  std::string folder;  // of a file
  std::vector<std::string> endpoints = {};

  std::string file() const { return folder + "/store.db"; }
};

/// Errors name the flag and the forms there are.
Result<Place> parse_place(std::string_view flag, std::string_view text);

/// What is there. `store` is null where the state is read from the file itself.
struct Reading {
  std::unique_ptr<store::Store> store;
  std::unique_ptr<store::State> state;
};
/// Errors: also for a place that was not filled to its end.
Result<Reading> read_place(const Place& place, const PlaceFlags& flags);

/// The same, where every value can be read: what is copied is whole. Errors name the first that
/// cannot, and why.
Result<Reading> read_whole_place(const Place& place, const PlaceFlags& flags);

/// What the values of a store are opened with; null: nothing is needed.
Result<std::shared_ptr<const store::AtRest>> place_values(const Place& place,
                                                          const PlaceFlags& flags);

/// Makes the place hold the state, reads all of it back from where it lies, and calls it whole.
/// `last` is done before that. Progress goes to standard error.
Result<store::FillCount> fill_place(const Place& place, const PlaceFlags& flags,
                                    store::State& state, store::FillOptions options,
                                    const std::function<Result<>()>& last = {});

/// Whether two values are the same JSON.
bool same_json(std::string_view a, std::string_view b);

/// A line on a terminal that is written over, elsewhere one every few seconds.
std::function<void(const store::FillProgress&)> print_progress(std::string command);

}  // namespace dibs::cli
