#pragma once
// For tests: a shared library that has nothing but a name.

#include <elf.h>

#include <cstring>
#include <string>

namespace dibs::drivers::nvidia::test {

template <typename T>
void put_at(std::string& bytes, std::size_t at, const T& value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

/// As a linker writes it, loaded at another address than it has in the file. Of 64 bits, little end
/// first.
inline std::string elf_library(const std::string& soname) {
  constexpr std::uint64_t kAddress = 0x10000;
  std::string bytes(512, '\0');
  Elf64_Ehdr head = {};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_phoff = 64;
  head.e_phentsize = sizeof(Elf64_Phdr);
  head.e_phnum = 2;
  put_at(bytes, 0, head);
  Elf64_Phdr load = {};
  load.p_type = PT_LOAD;
  load.p_offset = 64;
  load.p_vaddr = kAddress + 64;
  load.p_filesz = 448;
  put_at(bytes, 64, load);
  Elf64_Phdr dynamic = {};
  dynamic.p_type = PT_DYNAMIC;
  dynamic.p_offset = 192;
  dynamic.p_filesz = 3 * sizeof(Elf64_Dyn);
  put_at(bytes, 64 + sizeof load, dynamic);
  Elf64_Dyn name = {};
  name.d_tag = DT_SONAME;
  name.d_un.d_val = 1;
  put_at(bytes, 192, name);
  Elf64_Dyn texts = {};
  texts.d_tag = DT_STRTAB;
  texts.d_un.d_ptr = kAddress + 300;
  put_at(bytes, 192 + sizeof name, texts);
  std::memcpy(bytes.data() + 301, soname.data(), soname.size());
  return bytes;
}

}  // namespace dibs::drivers::nvidia::test
