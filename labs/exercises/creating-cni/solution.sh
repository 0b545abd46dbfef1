#!/bin/bash
kubectl get pods

kubectl describe pod web

# The exit code of explain says that something is wrong.
nodelet explain pod "$NAMESPACE/web" --root "$LAB" || true

cat "$CNI_CONF_DIR/10-nodelet.conflist"

ls "$CNI_PATH"

sed -i 's|"subnet": "\([0-9.]*\)"|"subnet": "\1/24"|' "$CNI_CONF_DIR/10-nodelet.conflist"

kubectl wait --for=condition=Ready pod/web --timeout=120s
