#!/bin/bash
kubectl wait --for=condition=Ready pod/reader --timeout=120s

volume=$(echo "$KUBELET_DIR/pods/$(kubectl get pod reader -o jsonpath='{.metadata.uid}')/volumes/kubernetes.io~configmap/settings")

ls -la "$volume"

sed -i 's/colour: blue/colour: green/; s/shape: round/shape: square/' world.yaml

kubectl apply -f world.yaml

until grep -q green "$volume/colour"; do sleep 0.1; done

ls -la "$volume"

kubectl exec reader -- sh -c 'echo "volume: $(cat /live/colour); subPath: $(cat /fixed/colour); variable: $COLOUR"'
