#include "api/schema/schema_lines.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>

#include "base/strings.h"

namespace dibs::api {
namespace {

using Words = std::vector<std::string_view>;

Words words_of(std::string_view line) {
  Words words;
  for (std::string_view word : split(line, ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

struct File {
  std::string_view package;
  std::string_view like;  // a package, or ""
  std::vector<SchemaBlock> blocks;
};

Result<File> read_file(const SchemaText& text) {
  File file;
  std::size_t number = 0;
  for (std::string_view line : split(text.text, '\n')) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    SchemaLine read{text.file, number, words_of(line)};
    if (line[0] == ' ') {
      if (file.blocks.empty()) return fault_at(read, "a line of nothing");
      file.blocks.back().lines.push_back(std::move(read));
      continue;
    }
    if (read.words[0] == "package" && read.words.size() > 1) file.package = read.words[1];
    if (read.words[0] == "like" && read.words.size() > 1) {
      file.like = read.words[1];
      continue;
    }
    file.blocks.push_back({std::move(read), {}});
  }
  return file;
}

/// Completes a file by those that it is like.
class Completion {
 public:
  explicit Completion(const std::vector<File>& files) {
    for (const File& file : files) by_package_[file.package] = &file;
  }

  Result<std::vector<SchemaBlock>> complete(const File& file) {
    std::vector<SchemaBlock> out;
    for (const SchemaBlock& block : file.blocks) {
      const Words& head = block.head.words;
      if (is_change(head)) {
        DIBS_TRY(SchemaBlock resource, whole(file, "resource", head[1]));
        out.push_back(std::move(resource));
      } else if (head[0] == "amend") {
        continue;  // taken in where it is named
      } else {
        out.push_back(block);
      }
    }
    if (file.like.empty()) return out;
    // Types that are named and not written here come from there.
    std::set<std::string, std::less<>> known;
    for (const SchemaBlock& block : out) {
      if (block.head.words[0] == "type") known.emplace(block.head.words[1]);
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      for (const std::string& name : named_by(out[i])) {
        if (!known.insert(name).second) continue;
        DIBS_TRY(SchemaBlock type, whole(file, "type", name));
        out.push_back(std::move(type));
      }
    }
    return out;
  }

 private:
  /// A type or resource of a file with what it says of the one that it is like.
  Result<SchemaBlock> whole(const File& file, std::string_view what, std::string_view name) {
    const SchemaBlock* changes = nullptr;
    for (const SchemaBlock& block : file.blocks) {
      const Words& words = block.head.words;
      if (words.size() < 2 || words[1] != name) continue;
      if (words[0] == what && !is_change(words)) return block;
      if (words[0] == what || (what == "type" && words[0] == "amend")) changes = &block;
    }
    auto base = by_package_.find(file.like);
    if (base == by_package_.end()) {
      return Error::internal(cat(file.package, ": ", what, " ", name, " is not defined"));
    }
    DIBS_TRY(SchemaBlock out, whole(*base->second, what, name));
    if (changes && what == "type") amend(out, *changes);
    if (changes && what == "resource") change_resource(out, *changes);
    return out;
  }

  /// A resource without its kind is that of the package it is like.
  static bool is_change(const Words& head) { return head[0] == "resource" && head.size() == 2; }

  /// Lines in place of those that begin with the same word.
  static void change_resource(SchemaBlock& resource, const SchemaBlock& changes) {
    for (const SchemaLine& line : changes.lines) {
      std::erase_if(resource.lines,
                    [&](const SchemaLine& old) { return old.words[0] == line.words[0]; });
    }
    resource.lines.insert(resource.lines.end(), changes.lines.begin(), changes.lines.end());
  }

  /// A field in place of the one with its name, or after all; "-" and names: without these.
  static void amend(SchemaBlock& type, const SchemaBlock& changes) {
    for (const SchemaLine& line : changes.lines) {
      auto is_meant = [&](const SchemaLine& old) {
        if (line.words[0] != "-") return old.words[0] == line.words[0];
        return std::find(line.words.begin() + 1, line.words.end(), old.words[0]) !=
               line.words.end();
      };
      auto at = std::find_if(type.lines.begin(), type.lines.end(), is_meant);
      const auto place = at - type.lines.begin();
      std::erase_if(type.lines, is_meant);
      if (line.words[0] != "-") type.lines.insert(type.lines.begin() + place, line);
    }
  }

  /// The types of its own package that a block needs.
  static std::vector<std::string> named_by(const SchemaBlock& block) {
    std::vector<std::string> names;
    const Words& head = block.head.words;
    if (head[0] == "resource" && head.size() > 2) {
      names.emplace_back(head[2]);
      names.push_back(cat(head[2], "List"));
    } else if (head[0] == "type") {
      for (const SchemaLine& line : block.lines) {
        if (line.words.size() < 2) continue;
        std::string_view type = line.words[1];
        type.remove_prefix(std::min(type.find_first_not_of("*[]{}"), type.size()));
        if (!type.empty() && type[0] >= 'A' && type[0] <= 'Z') names.emplace_back(type);
      }
    }
    return names;
  }

  std::map<std::string_view, const File*> by_package_;
};

}  // namespace

Result<std::vector<SchemaBlock>> read_blocks(const std::vector<SchemaText>& texts) {
  std::vector<File> files;
  for (const SchemaText& text : texts) {
    DIBS_TRY(File file, read_file(text));
    files.push_back(std::move(file));
  }
  std::vector<SchemaBlock> out;
  Completion completion(files);
  for (const File& file : files) {
    DIBS_TRY(std::vector<SchemaBlock> blocks, completion.complete(file));
    std::move(blocks.begin(), blocks.end(), std::back_inserter(out));
  }
  return out;
}

Error fault_at(const SchemaLine& line, std::string_view what) {
  return Error::internal(cat(line.file, ":", line.number, ": ", what));
}

int number_of(std::string_view text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::vector<std::string> comma_list(std::string_view text) {
  if (text.empty()) return {};
  auto pieces = split(text, ',');
  return {pieces.begin(), pieces.end()};
}

}  // namespace dibs::api
