#!/bin/bash
kubectl get nodes

kubectl -n kube-node-lease get lease "$NODE" -o jsonpath='{.spec.renewTime}{"\n"}'

ps -o pid,stat,etime,args -p "$(pgrep -f "agent .*--root-dir $KUBELET_DIR")"

kill -CONT "$(pgrep -f "agent .*--root-dir $KUBELET_DIR")"

kubectl wait --for=condition=Ready "node/$NODE" --timeout=120s
