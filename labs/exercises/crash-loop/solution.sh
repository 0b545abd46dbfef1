#!/bin/bash
kubectl get pods

kubectl get pod greeter -o jsonpath='{.status.containerStatuses[0].lastState}{"\n"}'

# Before the first restart there is no previous container.
kubectl logs greeter --previous || kubectl logs greeter

sed -i 's/^      command:/      env: [{name: GREETING, value: good morning}]\n      command:/' world.yaml

kubectl delete pod greeter

kubectl apply -f world.yaml

kubectl wait --for=condition=Ready pod/greeter --timeout=120s
