#!/bin/bash
mkdir -p "$PWD/manifests"

echo "staticPodPath: $PWD/manifests" >> "$KUBELET_CONFIG"

restart-agent

cp static.yaml manifests/

until kubectl get pod "static-$NODE"; do sleep 0.2; done

kubectl wait --for=condition=Ready "pod/static-$NODE" --timeout=120s

kubectl get pod "static-$NODE" -o jsonpath='{.metadata.annotations}{"\n"}'

crictl ps --name main --label io.kubernetes.pod.namespace=exercise-static-pod -q

uid=$(kubectl get pod "static-$NODE" -o jsonpath='{.metadata.uid}')

kubectl delete pod "static-$NODE" --wait=false

until kubectl get pod "static-$NODE" -o jsonpath='{.metadata.uid}{"\n"}' | grep -v "$uid"; do sleep 0.2; done

crictl ps --name main --label io.kubernetes.pod.namespace=exercise-static-pod -q

kubectl wait --for=condition=Ready "pod/static-$NODE" --timeout=120s
