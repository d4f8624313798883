#include "net/spdy_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"

namespace dibs::net {
namespace {

std::string from_hex(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    out.push_back(static_cast<char>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return out;
}

std::vector<SpdyFrame> read(SpdyCodec& codec, std::string_view bytes, std::size_t step) {
  std::vector<SpdyFrame> frames;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    EXPECT_TRUE(codec.feed(bytes.substr(at, step), frames).ok());
  }
  return frames;
}

TEST(Spdy, reads_what_it_writes_however_cut) {
  for (const std::size_t step : {std::size_t{1}, std::size_t{3}, std::size_t{100000}}) {
    SpdyCodec writer;
    SpdyCodec reader;
    const SpdyHeaders headers = {{"streamtype", "data"}, {"port", "8080"}, {"requestid", "0"}};
    // One after the other: header blocks depend on those before them.
    std::string bytes = writer.syn_stream(1, headers, false);
    bytes += writer.syn_reply(1, {}, false);
    bytes += SpdyCodec::data(1, "hello", false) + SpdyCodec::data(1, "", true);
    bytes += SpdyCodec::ping(7) + SpdyCodec::rst_stream(3, kSpdyCancel) + SpdyCodec::goaway(1);
    bytes += writer.syn_stream(3, headers, true);
    const auto frames = read(reader, bytes, step);
    std::string text;
    for (const SpdyFrame& frame : frames) {
      append(text, static_cast<int>(frame.type), ":", frame.stream, frame.fin ? "F" : "", " ");
    }
    if (step == 100000) {
      EXPECT_EQ(text, "1:1 2:1 0:1 0:1F 6:7 3:3 7:1 1:3F ");
    }
    ASSERT_FALSE(frames.empty());
    EXPECT_EQ(frames.front().headers, headers);
    EXPECT_EQ(frames.back().headers, headers);
    std::string data;
    for (const SpdyFrame& frame : frames) data += frame.data;
    EXPECT_EQ(data, "hello");
  }
}

TEST(Spdy, compresses_with_the_protocols_dictionary) {
  // Adler-32 of the dictionary stands in the zlib header, after two bytes.
  SpdyCodec codec;
  const std::string frame = codec.syn_stream(1, {{"streamtype", "error"}}, false);
  ASSERT_GT(frame.size(), 24U);
  EXPECT_EQ(hex_encode(frame.substr(20, 4)), "e3c6a7c2");
}

TEST(Spdy, reads_a_recorded_frame_of_another_implementation) {
  // SYN_STREAMs of the streams 1 (streamtype: error) and 3 (streamtype: data, port: 80), as Go's
  // framer writes them.
  const std::string frame = from_hex(
      "80030001000000290000000100000000000078f9e3c6a7c26260606004a7b392a2d4c45c6851c29a"
      "0a0a6800000000ffff80030001000000210000000300000000000002651c0c295029930829b08b40"
      "899bc9c200000000ffff");
  SpdyCodec codec;
  std::vector<SpdyFrame> frames;
  ASSERT_TRUE(codec.feed(frame, frames).ok());
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0].stream, 1U);
  EXPECT_EQ(spdy_header(frames[0].headers, "StreamType"), "error");
  EXPECT_EQ(frames[1].stream, 3U);
  EXPECT_EQ(spdy_header(frames[1].headers, "port"), "80");
}

TEST(Spdy, gives_long_data_in_pieces_and_the_end_with_the_last) {
  const std::string bytes = SpdyCodec::data(5, std::string(200'000, 'x'), true);
  SpdyCodec codec;
  const auto frames = read(codec, bytes, 10'000);
  std::size_t size = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    size += frames[i].data.size();
    EXPECT_EQ(frames[i].fin, i + 1 == frames.size());
  }
  EXPECT_EQ(size, 200'000U);
}

TEST(Spdy, skips_what_it_does_not_use) {
  SpdyCodec codec;
  std::vector<SpdyFrame> frames;
  // SETTINGS without entries, WINDOW_UPDATE, an unknown type.
  EXPECT_TRUE(codec.feed(from_hex("800300040000000400000000"), frames).ok());
  EXPECT_TRUE(codec.feed(from_hex("80030009000000080000000100000100"), frames).ok());
  EXPECT_TRUE(codec.feed(from_hex("8003000f00000000"), frames).ok());
  EXPECT_TRUE(frames.empty());
}

TEST(Spdy, names_the_fault) {
  const struct {
    std::string bytes;
    std::string message;
  } cases[] = {
      {from_hex("8002000100000000"), "SPDY: unknown version"},
      {from_hex("8003000100ffffff"), "SPDY: frame too large"},
      {from_hex("800300010000000400000001"), "SPDY: frame too short"},
      {from_hex("8003000200000008000000010badc0de"), "SPDY: broken header compression"},
  };
  for (const auto& one : cases) {
    SpdyCodec codec;
    std::vector<SpdyFrame> frames;
    const auto fed = codec.feed(one.bytes, frames);
    ASSERT_FALSE(fed.ok()) << one.message;
    EXPECT_EQ(fed.error().message(), one.message);
    EXPECT_FALSE(codec.feed("x", frames).ok());
  }
}

TEST(Spdy, bounds_a_header_block) {
  // A block that unpacks to far more than it says is refused, not held.
  SpdyCodec writer;
  SpdyCodec reader;
  std::vector<SpdyFrame> frames;
  const std::string frame = writer.syn_stream(1, {{"a", std::string(2'000'000, 'a')}}, false);
  EXPECT_FALSE(reader.feed(frame, frames).ok());
  EXPECT_TRUE(frames.empty());
}

}  // namespace
}  // namespace dibs::net
