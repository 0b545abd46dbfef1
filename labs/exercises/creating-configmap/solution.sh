#!/bin/bash
kubectl get pods

kubectl describe pod shop

# The exit code of explain says that something is wrong.
nodelet explain pod "$NAMESPACE/shop" --root "$LAB" || true

kubectl get configmaps

cat > settings.yaml <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: shop-settings}
data: {colour: blue}
YAML

kubectl apply -f settings.yaml

kubectl wait --for=condition=Ready pod/shop --timeout=120s
