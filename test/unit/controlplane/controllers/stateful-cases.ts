// Stateful sets and their pods, written shortly: "web-1 ready old" is a pod of the old version that serves.

import type { Pod } from '../../../../client/types.ts';
import type { StatefulSet } from '../../../../controlplane/controllers/shared/objects.ts';
import type { Facts, Plan, Step } from '../../../../controlplane/controllers/statefulset/plan.ts';
import type { PersistentVolumeClaim } from '../../../../controlplane/storage/objects.ts';
import { epochMs, plusMs } from '../../../../lib/clock.ts';
import { rfc3339 } from '../../../../lib/rfc3339.ts';
import { meta, NOW } from '../environment.ts';

export const AT = epochMs(Date.parse(NOW));
export const OWNER = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'web', uid: 'uid-web', controller: true };

export const template = (image: string) => ({
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'c', image }] },
});

export function setOf(spec: Partial<StatefulSet['spec']> = {}, status?: StatefulSet['status']): StatefulSet {
  return {
    metadata: { ...meta('web'), namespace: 'demo', generation: 1 },
    spec: {
      replicas: 3,
      serviceName: 'peers',
      selector: { matchLabels: { app: 'web' } },
      template: template('v2'),
      podManagementPolicy: 'OrderedReady',
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } },
      revisionHistoryLimit: 10,
      ...spec,
    },
    ...(status === undefined ? {} : { status }),
  };
}

/**
 * The words after the name: ready, pending, running (and not ready), failed, succeeded; for how many seconds it has been ready ("ready:5");
 * old, terminating, unlabelled.
 */
export function podOf(text: string): Pod {
  const [name = '', ...words] = text.split(' ');
  const has = (word: string): boolean => words.includes(word);
  const ready = words.find((word) => word.startsWith('ready'));
  const since = rfc3339(plusMs(AT, -1000 * Number(ready?.split(':')[1] ?? 100)));
  const phase = has('pending') ? 'Pending' : has('failed') ? 'Failed' : has('succeeded') ? 'Succeeded' : 'Running';
  const named = has('unlabelled') ? {} : { 'statefulset.kubernetes.io/pod-name': name };
  return {
    metadata: {
      ...meta(name),
      namespace: 'demo',
      labels: { app: 'web', ...named, 'controller-revision-hash': has('old') ? 'web-old' : 'web-new' },
      ownerReferences: [OWNER],
      ...(has('terminating') ? { deletionTimestamp: NOW } : {}),
    },
    spec: { containers: [{ name: 'c' }] },
    status: {
      phase,
      conditions: ready === undefined ? [] : [{ type: 'Ready', status: 'True', lastTransitionTime: since }],
    },
  };
}

export function factsOf(
  set: StatefulSet,
  pods: readonly string[],
  claims: readonly PersistentVolumeClaim[] = [],
): Facts {
  return {
    set,
    pods: pods.map(podOf),
    current: { name: 'web-old', template: template('v1') },
    update: { name: 'web-new', template: template('v2') },
    findClaim: (name) => claims.find(({ metadata }) => metadata.name === name),
    now: AT,
  };
}

function stepText(step: Step): string {
  switch (step.kind) {
    case 'create': {
      const { name, labels } = step.pod.metadata;
      return `create ${name} ${labels['controller-revision-hash'] === 'web-old' ? 'old' : 'new'}`;
    }
    case 'owners':
      return `owners ${step.owners.map(({ claim }) => claim.metadata.name).join(' ')}`;
    default:
      return `${step.kind} ${step.pod.metadata.name}`;
  }
}

/** The steps of a plan, without what becomes of an old pod at its end if that is not deleted. */
export const stepsOf = ({ phases }: Plan): readonly string[] => phases.flat(2).map(stepText);
