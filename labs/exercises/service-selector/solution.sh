#!/bin/bash
kubectl wait --for=condition=Ready pod/web --timeout=120s

kubectl get pods -o wide

kubectl exec web -- wget -qO- http://127.0.0.1:8080/

kubectl get service shop -o wide

kubectl get pods --show-labels

# The exit code of explain says that something is wrong.
nodelet explain service "$NAMESPACE/shop" --root "$LAB" || true

sed -i 's/^    app: web/    app: shop/' world.yaml

kubectl apply -f world.yaml
