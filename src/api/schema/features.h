#pragma once
// Feature gates: which parts of the API are on, as a release has them and the user changed them.
//
// A gate is alpha, beta or stable in a release, on or off by default, and perhaps locked to that.
// The table of features.cc has the gates that something here asks for, with their history. One
// default differs from upstream's: DynamicResourceAllocation is on in every release that knows it.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace dibs::api {

class Features {
 public:
  /// The defaults of a release ("1.37") with changes such as "DRAAdminAccess=false,AllAlpha=true".
  /// A gate that is named wins over AllAlpha and AllBeta, whatever their order. An unknown release
  /// or gate, or a value that is no boolean, is an error that lists what is known; so is another
  /// value for a locked gate, and a named gate that is on while one that it depends on is off.
  static Result<Features> parse(std::string_view release, std::string_view changes = {});

  /// Gates that the release does not know are off.
  bool on(std::string_view gate) const;
  /// 37 for "1.37".
  int minor() const { return minor_; }

  struct Gate {
    std::string name;
    std::string_view stage;  // "ALPHA", "BETA", "" for stable
    bool on = false;
  };
  /// Those that the release knows, by name.
  std::vector<Gate> all() const;

 private:
  int minor_ = 0;
  std::map<std::string, bool, std::less<>> gates_;
};

/// The releases that can be answered as, oldest first: "1.27", …
const std::vector<std::string>& known_releases();
/// 37 for "1.37". Errors: bad_request, listing the known ones.
Result<int> release_minor(std::string_view release);

}  // namespace dibs::api
