#!/bin/bash
kubectl get nodes

kubectl describe node "$NODE"

# The exit code of explain says that something is wrong.
nodelet explain node "$NODE" --root "$LAB" || true

ls -l "$CNI_CONF_DIR"

mv "$CNI_CONF_DIR/10-nodelet.conflist.disabled" "$CNI_CONF_DIR/10-nodelet.conflist"

kubectl wait --for=condition=Ready "node/$NODE" --timeout=120s

kubectl wait --for=condition=Ready pod/web --timeout=120s
