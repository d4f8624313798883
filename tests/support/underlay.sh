#!/bin/sh
# underlay.sh COMMAND...: runs the command on a machine of its own, as far as its network goes: an interface eth0 (172.18.0.11/16)
# on a switch with a gateway (172.18.0.1), and nothing else. Nothing that is sent there leaves it. Wants root.
[ "$UNDERLAY_INSIDE" ] || exec env UNDERLAY_INSIDE=1 unshare --net --mount "$0" "$@"
set -e
mkdir -p /run/netns
mount -t tmpfs tmpfs /run/netns
ip netns add switch
ip link set lo up
ip link add eth0 type veth peer name port0 netns switch
ip address add 172.18.0.11/16 dev eth0
ip link set eth0 up
ip -n switch link add bridge0 type bridge
ip -n switch link set port0 master bridge0 up
ip -n switch address add 172.18.0.1/16 dev bridge0
ip -n switch link set bridge0 up
unset UNDERLAY_INSIDE
exec "$(dirname "$0")/machine.sh" "" "$@"
