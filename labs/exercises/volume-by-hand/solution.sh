#!/bin/bash
nodelet csi-driver --endpoint "$CSI_ENDPOINT" --state-dir "$PWD/state" --node-id "$NODE" > driver.log 2>&1 &

until test -S csi.sock; do sleep 0.1; done

csi GetPluginInfo

csi NodeGetCapabilities

capability='{"mount": {"fs_type": "ext4"}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}'

csi CreateVolume "{\"name\": \"by-hand\", \"capacity_range\": {\"required_bytes\": 33554432}, \"volume_capabilities\": [$capability]}" | tee volume.json

volume=$(sed -n 's/.*"volume_id": "\(.*\)".*/\1/p' volume.json)

ls -ls state/volumes

mkdir staging pods

csi NodeStageVolume "{\"volume_id\": \"$volume\", \"staging_target_path\": \"$PWD/staging\", \"volume_capability\": $capability, \"volume_context\": {\"allocation\": \"sparse\"}}"

grep "$PWD/staging" /proc/self/mountinfo

csi NodePublishVolume "{\"volume_id\": \"$volume\", \"staging_target_path\": \"$PWD/staging\", \"target_path\": \"$PWD/pods/volume\", \"volume_capability\": $capability, \"volume_context\": {\"allocation\": \"sparse\"}}"

echo "written through the pod’s path" > pods/volume/greeting

cat staging/greeting
