#include "drivers/nvidia/elf.h"

#include <gtest/gtest.h>

#include "drivers/nvidia/elf_for_test.h"

namespace dibs::drivers::nvidia {
namespace {

ReadAt reader(const std::string& bytes) {
  return [&bytes](std::uint64_t offset, std::size_t size) {
    return offset > bytes.size() ? std::string() : bytes.substr(offset, size);
  };
}

TEST(Soname, is_what_the_loader_knows_a_library_by) {
  EXPECT_EQ(soname_of(reader(test::elf_library("libcuda.so.1"))), "libcuda.so.1");
}

TEST(Soname, is_nothing_for_other_files) {
  EXPECT_EQ(soname_of(reader("a stand-in for libcuda\n")), "");
  EXPECT_EQ(soname_of(reader("")), "");
  EXPECT_EQ(soname_of_file("/no/such/libcuda.so.1"), "");
}

TEST(Soname, is_not_looked_for_beyond_the_end) {
  const std::string whole = test::elf_library("libcuda.so.1");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string part = whole.substr(0, size);
    const std::string found = soname_of(reader(part));
    EXPECT_TRUE(found.empty() || found == "libcuda.so.1") << size;
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string broken = whole;
    broken[at] = '\xff';
    soname_of(reader(broken));
  }
}

}  // namespace
}  // namespace dibs::drivers::nvidia
