#include "net/gzip.h"

#include <gtest/gtest.h>

namespace dibs::net {
namespace {

TEST(Gzip, goes_there_and_back) {
  for (const auto& text : {std::string(), std::string("x"), std::string(1'000'000, 'y')}) {
    const std::string packed = gzip(text);
    const auto back = gunzip(packed, 1'000'000);
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(*back, text);
  }
}

TEST(Gzip, bounds_and_checks_what_it_unpacks) {
  const std::string packed = gzip(std::string(1'000'001, 'y'));
  EXPECT_EQ(gunzip(packed, 1'000'000).error().code(), Code::too_large);
  EXPECT_EQ(gunzip("rubbish", 100).error().code(), Code::bad_request);
  EXPECT_EQ(gunzip(packed.substr(0, packed.size() / 2), 10'000'000).error().code(),
            Code::bad_request);
}

TEST(Gzip, knows_who_accepts_it) {
  EXPECT_TRUE(accepts_gzip("gzip"));
  EXPECT_TRUE(accepts_gzip("deflate, GZIP;q=0.5"));
  EXPECT_TRUE(accepts_gzip("*"));
  EXPECT_FALSE(accepts_gzip(""));
  EXPECT_FALSE(accepts_gzip("deflate"));
  EXPECT_FALSE(accepts_gzip("gzip;q=0"));
  EXPECT_FALSE(accepts_gzip("gzip; q=0.000"));
}

TEST(Gzip, packs_a_body_piece_by_piece) {
  std::string whole;
  std::string packed;
  Gzip pack;
  for (int i = 0; i < 300; ++i) {
    const std::string piece(static_cast<std::size_t>(i * 7), static_cast<char>('a' + i % 26));
    whole += piece;
    packed += pack.add(piece, false);
  }
  packed += pack.add("", true);
  auto unpacked = gunzip(packed, whole.size());
  ASSERT_TRUE(unpacked.ok());
  EXPECT_EQ(*unpacked, whole);
  EXPECT_LT(packed.size(), whole.size() / 4);
}

}  // namespace
}  // namespace dibs::net
