#!/bin/sh
# machine.sh NAME COMMAND...: runs the command in the network namespace of that name ("ip netns"; "": the one it is started in), with a
# /sys that shows its interfaces. ("ip netns exec" would take the control groups away.)
[ "$MACHINE_INSIDE" ] || { [ "$1" ] && exec env MACHINE_INSIDE=1 nsenter --net="/run/netns/$1" unshare --mount "$0" "$@" ||
  exec env MACHINE_INSIDE=1 unshare --mount "$0" "$@"; }
set -e
groups=$(mktemp -d)
mount --rbind /sys/fs/cgroup "$groups"
mount -t sysfs sysfs /sys
mount --rbind "$groups" /sys/fs/cgroup
umount -l "$groups"
rmdir "$groups"
unset MACHINE_INSIDE
shift
exec "$@"
