#!/bin/sh
# fake_nic.sh FOLDER NAME PCI ROOT VFS [ADDRESS/PREFIX]: a NIC that does not exist, with virtual functions, in FOLDER/sys and
# FOLDER/links.yaml, as `dibs driver net --sysfs-root --recorded-links` reads them. Again with another name: a second one.
set -eu
folder=$1 name=$2 pci=$3 root=$4 vfs=$5 address=${6:-}
below=devices/$root/${root#pci}:01.0
sys=$folder/sys
function_at() {  # ADDRESS DEVICE NETDEV
  mkdir -p "$sys/$below/$1/net/$3" "$sys/class/net" "$sys/bus/pci/devices" "$sys/bus/pci/drivers/mlx5_core"
  echo 0x15b3 > "$sys/$below/$1/vendor"
  echo "$2" > "$sys/$below/$1/device"
  echo 0x020000 > "$sys/$below/$1/class"
  echo 0 > "$sys/$below/$1/numa_node"
  ln -s ../../../../bus/pci/drivers/mlx5_core "$sys/$below/$1/driver"
  ln -s ../.. "$sys/$below/$1/net/$3/device"
  ln -s "../../$below/$1/net/$3" "$sys/class/net/$3"
  ln -s "../../../$below/$1" "$sys/bus/pci/devices/$1"
}
function_at "$pci" 0x1017 "$name"
echo 8 > "$sys/$below/$pci/sriov_totalvfs"
echo "$vfs" > "$sys/$below/$pci/sriov_numvfs"
echo 100000 > "$sys/$below/$pci/net/$name/speed"
i=0
while [ $i -lt "$vfs" ]; do
  vf=${pci%?}$((i + 2))
  function_at "$vf" 0x1018 "${name}v$i"
  ln -s "../$pci" "$sys/$below/$vf/physfn"
  ln -s "../$vf" "$sys/$below/$pci/virtfn$i"
  i=$((i + 1))
done
mkdir -p "$folder/dev"
addresses=
[ -z "$address" ] || addresses="{local: ${address%/*}, prefixlen: ${address#*/}, scope: global}"
echo "- {ifname: $name, flags: [UP], mtu: 1500, operstate: UP, address: '02:00:00:00:00:01', addr_info: [$addresses]}" >> "$folder/links.yaml"
