#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "api/merge/selectors.h"
#include "api/schema/protobuf.h"
#include "fuzz/targets.h"
#include "net/http_fuzz.h"

namespace dibs::fuzz {
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

INSTANTIATE_TEST_SUITE_P(
    All, FuzzCorpus,
    testing::Values(Corpus{"json", fuzz_json}, Corpus{"yaml", fuzz_yaml},
                    Corpus{"patch", fuzz_patch}, Corpus{"quantity", fuzz_quantity},
                    Corpus{"http", net::fuzz_http}, Corpus{"websocket", net::fuzz_websocket},
                    Corpus{"spdy", net::fuzz_spdy}, Corpus{"protobuf", api::fuzz_protobuf},
                    Corpus{"selectors", api::fuzz_selectors}, Corpus{"strategic", fuzz_strategic},
                    Corpus{"apply", fuzz_apply}, Corpus{"structural", fuzz_structural},
                    Corpus{"cel_compile", fuzz_cel_compile},
                    Corpus{"cel_evaluate", fuzz_cel_evaluate}, Corpus{"cdi", fuzz_cdi}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace dibs::fuzz
