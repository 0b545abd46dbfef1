#!/bin/bash
kubectl get pods

kubectl describe pod client

kubectl get secret database -o jsonpath='{.data}{"\n"}'

sed -i 's/^  user: shop/  user: shop\n  password: open-sesame/' world.yaml

kubectl apply -f world.yaml

kubectl wait --for=condition=Ready pod/client --timeout=120s
