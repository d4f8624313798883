#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz/targets.h"

namespace dibs::json {
namespace {

struct Corpus {
  const char* name;
  int (*entry)(const std::uint8_t*, std::size_t);
};

class FuzzCorpus : public testing::TestWithParam<Corpus> {};

TEST_P(FuzzCorpus, every_seed_passes) {
  int seeds = 0;
  for (const auto& seed :
       std::filesystem::directory_iterator(std::filesystem::path(DIBS_CORPUS) / GetParam().name)) {
    SCOPED_TRACE(seed.path().filename().string());
    std::ifstream file(seed.path(), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    EXPECT_EQ(GetParam().entry(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()),
              0);
    ++seeds;
  }
  EXPECT_GT(seeds, 0);
}

INSTANTIATE_TEST_SUITE_P(Json, FuzzCorpus,
                         testing::Values(Corpus{"json", fuzz::fuzz_json},
                                         Corpus{"yaml", fuzz::fuzz_yaml},
                                         Corpus{"patch", fuzz::fuzz_patch}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace dibs::json
