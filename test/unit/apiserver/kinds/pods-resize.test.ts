// pods/<name>/resize: what it changes, what it leaves, and what it refuses.

import { describe, expect, it } from 'vitest';
import { pods } from '../../../../apiserver/kinds/pods/index.ts';
import type { KubeObject } from '../../../../apiserver/kinds/resource.ts';
import { type Container, type Pod, podOf } from '../../../../apiserver/kinds/shapes.ts';
import { lines, object as objectOf, row } from './support.ts';

const WEB: Container = {
  name: 'web',
  image: 'nginx:1',
  resources: { requests: { cpu: '1', memory: '64Mi' }, limits: { cpu: '2', memory: '128Mi' } },
};
const SIDE: Container = { name: 'side', image: 'b:1', restartPolicy: 'Always', resources: { requests: { cpu: '1' } } };
const ONCE: Container = { name: 'once', image: 'b:1', resources: { requests: { cpu: '1' } } };

function stored(status: Pod['status'] = {}): KubeObject {
  const spec = { containers: [WEB, { ...WEB, name: 'b' }], initContainers: [ONCE, SIDE], nodeName: 'node-1' };
  const pod = objectOf(row('pods'), { spec });
  podOf(pod).status = { qosClass: 'Burstable', ...status };
  pods.strategy.applyDefaults?.(pod);
  return pod;
}

/** The pod that a resize leaves, and what is wrong with it. */
function resize(old: KubeObject, change: (containers: Container[], init: Container[], pod: Pod) => void) {
  const object = structuredClone(old);
  const pod = podOf(object);
  change(pod.spec?.containers ?? [], pod.spec?.initContainers ?? [], pod);
  pods.strategy.applyDefaults?.(object);
  pods.strategy.prepareSubresource?.['resize']?.(object, old);
  return {
    pod: podOf(object),
    errors: lines(pods.strategy.validateSubresource?.['resize']?.(object, old) ?? []),
  };
}

const set = (container: Container | undefined, resources: Container['resources']): void => {
  if (container !== undefined && resources !== undefined) container.resources = resources;
};
const more = { requests: { cpu: '1500m', memory: '96Mi' }, limits: { cpu: '3', memory: '256Mi' } };

describe('a resize', () => {
  it('changes cpu and memory of containers and sidecars', () => {
    const { pod, errors } = resize(stored(), ([web], [, side]) => {
      set(web, more);
      set(side, { requests: { cpu: '2' } });
    });
    expect(errors).toEqual([]);
    expect(pod.spec?.containers?.[0]?.resources).toEqual(more);
    expect(pod.spec?.initContainers?.[1]?.resources).toEqual({ requests: { cpu: '2' } });
  });

  it('leaves everything else of the pod as it was, whatever is sent', () => {
    const old = stored();
    const { pod, errors } = resize(old, ([web], _, sent) => {
      set(web, more);
      if (web !== undefined) web.image = 'other:1';
      if (sent.spec !== undefined) sent.spec.nodeName = 'elsewhere';
      sent.status = { phase: 'Failed' };
    });
    expect(errors).toEqual([]);
    expect(pod.spec?.containers?.[0]?.image).toBe('nginx:1');
    expect(pod.spec?.nodeName).toBe(podOf(old).spec?.nodeName);
    expect(pod.status).toEqual(podOf(old).status);
  });

  const rows: readonly (readonly [string, Parameters<typeof resize>[1], string])[] = [
    [
      'that changes the class of the pod',
      (containers, init) => {
        for (const one of containers)
          set(one, { requests: { cpu: '2', memory: '1Gi' }, limits: { cpu: '2', memory: '1Gi' } });
        for (const one of init)
          set(one, { requests: { cpu: '2', memory: '1Gi' }, limits: { cpu: '2', memory: '1Gi' } });
      },
      'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
    ],
    [
      'that takes a request away',
      ([web]) => set(web, { requests: { cpu: '1' }, limits: { cpu: '2' } }),
      'spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed',
    ],
    [
      'that takes a limit away',
      ([web]) => set(web, { requests: { cpu: '1', memory: '64Mi' }, limits: { cpu: '2' } }),
      'spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed',
    ],
    [
      'of another resource',
      ([web]) => set(web, { ...WEB.resources, requests: { ...WEB.resources?.requests, 'ephemeral-storage': '1Gi' } }),
      'spec: Forbidden: only cpu and memory resources are mutable',
    ],
    [
      'of an init container that ends',
      (_, [once]) => set(once, { requests: { cpu: '2' } }),
      'spec: Forbidden: resources for non-sidecar init containers are immutable',
    ],
    [
      'that changes the policy itself',
      ([web]) => {
        if (web !== undefined) web.resizePolicy = [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }];
      },
      'spec: Forbidden: only cpu and memory resources are mutable',
    ],
    [
      'that names containers in another order',
      (containers) => {
        containers.reverse();
      },
      'spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize',
    ],
    [
      'that leaves one out',
      (containers) => {
        containers.pop();
      },
      'spec.containers: Forbidden: containers may not be added or removed on resize',
    ],
    [
      'that asks for more than the limit',
      ([web]) => set(web, { requests: { cpu: '5', memory: '64Mi' }, limits: { cpu: '2', memory: '128Mi' } }),
      'spec.containers[0].resources.requests: Invalid value: "5": must be less than or equal to cpu limit of 2',
    ],
  ];
  it.each(rows)('%s is refused', (_, change, expected) => {
    expect(resize(stored(), change).errors).toContain(expected);
  });

  it('may lower a memory limit', () => {
    const old = stored();
    const { errors } = resize(old, ([one]) =>
      set(one, { requests: { cpu: '1', memory: '64Mi' }, limits: { cpu: '2', memory: '100Mi' } }),
    );
    expect(errors).toEqual([]);
  });

  it('is refused on a node that does not report what containers run with', () => {
    const running = { name: 'web', image: '', imageID: '', ready: true, restartCount: 0, state: { running: {} } };
    const without = stored({ containerStatuses: [running] });
    expect(resize(without, ([web]) => set(web, more)).errors).toContain(
      'spec: Forbidden: Pod running on node without support for resize',
    );
    const reported = stored({ containerStatuses: [{ ...running, resources: {} }] });
    expect(resize(reported, ([web]) => set(web, more)).errors).toEqual([]);
  });
});
