# cel_compare.awk OURS UPSTREAM: selectors side by side, in nanoseconds of processor time per device.
# OURS is the JSON of cel_bench; UPSTREAM has lines "scalar/three/1000 4781.9" of cel-go, or is /dev/null.
FILENAME != ARGV[1] { upstream[$1] = $2; next }
/"name":/ { split($0, part, "\""); name = part[4] }
/"cpu_time":/ { ours[name] = number($2) }
/"per_device":/ { ours[name] = number($2) * 1e9 }

function number(text) { sub(/,$/, "", text); return text + 0 }

function times(ratio) { return sprintf(ratio < 0.1 ? "%.3f" : ratio < 10 ? "%.1f" : "%.0f", ratio) }

function figure(nanoseconds) { return sprintf(nanoseconds < 10 ? "%.1f ns" : "%.0f ns", nanoseconds) }

function show(name, beside, what,   text) {
  if (!(name in ours)) return ""
  text = figure(ours[name])
  if (beside in ours && ours[beside] > 0) text = text " (" times(ours[name] / ours[beside]) " x " what ")"
  return text
}

END {
  count = split("driver model_memory version in_has three", selectors, " ")
  split("1 1000 100000", sizes, " ")
  printf "%-22s %-26s %-26s %-12s %s\n", "selector/devices", "one by one", "columns", "by hand", "cel-go"
  for (i = 1; i <= count; i++) {
    for (j = 1; j <= 3; j++) {
      of = selectors[i] "/" sizes[j]
      theirs = "scalar/" of in upstream ? upstream["scalar/" of] : 0
      printf "%-22s %-26s %-26s %-12s %s\n", of, show("scalar/" of, "by_hand/" of, "by hand"),
        show("columns/" of, "by_hand/" of, "by hand"), show("by_hand/" of, "", ""),
        theirs == 0 ? "-" : figure(theirs) " (" times(theirs / ours["scalar/" of]) " x one by one)"
    }
  }
  for (i = 1; i <= count; i++) {
    of = "compile/" selectors[i]
    theirs = of in upstream ? upstream[of] : 0
    printf "%-22s %-66s %s\n", of, show(of, "", ""),
      theirs == 0 ? "-" : figure(theirs) " (" times(theirs / ours[of]) " x ours)"
  }
}
