#pragma once
// The files of crds/, as they were when the program was built.
//
// A file is a CustomResourceDefinition, or, called *.part.yaml, pieces of one that several have in
// common. Beyond YAML there are two words, which crds() takes out: `{include: PIECE}` stands for
// that piece of some part file, whose entries join those beside it; `since: 31` at a rule says the
// first release (1.31) whose CEL has what the rule uses.

#include <string_view>
#include <vector>

namespace dibs::drivers::net {

struct Text {
  std::string_view name;  // "spiderippools.yaml"
  std::string_view text;
};

const std::vector<Text>& texts();

}  // namespace dibs::drivers::net
