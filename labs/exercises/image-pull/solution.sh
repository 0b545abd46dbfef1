#!/bin/bash
kubectl get pods

kubectl describe pod web

# The exit code of explain says that something is wrong.
nodelet explain pod "$NAMESPACE/web" --root "$LAB" || true

crictl images

sed -i 's/stabel/stable/' world.yaml

kubectl apply -f world.yaml

kubectl wait --for=condition=Ready pod/web --timeout=120s
