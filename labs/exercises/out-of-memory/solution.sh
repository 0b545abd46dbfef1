#!/bin/bash
kubectl get pods

kubectl get pod hungry -o jsonpath='{.status.containerStatuses[0]}{"\n"}'

# The exit code of explain says that something is wrong.
nodelet explain pod "$NAMESPACE/hungry" --root "$LAB" || true

sed -i 's/limits: {memory: 16Mi}/limits: {memory: 64Mi}/' world.yaml

kubectl delete pod hungry

kubectl apply -f world.yaml

kubectl wait --for=condition=Ready pod/hungry --timeout=120s
