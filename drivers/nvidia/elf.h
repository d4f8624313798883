#pragma once
// The name that the loader knows a library by, DT_SONAME: "libcuda.so.1" of libcuda.so.580.95.05.
// Programs ask for that one, whatever links the machine has.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace dibs::drivers::nvidia {

/// Up to `size` bytes from `offset` on; fewer at the end.
using ReadAt = std::function<std::string(std::uint64_t offset, std::size_t size)>;

/// "" for what is no library of 64 bits in this machine's byte order, or has no such name. Reads a
/// few pages only, as libraries of the driver have hundreds of megabytes.
std::string soname_of(const ReadAt& read);
/// Of a file; "" too where it cannot be read.
std::string soname_of_file(const std::string& path);

}  // namespace dibs::drivers::nvidia
