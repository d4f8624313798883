#include "store/value_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

#include "base/strings.h"

namespace dibs::store {
namespace {

std::string pod(int i, std::string_view more = "") {
  std::minstd_rand random(static_cast<unsigned>(i) * 7919U + 17U);
  std::string uid;
  for (int k = 0; k < 36; ++k) uid.push_back("0123456789abcdef"[random() % 16]);
  std::string fields;
  for (int k = 0; k < 40; ++k) append(fields, "\"f:field-", k, "\":{},");
  return cat(R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"pod-)", i, R"(","uid":")", uid,
             R"(","managedFields":[{"time":"2026-01-01T00:00:)", i % 60, R"(Z","fieldsV1":{)",
             fields, R"(".":{}}}]},"spec":{"nodeName":"node-)", i % 13,
             R"(","containers":[{"name":"main"}])", more, "}}");
}

struct Values : testing::Test {
  ValuePool pool;
};

TEST_F(Values, comes_back_as_it_was) {
  std::minstd_rand random(3);
  std::vector<std::string> texts = {"", "x", std::string(500, '"'), std::string(5000, 'a'),
                                    std::string(100'000, 'b')};
  for (int i = 0; i < 300; ++i) texts.push_back(pod(i, i % 3 == 0 ? R"(,"a":{"b":"c"})" : ""));
  // Nothing but quotes, and hardly anything in common: what would take longest to compare.
  for (int i = 0; i < 4; ++i) {
    std::string quotes;
    while (quotes.size() < 30'000) {
      quotes.push_back('"');
      quotes.push_back(static_cast<char>('a' + random() % 26));
    }
    texts.push_back(quotes);
  }
  // What is left after cutting, doubling and putting in, at any place.
  for (int i = 0; i < 3000; ++i) {
    std::string text = texts[5 + random() % (texts.size() - 5)];
    for (int k = 0; k < 3; ++k) {
      const std::size_t at = random() % (text.size() + 1);
      switch (random() % 4) {
        case 0:
          text.erase(at, random() % 200);
          break;
        case 1:
          text.insert(at, text.substr(random() % (text.size() + 1), random() % 200));
          break;
        case 2:
          text.insert(at, std::string(random() % 20, "\"{}x"[random() % 4]));
          break;
        default:
          text.resize(at);
      }
    }
    texts.push_back(text);
  }
  for (const std::string& text : texts) {
    const ValueBytes kept(pool, "/registry/pods/ns/name", text);
    ASSERT_EQ(*kept, text);
    ASSERT_EQ(kept.size(), text.size());
    ASSERT_EQ(kept.key(), "/registry/pods/ns/name");
    ASSERT_EQ(kept.head(100), text.substr(0, 100));
    ASSERT_EQ(kept.head(100'000'000), text);
  }
}

TEST_F(Values, takes_little_room_where_another_is_alike) {
  std::size_t room = 0;
  std::size_t size = 0;
  for (int i = 0; i < 100; ++i) {
    const ValueBytes kept(pool, "/alike/pods/ns/name", pod(i));
    room += kept.memory();
    size += kept.size();
  }
  EXPECT_LT(room * 4, size);
}

TEST_F(Values, compares_only_with_its_own_kind) {
  const ValueBytes first(pool, "/one/pods/a", pod(1));
  const ValueBytes other(pool, "/another/pods/a", pod(2));
  const ValueBytes same(pool, "/one/pods/b", pod(2));
  EXPECT_GT(other.memory(), other.size());
  EXPECT_LT(same.memory(), same.size() / 2);
}

TEST_F(Values, leaves_the_rest_as_it_is) {
  std::minstd_rand random(5);
  for (int i = 0; i < 50; ++i) {
    std::string noise(1000, ' ');
    for (char& c : noise) c = static_cast<char>(random() % 256);
    const ValueBytes kept(pool, "/noise/x/y", noise);
    EXPECT_EQ(*kept, noise);
    EXPECT_LE(kept.memory(), noise.size() + 16);
    EXPECT_GE(kept.memory(), noise.size());
  }
}

TEST_F(Values, may_outlive_what_it_was_compared_with) {
  auto first = std::make_unique<ValueBytes>(pool, "/gone/pods/a", pod(1));
  const ValueBytes second(pool, "/gone/pods/b", pod(2));
  first.reset();
  for (int i = 0; i < 50; ++i) {
    std::string noise(400 + i, static_cast<char>('a' + i % 26));
    for (std::size_t k = 0; k < noise.size(); k += 2) noise[k] = static_cast<char>(i * 31 + k * k);
    const ValueBytes pushes_it_out(pool, "/gone/pods/c", noise);
  }
  EXPECT_EQ(*second, pod(2));
}

TEST_F(Values, may_outlive_their_pool) {
  auto own = std::make_unique<ValuePool>();
  const ValueBytes first(*own, "/gone/pods/a", pod(1));
  const ValueBytes second(*own, "/gone/pods/b", pod(2));
  EXPECT_LT(second.memory(), second.size() / 2);
  own.reset();
  EXPECT_EQ(*first, pod(1));
  EXPECT_EQ(*second, pod(2));
}

TEST_F(Values, may_be_made_in_many_threads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 300; ++i) {
        const std::string text = pod(i * 4 + t, i % 50 == 0 ? pod(i) : "");
        if (*ValueBytes(pool, cat("/threads/", i % 3, "/x"), text) != text) ADD_FAILURE() << text;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace dibs::store
