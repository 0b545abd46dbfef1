#!/bin/sh
# The first steps of the job inside the virtual machine: an address for the node, the disk that the run brings along, then the
# program that the kernel's command line names.
set -eu
cd "$(dirname "$(readlink -f "$0")")/../.."
interface=$(ls -d /sys/class/net/e* | head -n 1 | xargs basename)
ip link set "$interface" up
ip addr replace 10.0.2.15/24 dev "$interface"
ip route replace default via 10.0.2.2
if [ -e /dev/vdc ]; then
  mkdir -p /run/nodelet-input
  mount -o ro /dev/vdc /run/nodelet-input
fi
# udev is still busy on a slow host, and without the port nothing is heard of the job.
port=/dev/virtio-ports/nodelet.results
tries=0
while [ ! -e "$port" ] && [ "$tries" -lt 600 ]; do
  sleep 0.2
  tries=$((tries + 1))
done
program=
for word in $(cat /proc/cmdline); do
  case $word in nodelet.program=*) program=${word#*=} ;; esac
done
echo "job: $program on $(uname -r), $(systemctl --version | head -n 1), $(containerd --version)"
exec sh scripts/node24 "$program"
