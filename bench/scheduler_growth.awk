# Lines of `dibs bench scheduler-perf` in, a table out: what a pod costs by the number of nodes.
BEGIN { printf "%-10s %12s %14s %16s %16s\n", "nodes", "pods/s", "ms to bound", "us of attempt", "us of processor" }
/^Growth\// {
  nodes = $1; gsub(/[^0-9]/, "", nodes)
  for (i = 1; i < NF; ++i) {
    if ($(i + 1) ~ /^pods\/s/) rate = $i
    if ($i == "bound") bound = $(i + 2)
    if ($i == "attempt") attempt = $(i + 2)
    if ($(i + 1) == "us" && $(i + 2) == "of") processor = $i
  }
  printf "%-10s %12s %14s %16s %16s\n", nodes, rate, bound, attempt, processor
  next
}
{ print }
