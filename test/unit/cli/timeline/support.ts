// Spans for tests of timelines, written as short rows.

import type { Evidence } from '../../../../cli/timeline/model.ts';
import type { Pod } from '../../../../client/types.ts';
import { epochMs } from '../../../../lib/clock.ts';
import type { Span } from '../../../../lib/trace.ts';

/** Epoch ms of a test's 0. */
export const T0 = 1_700_000_000_000;

export const POD = { namespace: 'demo', name: 'web', uid: 'u-1' };

/** A span of the pod demo/web; `from` and `to` in ms since T0. */
export function span(
  id: number,
  kind: Span['kind'],
  name: string,
  from: number,
  to: number,
  more: Partial<Span> = {},
): Span {
  const start = epochMs(T0 + from);
  return { id, kind, name, pod: POD, start, durationMs: to - from, outcome: 'ok', attributes: {}, ...more };
}

export function evidence(spans: readonly Span[], objects: Evidence['objects'] = []): Evidence {
  return { source: 'test', spans, objects, problems: [] };
}

interface VersionFields {
  readonly node?: string;
  readonly phase?: string;
  readonly ready?: boolean;
  readonly uid?: string;
}

/** A version of the object of demo/web that a watch delivered `at` ms after T0, or that was read later. */
export function version(
  resourceVersion: string,
  at: number | undefined,
  fields: VersionFields = {},
): Evidence['objects'][number] {
  const { node, phase = 'Pending', ready = false, uid = POD.uid } = fields;
  const condition = { type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: new Date(T0).toISOString() };
  const object: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      namespace: POD.namespace,
      name: POD.name,
      uid,
      resourceVersion,
      creationTimestamp: new Date(T0).toISOString(),
    },
    spec: { containers: [], ...(node === undefined ? {} : { nodeName: node }) },
    status: { phase, conditions: [condition] },
  };
  return { at: at === undefined ? undefined : epochMs(T0 + at), object };
}

/** A start as the agent traces it: watch event, round, action, calls with a CNI run inside, round, write. */
export function podStart(): Span[] {
  const web = 'c'.repeat(64);
  return [
    span(1, 'api', 'SyncLoop ADD', 10, 10, { attributes: { source: 'api', resourceVersion: '11' } }),
    span(2, 'worker', 'syncPod', 12, 15, {
      links: [1],
      cause: 'pod added by api',
      attributes: { decided: ['createSandbox'], ready: false },
    }),
    span(3, 'worker', 'createSandbox', 14, 100, { parent: 2 }),
    span(4, 'cri', 'RunPodSandbox', 20, 99, { parent: 3 }),
    span(5, 'cni', 'ADD network lab', 30, 70, { attributes: { containerId: 's' } }),
    span(6, 'cni', 'ADD bridge', 31, 69, { parent: 5, attributes: { containerId: 's' } }),
    span(7, 'netlink', 'NEWLINK veth1', 60, 60, { attributes: { containerId: 's' } }),
    span(8, 'worker', 'syncPod', 101, 104, {
      links: [3],
      cause: 'createSandbox ended',
      attributes: { decided: ['startContainer web'], ready: false },
    }),
    span(9, 'worker', 'startContainer', 103, 150, { parent: 8, attributes: { action: 'start web' } }),
    span(10, 'cri', 'CreateContainer', 104, 120, { parent: 9, attributes: { container: 'web' } }),
    span(11, 'cri', 'StartContainer', 121, 149, { parent: 9, attributes: { container: web } }),
    span(12, 'worker', 'syncPod', 151, 155, {
      links: [9],
      cause: 'startContainer ended',
      attributes: { decided: [], ready: true },
    }),
    span(13, 'api', 'PATCH pods/status', 157, 163, { links: [12], attributes: { resourceVersion: '14' } }),
    span(14, 'api', 'SyncLoop UPDATE', 165, 165, { attributes: { resourceVersion: '14' } }),
    span(15, 'cri', 'PLEG containerDied', 400, 400, { attributes: { containerId: web } }),
  ];
}
