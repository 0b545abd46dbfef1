#!/bin/bash
kubectl wait --for=condition=Ready pod/web --timeout=120s

kubectl get service shop -o jsonpath='{.spec.ports}{"\n"}'

kubectl get pod web -o jsonpath='{.spec.containers[0].ports}{"\n"}'

kubectl exec web -- netstat -tln

# The exit code of explain says that something is wrong.
nodelet explain service "$NAMESPACE/shop" --root "$LAB" || true

sed -i 's/targetPort: 80/targetPort: http/' world.yaml

kubectl apply -f world.yaml
