// Daemon sets and their pods, written shortly: "p@a ready old" is a pod on node a, of the old template, that serves.

import type { Pod, PodSpec } from '../../../../client/types.ts';
import type { DaemonSet } from '../../../../controlplane/controllers/shared/objects.ts';
import { epochMs, plusMs } from '../../../../lib/clock.ts';
import { rfc3339 } from '../../../../lib/rfc3339.ts';
import { meta, NOW } from '../environment.ts';

export const AT = epochMs(Date.parse(NOW));
const ago = (seconds: number): string => rfc3339(plusMs(AT, -1000 * seconds));

export function setWith(spec: Partial<DaemonSet['spec']>, pod: Partial<PodSpec> = {}): DaemonSet {
  return {
    metadata: {
      ...meta('web'),
      namespace: 'demo',
      generation: 1,
      annotations: { 'deprecated.daemonset.template.generation': '1' },
    },
    spec: {
      selector: { matchLabels: { app: 'web' } },
      template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'v1' }], ...pod } },
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
      revisionHistoryLimit: 10,
      ...spec,
    },
  };
}
export const daemonSet = (): DaemonSet => setWith({});

/**
 * The words after name and node: ready, pending, failed, succeeded; for how many seconds it has been ready ("ready:5"), how old it is
 * ("age:5"); old, terminating, unbound.
 */
export function daemonPod(text: string): Pod {
  const [where = '', ...words] = text.split(' ');
  const [name = '', node = ''] = where.split('@');
  const has = (word: string): boolean => words.includes(word);
  const seconds = (word: string, usual: number): number =>
    Number(words.find((each) => each.startsWith(word))?.split(':')[1] ?? usual);
  const isReady = words.some((word) => word.startsWith('ready'));
  const phase = has('pending') ? 'Pending' : has('failed') ? 'Failed' : has('succeeded') ? 'Succeeded' : 'Running';
  const nodeSelectorTerms = [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] }];
  const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
  return {
    metadata: {
      ...meta(name),
      namespace: 'demo',
      labels: { app: 'web', 'controller-revision-hash': has('old') ? 'old' : 'new' },
      creationTimestamp: ago(seconds('age', 1)),
      ...(has('terminating') ? { deletionTimestamp: NOW } : {}),
    },
    spec: {
      containers: [{ name: 'c' }],
      affinity: { nodeAffinity: required },
      ...(has('unbound') ? {} : { nodeName: node }),
    },
    status: {
      phase,
      conditions: isReady ? [{ type: 'Ready', status: 'True', lastTransitionTime: ago(seconds('ready', 100)) }] : [],
    },
  };
}
