#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "fuzz/targets.h"

namespace dibs::fuzz {
namespace {

struct Corpus {
  const char* name;
  int (*entry)(const std::uint8_t*, std::size_t);
};

class FuzzCorpus : public testing::TestWithParam<Corpus> {
 protected:
  static std::map<std::string, std::string> seeds() {
    std::map<std::string, std::string> seeds;
    for (const auto& seed : std::filesystem::directory_iterator(std::filesystem::path(DIBS_CORPUS) /
                                                                GetParam().name)) {
      std::ifstream file(seed.path(), std::ios::binary);
      seeds[seed.path().filename().string()].assign(std::istreambuf_iterator<char>(file), {});
    }
    return seeds;
  }

  static void run(const std::string& bytes) {
    EXPECT_EQ(GetParam().entry(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()),
              0);
  }
};

TEST_P(FuzzCorpus, every_seed_passes) {
  EXPECT_FALSE(seeds().empty());
  for (const auto& [name, bytes] : seeds()) {
    SCOPED_TRACE(name);
    run(bytes);
  }
}

TEST_P(FuzzCorpus, seeds_cut_short_or_bent_pass) {
  constexpr std::size_t kPlaces = 16;
  for (const auto& [name, bytes] : seeds()) {
    SCOPED_TRACE(name);
    for (std::size_t at = 0; at < bytes.size(); at += bytes.size() / kPlaces + 1) {
      run(bytes.substr(0, at));
      std::string bent = bytes;
      bent[at] = static_cast<char>(bent[at] ^ 0x55);
      run(bent);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, FuzzCorpus,
    testing::Values(Corpus{"json", fuzz_json}, Corpus{"yaml", fuzz_yaml},
                    Corpus{"patch", fuzz_patch}, Corpus{"quantity", fuzz_quantity},
                    Corpus{"http", fuzz_http}, Corpus{"http2", fuzz_http2},
                    Corpus{"websocket", fuzz_websocket}, Corpus{"spdy", fuzz_spdy},
                    Corpus{"protobuf", fuzz_protobuf}, Corpus{"selectors", fuzz_selectors},
                    Corpus{"strategic", fuzz_strategic}, Corpus{"apply", fuzz_apply},
                    Corpus{"structural", fuzz_structural}, Corpus{"cel_compile", fuzz_cel_compile},
                    Corpus{"cel_evaluate", fuzz_cel_evaluate}, Corpus{"cdi", fuzz_cdi},
                    Corpus{"image", fuzz_image}, Corpus{"cni", fuzz_cni},
                    Corpus{"plugin", fuzz_plugin}, Corpus{"driver", fuzz_driver},
                    Corpus{"checkpoint", fuzz_checkpoint}, Corpus{"stored", fuzz_stored},
                    Corpus{"backup", fuzz_backup}, Corpus{"net_objects", fuzz_net_objects},
                    Corpus{"net_addresses", fuzz_net_addresses}, Corpus{"net_host", fuzz_net_host},
                    Corpus{"net_cni", fuzz_net_cni}, Corpus{"etcd", fuzz_etcd},
                    Corpus{"dns", fuzz_dns}, Corpus{"html", fuzz_html},
                    Corpus{"figures", fuzz_figures}, Corpus{"identity", fuzz_identity}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace dibs::fuzz
