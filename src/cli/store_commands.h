#pragma once
// dibs store copy and dibs store check.

#include <string>

#include "cli/place.h"

namespace dibs::cli {

struct CopyFlags {
  std::string from;
  std::string to;
  bool resume = false;
  bool overwrite = false;
  PlaceFlags place;
};

struct CheckFlags {
  std::string place_text;
  PlaceFlags place;
};

/// Each returns the exit status.
int copy_store(const CopyFlags& flags);
int check_store(const CheckFlags& flags);

}  // namespace dibs::cli
