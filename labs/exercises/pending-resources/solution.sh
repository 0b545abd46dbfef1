#!/bin/bash
kubectl get pods -o wide

kubectl describe pod greedy

kubectl get pod greedy -o jsonpath='{.spec.containers[0].resources.requests}{"\n"}'

kubectl get node "$NODE" -o jsonpath='{.status.allocatable}{"\n"}'

# The exit code of explain says that something is wrong.
nodelet explain pod "$NAMESPACE/greedy" --root "$LAB" || true

sed -i 's/cpu: "1000"/cpu: 10m/' world.yaml

kubectl delete pod greedy

kubectl apply -f world.yaml

kubectl wait --for=condition=Ready pod/greedy --timeout=120s
