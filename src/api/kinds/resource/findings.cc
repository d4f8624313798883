#include "api/kinds/resource/findings.h"

#include <algorithm>
#include <string>

namespace dibs::api {
namespace {

// A field in the one spelling that both voices share.
std::string plain_field(std::string field) {
  for (std::string_view part : {".exactly", ".basic"}) {
    auto at = field.find(part);
    if (at != std::string::npos && field[at - 1] == ']') field.erase(at, part.size());
  }
  return field;
}

}  // namespace

void tell(const Findings& found, const FieldErrors& declared, FieldErrors& out) {
  const auto& errors = found.errors.errors();
  for (std::size_t i = 0; i < errors.size(); ++i) {
    bool covered =
        std::find(found.covered.begin(), found.covered.end(), i) != found.covered.end() &&
        std::any_of(declared.errors().begin(), declared.errors().end(), [&](const FieldError& d) {
          return d.fault == errors[i].fault && plain_field(d.field) == plain_field(errors[i].field);
        });
    if (!covered) out.add(errors[i].fault, Path(errors[i].field), errors[i].text);
  }
  for (const FieldError& error : declared.errors()) {
    out.add(error.fault, Path(error.field), error.text);
  }
}

bool fits(const json::Value& list, std::size_t limit, const Path& path, Findings& found,
          bool covered) {
  if (list.size() <= limit) return true;
  std::size_t from = found.errors.size();
  found.errors.too_many(path, list.size(), limit);
  if (covered) found.cover(from);
  return false;
}

}  // namespace dibs::api
