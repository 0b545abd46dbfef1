#!/bin/bash
kubectl describe pod fast

kubectl get pod fast -o jsonpath='{.spec.nodeSelector}{"\n"}'

kubectl get nodes --show-labels

kubectl label node "$NODE" disk=ssd

kubectl wait --for=condition=Ready pod/fast --timeout=120s
