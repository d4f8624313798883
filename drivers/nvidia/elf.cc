#include "drivers/nvidia/elf.h"

#include <elf.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

namespace dibs::drivers::nvidia {
namespace {

constexpr std::size_t kMaxHeaders = 256;
constexpr std::size_t kMaxEntries = 1024;
constexpr std::size_t kMaxName = 256;
constexpr unsigned char kByteOrder =
    std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;

template <typename T>
std::vector<T> read_table(const ReadAt& read, std::uint64_t offset, std::size_t count) {
  const std::string bytes = read(offset, count * sizeof(T));
  std::vector<T> out(std::min(count, bytes.size() / sizeof(T)));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
  return out;
}

/// Where in the file the byte lies that has this address when it is loaded.
std::optional<std::uint64_t> offset_of(const std::vector<Elf64_Phdr>& headers,
                                       std::uint64_t address) {
  for (const auto& header : headers) {
    if (header.p_type != PT_LOAD || address < header.p_vaddr) continue;
    if (address - header.p_vaddr < header.p_filesz) {
      return header.p_offset + (address - header.p_vaddr);
    }
  }
  return {};
}

}  // namespace

std::string soname_of(const ReadAt& read) {
  const auto heads = read_table<Elf64_Ehdr>(read, 0, 1);
  if (heads.empty()) return {};
  const Elf64_Ehdr& head = heads.front();
  const bool known = std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
                     head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_ident[EI_DATA] == kByteOrder &&
                     head.e_phentsize == sizeof(Elf64_Phdr);
  if (!known) return {};
  const auto headers =
      read_table<Elf64_Phdr>(read, head.e_phoff, std::min<std::size_t>(head.e_phnum, kMaxHeaders));
  const auto dynamic = std::find_if(headers.begin(), headers.end(), [](const Elf64_Phdr& header) {
    return header.p_type == PT_DYNAMIC;
  });
  if (dynamic == headers.end()) return {};
  const std::size_t count =
      std::min<std::uint64_t>(dynamic->p_filesz / sizeof(Elf64_Dyn), kMaxEntries);
  std::optional<std::uint64_t> texts;
  std::optional<std::uint64_t> name;
  for (const auto& entry : read_table<Elf64_Dyn>(read, dynamic->p_offset, count)) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_STRTAB) texts = offset_of(headers, entry.d_un.d_ptr);
    if (entry.d_tag == DT_SONAME) name = entry.d_un.d_val;
  }
  if (!texts || !name) return {};
  const std::string text = read(*texts + *name, kMaxName);
  const std::size_t end = text.find('\0');
  return end == std::string::npos ? std::string() : text.substr(0, end);
}

std::string soname_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return soname_of([&](std::uint64_t offset, std::size_t size) {
    std::string bytes(size, '\0');
    file.clear();
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(bytes.data(), static_cast<std::streamsize>(size));
    bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
    return bytes;
  });
}

}  // namespace dibs::drivers::nvidia
