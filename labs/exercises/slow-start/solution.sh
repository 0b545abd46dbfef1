#!/bin/bash
kubectl get pods

kubectl describe pod slow

cat >> world.yaml <<'YAML'
      startupProbe:
        exec: {command: [test, -f, /tmp/works]}
        periodSeconds: 1
        timeoutSeconds: 30
        failureThreshold: 60
YAML

kubectl delete pod slow

kubectl apply -f world.yaml

kubectl wait --for=condition=Ready pod/slow --timeout=120s
