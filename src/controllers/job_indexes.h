#pragma once
// Sets of completion indexes in the form of a Job's status: "0,2-4,9".

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::controllers {

class IndexSet {
 public:
  /// What cannot be read is left out, and indexes from `below` on.
  static IndexSet parse(std::string_view text, std::int64_t below);

  void add(std::int64_t index);
  bool contains(std::int64_t index) const;
  std::int64_t count() const;
  /// Two neighbours stay apart ("0,1"), three and more become a range ("0-2").
  std::string str() const;

 private:
  struct Range {
    std::int64_t first, last;
  };
  std::vector<Range> ranges_;  // sorted, never touching
};

}  // namespace dibs::controllers
