#!/bin/bash
kubectl apply -f bronze.yaml

kubectl wait --for=condition=Ready pod/bronze --timeout=120s

kubectl get pod bronze -o jsonpath='{.status.qosClass}{"\n"}'

# Cgroups of other pods may go meanwhile.
find /sys/fs/cgroup -maxdepth 6 -type d -name "pod$(kubectl get pod bronze -o jsonpath='{.metadata.uid}')" 2>/dev/null || true

sed -i 's/resources: {}/resources: {limits: {cpu: 100m, memory: 32Mi}}/' gold.yaml

sed -i 's/resources: {}/resources: {requests: {memory: 16Mi}}/' silver.yaml

kubectl apply -f gold.yaml -f silver.yaml

kubectl wait --for=condition=Ready pod/gold pod/silver --timeout=120s

for pod in gold silver bronze; do kubectl exec $pod -- sh -c 'echo $HOSTNAME: $(cat /proc/1/oom_score_adj)'; done
