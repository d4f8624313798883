#pragma once
// The part of Go's text/template that workload files use: fields, variables, pipelines, if and
// range, and the functions that the load generator of Kubernetes adds to them.
//
// Anything else is an error that names it, when the template is read or when it is filled in.

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "json/value.h"

namespace dibs::bench {

class TextTemplate {
 public:
  static Result<TextTemplate> parse(std::string_view text);
  TextTemplate(TextTemplate&&) noexcept;
  TextTemplate& operator=(TextTemplate&&) noexcept;
  ~TextTemplate();

  /// `data` is what "." stands for.
  Result<std::string> fill(const json::Value& data) const;
  /// Whether ".NAME" occurs: a template that does not is the same for all.
  bool mentions(std::string_view field) const;

 private:
  struct Node;
  explicit TextTemplate(std::string text);
  std::string text_;
  std::unique_ptr<Node> root_;
  friend class TemplateParser;
  friend class TemplateRun;
};

}  // namespace dibs::bench
