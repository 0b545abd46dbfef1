#!/bin/bash
kubectl get pods

kubectl describe pod web

# The exit code of explain says that something is wrong.
nodelet explain service "$NAMESPACE/shop" --root "$LAB" || true

kubectl get pod web -o jsonpath='{.spec.containers[0].readinessProbe.httpGet}{"\n"}'

sed -i 's|path: /healthz|path: /|' world.yaml

kubectl delete pod web

kubectl apply -f world.yaml

kubectl wait --for=condition=Ready pod/web --timeout=120s
