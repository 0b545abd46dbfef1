#!/bin/bash
crictl -r "$CONTAINERD" version

crictl -r "$DOCKERSHIM" version

docker version --format '{{.Server.Version}}'

ctr --namespace k8s.io images export image.tar docker.io/library/busybox:stable registry.k8s.io/pause:3.9

docker load --input image.tar

crictl -r "$CONTAINERD" images

crictl -r "$DOCKERSHIM" images

cat containerd-pod.yaml container.yaml

run() {
  nodelet tap --listen "unix://$PWD/$1.sock" --to "$2" --record "$1.crirec" > "$1.tap.log" 2>&1 &
  until test -S "$1.sock"; do sleep 0.1; done
  cri() { crictl --timeout 60s -r "unix://$PWD/$name.sock" "$@"; }
  name=$1
  cri runp "$1-pod.yaml" > "$1.pod"
  cri create "$(cat "$1.pod")" container.yaml "$1-pod.yaml" > "$1.id"
  cri start "$(cat "$1.id")"
  cri inspectp "$(cat "$1.pod")" > "$1-pod.json"
  cri inspect "$(cat "$1.id")" > "$1.json"
}

run containerd "$CONTAINERD"

run docker "$DOCKERSHIM"

crictl -r "$CONTAINERD" ps

crictl -r "$DOCKERSHIM" ps

docker ps --format 'table {{.ID}}\t{{.Names}}\t{{.Command}}'

ctr --namespace k8s.io containers list

ctr --namespace moby containers list

pid() { crictl -r "$1" inspect -o go-template --template '{{.info.pid}}' "$(cat "$2.id")"; }

grep -E ':memory:|^0::' "/proc/$(pid "$CONTAINERD" containerd)/cgroup" "/proc/$(pid "$DOCKERSHIM" docker)/cgroup"

diff <(crictl -r "$CONTAINERD" exec "$(cat containerd.id)" env | sort) <(crictl -r "$DOCKERSHIM" exec "$(cat docker.id)" env | sort) || true

diff <(crictl -r "$CONTAINERD" exec "$(cat containerd.id)" mount | cut -d ' ' -f 3 | sort) <(crictl -r "$DOCKERSHIM" exec "$(cat docker.id)" mount | cut -d ' ' -f 3 | sort) || true

until grep -qs container containerd-logs/main.log && grep -qs container docker-logs/main.log; do sleep 0.1; done

cat containerd-logs/main.log docker-logs/main.log

docker inspect --format '{{.LogPath}}' "$(cat docker.id)"

cp "$(docker inspect --format '{{.LogPath}}' "$(cat docker.id)")" docker-own.log

cat docker-own.log

nsenter --target "$(pid "$CONTAINERD" containerd)" --net ip -brief address show eth0

nsenter --target "$(pid "$DOCKERSHIM" docker)" --net ip -brief address show eth0

docker inspect --format '{{.HostConfig.NetworkMode}}' "$(cat docker.pod)" "$(cat docker.id)"

docker network ls

# Exit code 1: they differ.
nodelet tap diff containerd.crirec docker.crirec > difference.txt || true

cat difference.txt
