#!/bin/sh
# The first step of the job inside the virtual machine: an address for the node, then the checks.
set -eu
cd "$(dirname "$(readlink -f "$0")")/../../.."
interface=$(ls -d /sys/class/net/e* | head -n 1 | xargs basename)
ip link set "$interface" up
ip addr replace 10.0.2.15/24 dev "$interface"
ip route replace default via 10.0.2.2
echo "job: $(uname -r), $(systemctl --version | head -n 1), $(containerd --version)"
exec sh scripts/node24 test/vm/guest/main.ts
