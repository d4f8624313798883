#include "cel/kubernetes.h"

#include "cel/extensions.h"

namespace dibs::cel {

Environment kubernetes_environment() {
  Environment made = Environment::standard();
  made.options.homogeneous_literals = true;
  made.options.check_literals = true;
  add_optionals(made);
  add_strings_2(made);
  add_lists(made);
  add_sets(made);
  add_two_variable_macros(made);
  add_kubernetes_lists(made);
  add_regex(made);
  add_url(made);
  add_network(made);
  add_quantity(made);
  add_semver(made);
  return made;
}

}  // namespace dibs::cel
