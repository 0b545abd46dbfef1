#!/bin/bash
kubectl apply -f chatty.yaml

kubectl wait --for=condition=Ready pod/chatty --timeout=120s

logs=$(echo "$POD_LOGS"/*_chatty_*/main)

ls -l "$logs"

until grep -hs "that was all" "$logs"/0.log*; do sleep 0.2; done

until ls "$logs" | grep -q '^0.log.'; do sleep 0.2; done

ls -l "$logs"

kubectl logs chatty --tail=1 || true

kubectl exec chatty -- sh -c 'echo > /tmp/more'

until ls "$logs" | grep -q '\.gz$' && test -n "$(find "$logs" -name 0.log -size -1000k)"; do sleep 0.2; done

ls -l "$logs"
