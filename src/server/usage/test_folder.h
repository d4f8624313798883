#pragma once
// For tests: a folder of records, removed with everything in it.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace dibs::server::test {

class UsageFolder {
 public:
  UsageFolder() {
    std::string pattern = "/tmp/dibs-usage-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~UsageFolder() { std::filesystem::remove_all(root_); }
  UsageFolder(const UsageFolder&) = delete;
  UsageFolder& operator=(const UsageFolder&) = delete;

  std::string path() const { return root_ + "/usage"; }
  /// Names of files of records, the oldest first.
  std::vector<std::string> files() const {
    std::vector<std::string> made;
    for (const auto& entry : std::filesystem::directory_iterator(path())) {
      if (entry.path().extension() == ".log") made.push_back(entry.path().string());
    }
    std::sort(made.begin(), made.end());
    return made;
  }
  std::string text_of_last() const {
    std::ifstream in(files().back());
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void append_to_last(const std::string& text) const {
    std::ofstream(files().back(), std::ios::app) << text;
  }
  std::uintmax_t bytes() const {
    std::uintmax_t sum = 0;
    for (const std::string& file : files()) sum += std::filesystem::file_size(file);
    return sum;
  }

 private:
  std::string root_;
};

}  // namespace dibs::server::test
