#!/bin/bash
kubectl describe pod patient

kubectl get node "$NODE" -o jsonpath='{.spec.taints}{"\n"}'

kubectl taint node "$NODE" maintenance-

kubectl wait --for=condition=Ready pod/patient --timeout=120s
