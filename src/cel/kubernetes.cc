#include "cel/kubernetes.h"

#include <algorithm>

#include "cel/libraries/authorizer.h"
#include "cel/libraries/extensions.h"
#include "cel/libraries/formats.h"
#include "cel/libraries/standard_library.h"

namespace dibs::cel {

Environment kubernetes_environment(int minor, int release) {
  // What changed in the implementation of the language, whatever is turned on.
  const bool revised = std::max(minor, release) >= 37;
  Environment made = Environment::standard(
      {.mixed_order = minor >= 28, .matches_counts = revised, .affix_counts = revised});
  if (!revised) add_duration_of_int(made);
  made.options.homogeneous_literals = true;
  made.options.as_in_go = true;
  made.options.or_of_anything = !revised;
  made.options.parser.optional_syntax = false;
  made.options.parser.exists_one_alias = false;
  made.options.check_literals = minor >= 29;
  add_url(made);
  add_regex(made);
  add_kubernetes_lists(made);
  add_strings(made, minor >= 29 ? 2 : 0, revised);
  if (minor >= 27) add_authorizer(made);
  if (minor >= 28) {
    // The functions over lists came with the implementation that 1.33 uses.
    add_optionals(made, minor >= 33 ? 2 : 1);
    add_quantity(made);
  }
  if (minor >= 29) add_sets(made);
  if (minor >= 30) add_network(made);
  if (minor >= 31) {
    add_formats(made);
    add_authorizer_selectors(made);
  }
  if (minor >= 32) add_two_variable_macros(made);
  if (minor >= 33) add_semver(made);
  if (minor >= 34) add_lists(made, revised);
  if (minor >= 37) add_includes(made);
  return made;
}

}  // namespace dibs::cel
