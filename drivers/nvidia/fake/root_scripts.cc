#include <algorithm>

#include "base/strings.h"
#include "drivers/nvidia/fake/placing.h"
#include "drivers/nvidia/fake/root.h"

// Stand-ins are shell scripts, since they run in containers whose libraries nobody knows.

namespace dibs::drivers::nvidia::fake {
namespace {

/// `device NODE... -- LINE`: the line is shown where all nodes are there, as the real tool sees
/// what its container has.
void add_line(std::string& script, const std::vector<std::string>& nodes, std::string_view line) {
  script += "device";
  for (const std::string& node : nodes) append(script, " ", node);
  append(script, " -- '", line, "'\n");
}

void add_gpu(std::string& script, const Machine& machine, std::size_t index,
             const GpuState& state) {
  const Gpu& gpu = machine.gpus[index];
  const Model& model = machine.model_of(index);
  const std::string node = cat("nvidia", gpu.minor);
  add_line(script, {node}, cat(": ", model.name, " (UUID: ", gpu.uuid, ")"));
  std::vector<const GpuInstance*> instances;
  for (const GpuInstance& instance : state.instances) instances.push_back(&instance);
  std::sort(instances.begin(), instances.end(),
            [](const GpuInstance* a, const GpuInstance* b) { return a->id < b->id; });
  for (const GpuInstance* instance : instances) {
    const Profile* profile = profile_by_id(model, instance->profile);
    if (profile == nullptr) continue;
    for (const ComputeInstance& compute : instance->compute) {
      std::string name = instance_name(*profile, compute);
      name.resize(std::max<std::size_t>(name.size(), 11), ' ');
      add_line(script,
               {node, cat("nvidia-caps/nvidia-cap", gpu_instance_cap(gpu.minor, instance->id)),
                cat("nvidia-caps/nvidia-cap",
                    compute_instance_cap(gpu.minor, instance->id, compute.id))},
               cat("  MIG ", name, " Device  |: (UUID: ", mig_uuid(gpu, *instance, compute), ")"));
    }
  }
}

constexpr std::string_view kBegin = R"sh(#!/bin/sh
# nvidia-smi of a fake machine: -L, and the time slices of compute-policy. Written anew with every
# MIG instance that is made or destroyed.
root=${0%/usr/bin/nvidia-smi}
[ "$root" != "$0" ] || root=
dev=$root/dev
gpu=0
mig=0
device() {
  there=1
  while [ "$1" != -- ]; do
    [ -e "$dev/$1" ] || there=
    shift
  done
  [ -n "$there" ] || return 0
  case $2 in
    :*) echo "GPU $gpu$2"; gpu=$((gpu + 1)); mig=0 ;;
    *) echo "${2%%|*}$mig${2#*|}"; mig=$((mig + 1)) ;;
  esac
}
list() {
)sh";

constexpr std::string_view kEnd = R"sh(}
# uuids WHICH: of the GPUs that are meant: by index, by uuid, or all.
uuids() {
  list | sed -n 's/^GPU \([0-9]*\): .*(UUID: \(.*\))$/\1 \2/p' | while read -r index uuid; do
    case $1 in ""|"$index"|"$uuid") echo "$uuid" ;; esac
  done
}
policy() {
  which=
  slice=
  while [ $# -gt 0 ]; do
    case $1 in
      -i|--id) which=$2; shift ;;
      -i=*|--id=*) which=${1#*=} ;;
      --set-timeslice) slice=$2; shift ;;
      --set-timeslice=*) slice=${1#*=} ;;
      -l|--list) ;;
      *) echo "compute-policy: unknown option $1" >&2; return 2 ;;
    esac
    shift
  done
  found=$(uuids "$which")
  [ -n "$found" ] || { echo "No devices were found"; return 6; }
  case $slice in
    ""|[0-3]) ;;
    *) echo "time slices are 0 (default), 1 (short), 2 (medium) and 3 (long)" >&2; return 2 ;;
  esac
  for uuid in $found; do
    kept=$root/run/fake-nvml/timeslice-$uuid
    if [ -z "$slice" ]; then
      echo "$uuid: time slice $(cat "$kept" 2>/dev/null || echo 0)"
    else
      echo "$slice" >"$kept" || return 4
      echo "Successfully set time-slice policy to $slice for GPU $uuid"
    fi
  done
}
case $1 in
  ""|-L|--list-gpus)
    found=$(list)
    [ -n "$found" ] || { echo "No devices found."; exit 6; }
    echo "$found" ;;
  compute-policy) shift; policy "$@" ;;
  *) echo "nvidia-smi of a fake machine knows -L and compute-policy, not $1" >&2; exit 2 ;;
esac
)sh";

}  // namespace

std::string nvidia_smi_script(const Machine& machine, const State& state) {
  std::string script(kBegin);
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) add_gpu(script, machine, i, state.gpus[i]);
  if (machine.gpus.empty()) script += ":\n";
  return script.append(kEnd);
}

std::string mps_control_script() {
  return R"sh(#!/bin/sh
# nvidia-cuda-mps-control of a fake machine. As the real one: -d starts a daemon, -f one that stays
# in front, and without either commands come from the input. It serves nobody.
pipe=${CUDA_MPS_PIPE_DIRECTORY:-/tmp/nvidia-mps}
log=${CUDA_MPS_LOG_DIRECTORY:-/var/log/nvidia-mps}
# The real one's pipes are sockets, whose paths have room for 107 characters.
longest=$pipe/control_privileged
if [ ${#longest} -gt 107 ]; then
  echo "$longest: too long for the path of a socket" >&2
  exit 1
fi
serve() {
  echo $$ >"$pipe/nvidia-cuda-mps-control.pid"
  : >"$pipe/control"
  echo "Starting control daemon, devices ${CUDA_VISIBLE_DEVICES:-all}" >>"$log/control.log"
  trap 'rm -f "$pipe/control" "$pipe/nvidia-cuda-mps-control.pid"; exit 0' TERM INT
  while [ -e "$pipe/control" ]; do sleep 0.2; done
}
case $1 in
  -d|-f)
    mkdir -p "$pipe" "$log" || exit 1
    if [ -e "$pipe/control" ]; then
      echo "An instance of this daemon is already running" >&2
      exit 1
    fi
    if [ "$1" = -f ]; then serve; exit; fi
    "$0" -f </dev/null >/dev/null 2>&1 &
    while [ ! -e "$pipe/control" ]; do sleep 0.05; done ;;
  "")
    if [ ! -e "$pipe/control" ]; then
      echo "Cannot find MPS control daemon process" >&2
      exit 1
    fi
    while read -r command; do
      echo "$command" >>"$log/control.log"
      case $command in
        get_default_active_thread_percentage)
          set=$(sed -n 's/^set_default_active_thread_percentage //p' "$log/control.log" | tail -n 1)
          echo "${set:-100.0}" ;;
        quit*) rm -f "$pipe/control" ;;
      esac
    done ;;
  *) echo "nvidia-cuda-mps-control of a fake machine knows -d, -f and commands" >&2; exit 2 ;;
esac
)sh";
}

}  // namespace dibs::drivers::nvidia::fake
