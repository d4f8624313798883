#include <gmock/gmock.h>

#include "node/plugins/claim_cache.h"

namespace dibs::node {
namespace {

using testing::HasSubstr;

// Made apart from this code, after the description of the format; the checksums are zlib's.
constexpr const char* kEmpty =
    R"({"Data":"{\"kind\":\"DRACheckpoint\",\"apiVersion\":\"checkpoint.dra.kubelet.k8s.io/v1\",\"ClaimInfoStateList\":null}","Checksum":4010664294})";
constexpr const char* kOne =
    R"({"Data":"{\"kind\":\"DRACheckpoint\",\"apiVersion\":\"checkpoint.dra.kubelet.k8s.io/v1\",\"ClaimInfoStateList\":[{\"ClaimUID\":\"u\",\"ClaimName\":\"c\",\"Namespace\":\"n\",\"PodUIDs\":{\"p\":{},\"q\":{}},\"DriverState\":{\"d.example.com\":{\"Devices\":[{\"PoolName\":\"pool\",\"DeviceName\":\"dev\",\"ShareID\":null,\"RequestNames\":[\"r\"],\"CDIDeviceIDs\":[\"v/c=\\u003ca\\u003e\"]},{\"PoolName\":\"pool\",\"DeviceName\":\"e\",\"ShareID\":\"s\",\"RequestNames\":null,\"CDIDeviceIDs\":null}]},\"e\":{\"Devices\":null}}}]}","Checksum":2730936340})";

ClaimInfo one() {
  ClaimInfo claim;
  claim.uid = "u";
  claim.name = "c";
  claim.name_space = "n";
  claim.pods = {"p", "q"};
  claim.drivers["d.example.com"].devices = {
      {"d.example.com", "pool", "dev", "", {"r"}, {"v/c=<a>"}},
      {"d.example.com", "pool", "e", "s", {}, {}},
  };
  claim.drivers["e"];
  return claim;
}

TEST(Checkpoint, has_exactly_the_described_form) {
  const ClaimInfo claim = one();

  EXPECT_EQ(empty_checkpoint(), kEmpty);
  EXPECT_EQ(encode_checkpoint({&claim}), kOne);
}

TEST(Checkpoint, reads_back_what_it_wrote) {
  const auto claims = decode_checkpoint(kOne);

  ASSERT_TRUE(claims.ok()) << claims.error().message();
  ASSERT_EQ(claims->size(), 1U);
  EXPECT_EQ(encode_checkpoint({&claims->front()}), kOne);
  EXPECT_EQ(claims->front().drivers.at("d.example.com").devices[1].share_id, "s");
  EXPECT_EQ(claims->front().drivers.at("d.example.com").devices[0].driver, "d.example.com");
  EXPECT_EQ(decode_checkpoint(kEmpty)->size(), 0U);
}

TEST(Checkpoint, keeps_handles_of_the_classic_model_and_operations_to_skip) {
  ClaimInfo claim = one();
  claim.classic = true;
  claim.class_name = "class";
  claim.handles = {{"e", "data", {}}};
  claim.drivers["e"].skip = {"*"};

  const std::string text = encode_checkpoint({&claim});
  const auto claims = decode_checkpoint(text);

  ASSERT_TRUE(claims.ok());
  EXPECT_EQ(claims->front().handles.front().data, "data");
  EXPECT_TRUE(claims->front().drivers.at("e").skips("NodePrepareResources"));
  EXPECT_EQ(encode_checkpoint({&claims->front()}), text);
}

TEST(Checkpoint, every_flipped_byte_is_noticed) {
  const std::string good = kOne;
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    const auto claims = decode_checkpoint(bad);
    // In the middle of an escape the text may come out the same.
    if (claims.ok()) {
      EXPECT_EQ(encode_checkpoint({&claims->front()}), kOne) << at;
    }
  }
  for (std::size_t size = 0; size < good.size(); size += 7) {
    EXPECT_FALSE(decode_checkpoint(good.substr(0, size)).ok()) << size;
  }
}

TEST(Checkpoint, says_what_is_wrong) {
  EXPECT_THAT(decode_checkpoint("{}").error().message(), HasSubstr("no Data"));
  EXPECT_THAT(decode_checkpoint(R"({"Data":"{}","Checksum":1})").error().message(),
              HasSubstr("Checksum"));
  EXPECT_THAT(decode_checkpoint(R"({"Data":"{}","Checksum":2745614147})").error().message(),
              HasSubstr("not a \"DRACheckpoint\""));
}

}  // namespace
}  // namespace dibs::node
