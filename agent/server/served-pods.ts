// The pods as the kubelet API shows them: /pods is what should run with its status, /runningpods what the runtime runs.
// Pure.

import { uidOf } from '../model/pod-uid.ts';
import type { PodSnapshot } from '../ports/runtime.ts';
import type { ServedPods } from './options.ts';

/** A PodList of the desired pods. */
export function podList(pods: ServedPods): unknown {
  const items = pods.listPods().map((pod) => {
    const status = pods.statusOf(uidOf(pod));
    return status === undefined ? pod : { ...pod, status };
  });
  return { kind: 'PodList', apiVersion: 'v1', metadata: {}, items };
}

/** A PodList of running pods, with the runtime's fields only. */
export function runningPodList(snapshots: readonly PodSnapshot[]): unknown {
  const items = snapshots.flatMap(({ pod, containers }) => {
    const running = containers.filter(({ state }) => state === 'running');
    if (running.length === 0) return [];
    const { name, namespace, uid } = pod;
    return [
      {
        metadata: { name, namespace, uid, creationTimestamp: null },
        spec: { containers: running.map(({ name, image }) => ({ name, image, resources: {} })) },
        status: {},
      },
    ];
  });
  return { kind: 'PodList', apiVersion: 'v1', metadata: {}, items };
}
