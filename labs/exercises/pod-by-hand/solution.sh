#!/bin/bash
nodelet tap --listen "unix://$PWD/tap.sock" --to "$CONTAINER_RUNTIME_ENDPOINT" --record hand.crirec > tap.log 2>&1 &

until test -S tap.sock; do sleep 0.1; done

crictl() { command crictl --timeout 60s -r "unix://$PWD/tap.sock" "$@"; }

cat hand-pod.yaml hand-container.yaml

pod=$(crictl runp hand-pod.yaml)

container=$(crictl create "$pod" hand-container.yaml hand-pod.yaml)

crictl start "$container"

crictl ps --pod "$pod"

crictl exec "$container" ip addr

crictl exec "$container" cat /etc/hosts

crictl exec "$container" env

kill %1 && wait %1

nodelet tap --listen "unix://$PWD/tap.sock" --to "$CONTAINER_RUNTIME_ENDPOINT" --record kubelet.crirec > tap.log 2>&1 &

until test -S tap.sock; do sleep 0.1; done

sed -i "s|^containerRuntimeEndpoint: .*|containerRuntimeEndpoint: unix://$PWD/tap.sock|" "$KUBELET_CONFIG"

restart-agent

kubectl apply -f web.yaml

kubectl wait --for=condition=Ready pod/web --timeout=120s

nodelet tap show kubelet.crirec --pod exercise-pod-by-hand/web

# Exit code 1: they differ.
nodelet tap diff hand.crirec kubelet.crirec > difference.txt || true

grep -m 1 -A 40 RunPodSandbox difference.txt
