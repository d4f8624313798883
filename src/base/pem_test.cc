#include "base/pem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"

namespace dibs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> blocks(std::string_view text) {
  std::vector<std::string> out;
  while (const auto block = next_pem_block(text)) {
    out.push_back(cat(block->type, block->has_headers ? "+" : "", "=", block->bytes));
  }
  return out;
}

TEST(Pem, finds_blocks_among_other_text) {
  EXPECT_THAT(blocks("words\n-----BEGIN A-----\nb25l\n-----END A-----\n"
                     "more words\n-----BEGIN B C-----\r\ndHd \tv\r\n-----END B C-----"),
              ElementsAre("A=one", "B C=two"));
  EXPECT_THAT(blocks(""), IsEmpty());
  EXPECT_THAT(blocks("-----BEGIN A-----\nb25l\n"), IsEmpty());
}

TEST(Pem, skips_a_block_that_is_damaged) {
  const std::string good = "-----BEGIN A-----\ndHdv\n-----END A-----\n";
  for (const char* bad :
       {"-----BEGIN A-----\nb25l-\n-----END A-----\n",
        "-----BEGIN A-----\nb25l\nb25\n-----END A-----\n",
        "-----BEGIN A-----\nb25l\n-----END B-----\n",
        "-----BEGIN A-----\nb25l\n-----END A----- x\n",
        "-----BEGIN A-----\nkey: value\n-----END A-----\n",
        "x-----BEGIN A-----\nb25l\n-----END A-----\n", "-----BEGIN A----\nb25l\n-----END A----\n",
        "-----BEGIN A-----\nb25l\n"}) {
    EXPECT_THAT(blocks(bad + good), ElementsAre("A=two")) << bad;
  }
}

TEST(Pem, tells_that_a_block_has_headers) {
  EXPECT_THAT(blocks("-----BEGIN A-----\nkey: value\n\nb25l\n-----END A-----\n"),
              ElementsAre("A+=one"));
}

TEST(Pem, takes_a_block_without_data) {
  EXPECT_THAT(blocks("-----BEGIN A-----\n-----END A-----\n"
                     "-----BEGIN B-----\r\n-----END B-----\r\n"),
              ElementsAre("A=", "B="));
}

}  // namespace
}  // namespace dibs
