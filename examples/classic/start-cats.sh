#!/usr/bin/env bash
# The driver of the cats for a "dibs up" on this machine: its controller once, its plugin on every node. Ends with Ctrl-C.
#   start-cats.sh DATA_FOLDER [FLAG of both halves...]
# DATA_FOLDER is that of "dibs up --data-dir", KUBECONFIG its kubeconfig, CATS_PROGRAM the program (examples/cats).
set -e
data=$1
shift
cats=${CATS_PROGRAM:-build/release/examples/cats/cats}
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
trap 'exit 0' INT TERM
"$cats" controller "$@" &
for folder in "$data"/nodes/*; do
  "$cats" plugin --node-name "$(basename "$folder")" --cdi-root "$folder/cdi" \
    --kubelet-registrar-directory-path "$folder/plugins_registry" --kubelet-plugins-directory-path "$folder/plugins" "$@" &
done
wait
