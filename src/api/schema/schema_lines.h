#pragma once
// The lines of schema texts, before they mean anything: heads with what belongs to them. Versions
// that are `like` another one are completed here, so that the reader sees every version whole. Of
// this library alone.

#include <cstddef>
#include <string_view>
#include <vector>

#include "api/schema/schema_text.h"
#include "base/result.h"

namespace dibs::api {

struct SchemaLine {
  std::string_view file;
  std::size_t number = 0;
  std::vector<std::string_view> words;
};

/// A line at the margin and the indented ones that follow.
struct SchemaBlock {
  SchemaLine head;
  std::vector<SchemaLine> lines;
};

/// All blocks, file by file. Errors: internal, naming file and line.
Result<std::vector<SchemaBlock>> read_blocks(const std::vector<SchemaText>& texts);

Error fault_at(const SchemaLine& line, std::string_view what);

int number_of(std::string_view text);
/// "a,b"; none for "".
std::vector<std::string> comma_list(std::string_view text);

}  // namespace dibs::api
