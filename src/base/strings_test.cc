#include "base/strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dibs {
namespace {

using testing::ElementsAre;

TEST(Strings, cat_takes_text_numbers_and_booleans) {
  EXPECT_EQ(cat("a", 'b', std::string("c"), 7, -1LL, true), "abc7-1true");
}

TEST(Strings, split_keeps_empty_pieces) {
  EXPECT_THAT(split("", ','), ElementsAre(""));
  EXPECT_THAT(split("a,,b,", ','), ElementsAre("a", "", "b", ""));
  EXPECT_EQ(join({"a", "b"}, ", "), "a, b");
}

TEST(Strings, trim_and_case) {
  EXPECT_EQ(trim(" \t a b\n"), "a b");
  EXPECT_EQ(trim(" "), "");
  EXPECT_EQ(to_lower("AbC-1"), "abc-1");
  EXPECT_EQ(to_upper("AbC-1"), "ABC-1");
  EXPECT_TRUE(equals_ignoring_case("Content-Type", "content-type"));
  EXPECT_FALSE(equals_ignoring_case("a", "ab"));
}

TEST(Strings, quoted_is_as_go_writes_it) {
  EXPECT_EQ(quoted("plain"), R"("plain")");
  EXPECT_EQ(quoted("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(quoted("\a\b\f\n\r\t\v"), R"("\a\b\f\n\r\t\v")");
  EXPECT_EQ(quoted(std::string("\0\x1f\x7f", 3)), R"("\x00\x1f\x7f")");
  EXPECT_EQ(quoted("\xff"
                   "a\xc3"),
            R"("\xffa\xc3")");
  EXPECT_EQ(quoted("größe ☺ 😀"), "\"größe ☺ 😀\"");
  EXPECT_EQ(quoted("\u00a0\u200b\ufeff"), R"("\u00a0\u200b\ufeff")");
  EXPECT_EQ(quoted("\U000e0001"), R"("\U000e0001")");
}

TEST(Strings, mends_what_is_no_utf8) {
  EXPECT_EQ(mend_utf8("aé€😀"), "aé€😀");
  EXPECT_EQ(mend_utf8("a\xc6z\xe2\x82"), "a\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(mend_utf8(""), "");
}

TEST(Strings, utf8_validity) {
  EXPECT_TRUE(is_valid_utf8("aé€😀"));
  for (std::string_view bad :
       {"\x80", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    EXPECT_FALSE(is_valid_utf8(bad)) << quoted(bad);
  }
}

TEST(Strings, base64_round_trips) {
  for (std::string_view text : {"", "f", "fo", "foo", "foob", "\xff\xfe\xfd"}) {
    std::string back;
    EXPECT_TRUE(base64_decode(base64_encode(text), back));
    EXPECT_EQ(back, text);
    EXPECT_TRUE(base64url_decode(base64url_encode(text), back));
    EXPECT_EQ(back, text);
  }
  EXPECT_EQ(base64_encode("fo"), "Zm8=");
  EXPECT_EQ(base64url_encode("\xff\xfe\xfd\xfc"), "__79_A");
}

TEST(Strings, base64_refuses_what_go_refuses) {
  std::string out;
  EXPECT_TRUE(base64_decode("Zm\r\n9v\n", out));
  EXPECT_EQ(out, "foo");
  for (std::string_view bad :
       {"Zm8", "Z", "Zm8==", "Zm8=Zm8=", "=", "Zm9v!", "Zm 9v", "Zg=", "Z==="}) {
    EXPECT_FALSE(base64_decode(bad, out)) << bad;
  }
  EXPECT_FALSE(base64url_decode("Zm8=", out));
}

TEST(Strings, percent_coding) {
  std::string out;
  EXPECT_TRUE(percent_decode("a%20b+c", true, out));
  EXPECT_EQ(out, "a b c");
  EXPECT_TRUE(percent_decode("a+b", false, out));
  EXPECT_EQ(out, "a+b");
  EXPECT_FALSE(percent_decode("%2", false, out));
  EXPECT_FALSE(percent_decode("%zz", false, out));
  EXPECT_EQ(percent_encode("a b/ü~"), "a%20b%2F%C3%BC~");
  EXPECT_EQ(hex_encode("\x01\xab"), "01ab");
}

}  // namespace
}  // namespace dibs
