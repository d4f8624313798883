#include "dns/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace dibs::dns {
namespace {

using testing::HasSubstr;

Name name(std::string_view text) { return *Name::from_text(text); }

Message sample() {
  Message out;
  out.id = 0x1234;
  out.response = true;
  out.recursion_desired = true;
  out.questions = {{name("Web.default.svc.cluster.local"), type::a}};
  out.answers = {
      {name("Web.default.svc.cluster.local"), type::a, kInternet, 5, "\x0a\x01\x02\x03"}};
  out.authority = {
      {name("cluster.local"), type::ns, kInternet, 5, name("ns.dns.cluster.local").wire()}};
  out.edns = Edns{1232, 0, true};
  return out;
}

TEST(Name, is_text_and_back) {
  EXPECT_EQ(name("a.b.").text(), "a.b.");
  EXPECT_EQ(name("").text(), ".");
  EXPECT_EQ(Name::from_labels({"a.b", "c d"})->text(), "a\\.b.c\\032d.");
}

TEST(Name, has_bounds) {
  EXPECT_TRUE(Name::from_text(std::string(63, 'a')));
  EXPECT_FALSE(Name::from_text(std::string(64, 'a')));
  EXPECT_FALSE(Name::from_text("a..b"));
  std::string text;
  for (int i = 0; i < 127; ++i) text += "a.";
  EXPECT_TRUE(Name::from_text(text));
  EXPECT_FALSE(Name::from_text(text + "a"));
}

TEST(Name, lies_within_zones_by_labels) {
  EXPECT_TRUE(name("a.b.c").is_within(name("b.c")));
  EXPECT_TRUE(name("b.c").is_within(name("b.c")));
  EXPECT_FALSE(name("ab.c").is_within(name("b.c")));
  EXPECT_TRUE(name("a").is_within(Name()));
}

TEST(Message, reads_what_it_wrote) {
  const auto again = parse(write(sample()));
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(*again, sample());
}

TEST(Message, compresses_names) {
  Message message = sample();
  for (int i = 0; i < 20; ++i) message.answers.push_back(message.answers.front());
  EXPECT_LT(write(message).size(), 12 + 35 + 21 * 16 + 60);
  EXPECT_EQ(*parse(write(message)), message);
}

TEST(Message, keeps_case_of_names_in_its_pointers) {
  Message message = sample();
  message.answers.front().name = name("web.default.svc.cluster.local");
  EXPECT_EQ(*parse(write(message)), message);
}

TEST(Message, says_that_it_was_cut_off) {
  Message message = sample();
  for (int i = 0; i < 100; ++i) message.answers.push_back(message.answers.front());
  const std::string bytes = write(message, 512);
  EXPECT_LE(bytes.size(), 512U);
  const auto cut = parse(bytes);
  ASSERT_TRUE(cut);
  EXPECT_TRUE(cut->truncated);
  EXPECT_GT(cut->answers.size(), 20U);
  EXPECT_TRUE(cut->edns);
}

TEST(Message, leaves_out_what_is_only_additional_without_a_word) {
  Message message = sample();
  for (int i = 0; i < 100; ++i) message.additional.push_back(message.answers.front());
  const auto cut = parse(write(message, 512));
  ASSERT_TRUE(cut);
  EXPECT_FALSE(cut->truncated);
  EXPECT_LT(cut->additional.size(), 100U);
}

TEST(Message, carries_a_long_code_in_edns) {
  Message message = sample();
  message.rcode = Rcode::bad_version;
  EXPECT_EQ(parse(write(message))->rcode, Rcode::bad_version);
}

TEST(Message, reads_names_in_data_out_of_their_compression) {
  // A question a.b, and an MX of it that points to the question's name.
  const std::string bytes(
      "\0\1\x80\0\0\1\0\1\0\0\0\0"
      "\1a\1b\0\0\x0f\0\1"
      "\xc0\x0c\0\x0f\0\1\0\0\0\5\0\4\0\x0a\xc0\x0e",
      12 + 9 + 16);
  const auto message = parse(bytes);
  ASSERT_TRUE(message) << message.error().message();
  EXPECT_EQ(message->answers[0].data, std::string("\0\x0a\1b\0", 5));
}

struct Broken {
  const char* what;
  std::string bytes;
};

TEST(Message, refuses_broken_bytes) {
  const std::string head("\0\1\0\0\0\1\0\0\0\0\0\0", 12);
  const std::string answer_head("\0\1\x80\0\0\0\0\1\0\0\0\0", 12);
  const Broken cases[] = {
      {"no header", "abc"},
      {"behind the end", head},
      {"behind the end", head + std::string("\1a", 2)},
      {"points ahead", head + std::string("\xc0\x0c\0\1\0\1", 6)},
      {"points ahead", head + std::string("\1a\xc0\x0c\0\1\0\1", 8)},
      {"points ahead", head + std::string("\xc0\xff\0\1\0\1", 6)},
      {"kind of label", head + std::string("\x40z\0\0\1\0\1", 7)},
      {"question goes on", head + std::string("\1a\0\0\1", 5)},
      {"data goes on", answer_head + std::string("\0\0\1\0\1\0\0\0\0\0\x09z", 12)},
      {"too short", answer_head + std::string("\0\0\x21\0\1\0\0\0\0\0\2zz", 13)},
      {"OPT", answer_head + std::string("\0\0\x29\0\1\0\0\0\0\0\0", 11)},
  };
  for (const auto& one : cases) {
    const auto message = parse(one.bytes);
    ASSERT_FALSE(message) << one.what;
    EXPECT_THAT(message.error().message(), HasSubstr(one.what));
  }
}

TEST(Message, refuses_a_name_that_grows_by_pointers) {
  // Labels of 60 bytes, each pointing to the one before: five of them are too long.
  std::string bytes("\0\1\0\0\0\6\0\0\0\0\0\0", 12);
  std::size_t last = 0;
  for (int i = 0; i < 6; ++i) {
    const std::size_t here = bytes.size();
    bytes += '\x3c' + std::string(60, 'a');
    if (last == 0) {
      bytes += '\0';
    } else {
      bytes += static_cast<char>(0xc0 | last >> 8);
      bytes += static_cast<char>(last & 0xff);
    }
    bytes += std::string("\0\1\0\1", 4);
    last = here;
  }
  const auto message = parse(bytes);
  ASSERT_FALSE(message);
  EXPECT_THAT(message.error().message(), HasSubstr("too long"));
}

TEST(Message, survives_any_bytes_and_writes_what_it_took) {
  std::mt19937 chance(7);
  const std::string seed = write(sample());
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = seed;
    for (unsigned i = 0; i < 1 + chance() % 6; ++i) {
      bytes[chance() % bytes.size()] = static_cast<char>(chance());
    }
    if (chance() % 4 == 0) bytes.resize(chance() % bytes.size());
    const auto message = parse(bytes);
    if (!message) continue;
    const auto again = parse(write(*message));
    ASSERT_TRUE(again);
    if (again->truncated == message->truncated) {
      ASSERT_EQ(*again, *message);
    }
  }
}

TEST(Message, tells_how_long_an_absence_may_be_remembered) {
  Message message = sample();
  EXPECT_FALSE(negative_ttl(message));
  message.authority = {{name("example"), type::soa, kInternet, 60,
                        soa_data(name("ns.example"), name("me.example"), 1, 7)}};
  EXPECT_EQ(negative_ttl(message), 7U);
}

}  // namespace
}  // namespace dibs::dns
