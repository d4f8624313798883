#pragma once
// Files below a root, as /sys and /proc have them: small texts, folders, symbolic links.
//
// The root is a wall: a link to "/x" or "../../x" is followed inside of it, as a process would
// whose root folder it is. Nothing here fails: what cannot be read is not there.
//
// Paths are relative to the root ("class/net/eth0").

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::drivers::net {

class Tree {
 public:
  explicit Tree(std::string root) : root_(std::move(root)) {}

  /// Where the path ends when all links are followed; nothing where there is no such file.
  std::optional<std::string> resolve(std::string_view path) const;
  bool exists(std::string_view path) const { return resolve(path).has_value(); }
  /// The last part itself is a symbolic link, wherever it leads.
  bool is_link(std::string_view path) const;

  /// Without blanks and line breaks around it; of plain files of 64 KiB at most.
  std::optional<std::string> read(std::string_view path) const;
  /// A decimal number.
  std::optional<std::int64_t> read_number(std::string_view path) const;
  /// Sorted; without "." and "..".
  std::vector<std::string> list(std::string_view path) const;

 private:
  std::string host_path(std::string_view canonical) const;

  std::string root_;
};

/// "b" of "a/b".
std::string_view last_part(std::string_view path);

}  // namespace dibs::drivers::net
