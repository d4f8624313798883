#!/usr/bin/env bash
# A driver of release 1.30 for a "dibs up" on this machine, on every node: named resources, which the scheduler allocates. Ends with Ctrl-C.
#   start-named.sh DATA_FOLDER
# DATA_FOLDER is that of "dibs up --data-dir", KUBECONFIG its kubeconfig.
set -e
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
trap 'exit 0' INT TERM
for folder in "$1"/nodes/*; do
  dibs driver gpu --named-resources --driver-name named.example.com --num-devices 2 --node-name "$(basename "$folder")" \
    --cdi-root "$folder/cdi" --kubelet-registrar-directory-path "$folder/plugins_registry" \
    --kubelet-plugins-directory-path "$folder/plugins" &
done
wait
