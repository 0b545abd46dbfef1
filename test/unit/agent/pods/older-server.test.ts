// A server that is older than some fields of a status: it drops them, and is not asked to keep them again and again.

import { expect, it } from 'vitest';
import type { PodApi } from '../../../../agent/ports/api.ts';
import type { Pod } from '../../../../client/types.ts';
import { applyStatusPatch } from '../../../../labs/sim/status-patch.ts';
import { FakeNode, makePod } from '../../../sim/fakes.ts';

/** What a server of 1.26 keeps of a container's status. */
function without(pod: Pod): Pod {
  const status = structuredClone(pod.status ?? {});
  delete status.resize;
  for (const condition of status.conditions ?? []) delete condition.observedGeneration;
  for (const each of status.containerStatuses ?? []) {
    delete each.resources;
    delete each.allocatedResources;
    delete each.volumeMounts;
  }
  return { ...pod, status };
}

it('is written to once, and not at every look for what it will not keep', async () => {
  const patches: object[] = [];
  const node = new FakeNode((one) => {
    const api: PodApi = {
      patchStatus: (pod, patch) => {
        const stored = one.api.pods.get(pod.metadata.uid);
        if (stored === undefined) return Promise.resolve({ kind: 'gone' });
        patches.push(patch);
        const whole = { ...stored, status: applyStatusPatch(stored.status ?? {}, patch) };
        return Promise.resolve({ kind: 'ok', value: one.api.put(without(whole)) });
      },
      finalizeDelete: (pod) => one.api.finalizeDelete(pod),
      get: (namespace, name) => one.api.get(namespace, name),
    };
    return { api };
  });
  const resources = { requests: { cpu: '100m' }, limits: { cpu: '1' } };
  const pod = makePod('web-pod', { containers: [{ name: 'web', image: 'nginx:stable', resources }] });
  node.api.put({ ...pod, status: { phase: 'Pending', qosClass: 'Burstable' } });
  await node.clock.until(() => node.api.status('web-pod').phase === 'Running');
  await node.clock.advance(1_000);
  const written = patches.length;
  expect(written).toBeGreaterThan(0);
  await node.clock.advance(10 * 60_000);
  expect(patches.slice(written)).toEqual([]);
  node.agent.stop();
});
