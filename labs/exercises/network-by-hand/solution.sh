#!/bin/bash
ip netns add "$NETNS"

ip -n "$NETNS" addr

cat > network.json <<JSON
{
  "cniVersion": "1.0.0", "name": "$NETNS", "type": "bridge", "bridge": "$BRIDGE", "isGateway": true,
  "ipam": {
    "type": "host-local", "dataDir": "$PWD/leases",
    "ranges": [[{"subnet": "$SUBNET"}]], "routes": [{"dst": "0.0.0.0/0"}]
  }
}
JSON

export CNI_CONTAINERID=by-hand CNI_NETNS="/run/netns/$NETNS" CNI_IFNAME=eth0

CNI_COMMAND=ADD "$CNI_PATH/bridge" < network.json

ip -n "$NETNS" addr show eth0

ip -n "$NETNS" route

ip link show master "$BRIDGE"

ls leases/"$NETNS"

cat "$CNI_CONF_DIR"/*.conflist
