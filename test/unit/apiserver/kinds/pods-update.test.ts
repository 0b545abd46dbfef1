import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../../apiserver/kinds/resource.ts';
import { type Pod, podOf } from '../../../../apiserver/kinds/shapes.ts';
import { create, lines, row, update } from './support.ts';

const pods = row('pods');

function stored(spec: Record<string, unknown> = {}): KubeObject {
  const { object, errors } = create(pods, {
    spec: {
      containers: [{ name: 'web', image: 'nginx:1', resources: { requests: { cpu: '1' }, limits: { cpu: '2' } } }],
      initContainers: [{ name: 'init', image: 'busybox:1' }],
      ...spec,
    },
  });
  expect(errors).toEqual([]);
  return object;
}

const change = (apply: (pod: Pod) => void) => (draft: KubeObject) => apply(podOf(draft));
const specOf = (pod: Pod): NonNullable<Pod['spec']> => pod.spec ?? {};
const web = (pod: Pod) => specOf(pod).containers?.[0] ?? {};

describe('a pod that exists', () => {
  it.each<[string, (pod: Pod) => void]>([
    [
      'may get another image',
      (pod) => {
        web(pod).image = 'nginx:2';
      },
    ],
    [
      'may get another image for an init container',
      (pod) => {
        for (const one of specOf(pod).initContainers ?? []) one.image = 'b:2';
      },
    ],
    [
      'may get a deadline',
      (pod) => {
        specOf(pod).activeDeadlineSeconds = 60;
      },
    ],
    [
      'may tolerate more',
      (pod) => {
        specOf(pod).tolerations?.push({ key: 'a', operator: 'Exists' });
      },
    ],
    [
      'may tolerate for another time',
      (pod) => {
        for (const one of specOf(pod).tolerations ?? []) one.tolerationSeconds = 5;
      },
    ],
    [
      'may get labels',
      (pod) => {
        pod.metadata.labels = { a: 'b' };
      },
    ],
    ['may be sent back as it is', () => undefined],
  ])('%s', (_name, apply) => {
    expect(lines(update(pods, stored(), change(apply)).errors)).toEqual([]);
  });

  const fixed = /^spec: Forbidden: pod updates may not change fields other than `spec\.containers\[\*\]\.image`/;
  it.each<[string, (pod: Pod) => void, RegExp]>([
    [
      'may not get another name',
      (pod) => {
        pod.metadata.name = 'other';
      },
      /^metadata\.name: Invalid value: "other": field is immutable$/,
    ],
    [
      'may not get another command',
      (pod) => {
        web(pod).command = ['sh'];
      },
      fixed,
    ],
    [
      'may not get other resources',
      (pod) => {
        web(pod).resources = {};
      },
      fixed,
    ],
    [
      'may not get another restart policy',
      (pod) => {
        specOf(pod).restartPolicy = 'Never';
      },
      fixed,
    ],
    [
      'may not move',
      (pod) => {
        specOf(pod).nodeName = 'n2';
      },
      fixed,
    ],
    [
      'may not get volumes',
      (pod) => {
        specOf(pod).volumes?.push({ name: 'more', emptyDir: {} });
      },
      fixed,
    ],
    [
      'may not get another grace period',
      (pod) => {
        specOf(pod).terminationGracePeriodSeconds = 1;
      },
      fixed,
    ],
    [
      'may not get containers',
      (pod) => {
        specOf(pod).containers?.push({ name: 'more', image: 'a' });
      },
      /^spec\.containers: Forbidden: pod updates may not add or remove containers$/,
    ],
    [
      'may not stop tolerating',
      (pod) => {
        specOf(pod).tolerations = [];
      },
      /^spec\.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds$/,
    ],
    [
      'may not get an empty image',
      (pod) => {
        web(pod).image = '';
      },
      /^spec\.containers\[0\]\.image: Required value$/,
    ],
    [
      'may not get scheduling gates',
      (pod) => {
        specOf(pod).schedulingGates = [{ name: 'a' }];
      },
      /^spec\.schedulingGates\[0\]\.name: Forbidden: only deletion is allowed, but found new scheduling gate 'a'$/,
    ],
  ])('%s', (_name, apply, expected) => {
    expect(lines(update(pods, stored(), change(apply)).errors)).toContainEqual(expect.stringMatching(expected));
  });

  it('says which field was changed, from what and to what', () => {
    const [line] = lines(
      update(
        pods,
        stored(),
        change((pod) => {
          specOf(pod).hostname = 'h';
        }),
      ).errors,
    );
    expect(line).toContain('  hostname:\n- null\n+ "h"\n');
  });

  it('may lower its deadline, never raise or drop it', () => {
    const pod = stored({ activeDeadlineSeconds: 60 });
    const set = (seconds: number | undefined) =>
      lines(
        update(
          pods,
          pod,
          change((draft) => {
            specOf(draft).activeDeadlineSeconds = seconds;
          }),
        ).errors,
      );
    expect(set(30)).toEqual([]);
    expect(set(90)).toEqual([
      'spec.activeDeadlineSeconds: Invalid value: 90: must be less than or equal to previous value',
    ]);
    expect(set(undefined)[0]).toMatch(/must not update from a positive integer to nil value$/);
  });

  it('that is gated may be narrowed to fewer nodes, and lose its gates', () => {
    const pod = stored({ schedulingGates: [{ name: 'wait' }], nodeSelector: { a: 'b' } });
    expect(podOf(pod).status?.conditions?.[0]).toMatchObject({ type: 'PodScheduled', reason: 'SchedulingGated' });
    const narrowed = update(
      pods,
      pod,
      change((draft) => {
        specOf(draft).nodeSelector = { a: 'b', c: 'd' };
      }),
    );
    expect(lines(narrowed.errors)).toEqual([]);
    const widened = update(
      pods,
      pod,
      change((draft) => {
        specOf(draft).nodeSelector = {};
      }),
    );
    expect(lines(widened.errors)).toContainEqual(
      expect.stringMatching(/only additions to spec.nodeSelector are allowed/),
    );
    expect(
      lines(
        update(
          pods,
          pod,
          change((draft) => {
            delete specOf(draft).schedulingGates;
          }),
        ).errors,
      ),
    ).toEqual([]);
  });
});

describe('finalizers of an object that is going', () => {
  it('may be removed but not added', () => {
    const pod = stored();
    pod.metadata.deletionTimestamp = '2025-01-01T00:00:00Z';
    pod.metadata.finalizers = ['example.com/a'];
    expect(
      lines(
        update(pods, pod, (draft) => {
          draft.metadata.finalizers = [];
        }).errors,
      ),
    ).toEqual([]);
    expect(
      lines(
        update(pods, pod, (draft) => {
          draft.metadata.finalizers = ['example.com/a', 'example.com/b'];
        }).errors,
      ),
    ).toEqual([
      'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/b"}',
    ]);
  });
});

describe('through subresources', () => {
  const through = (name: string, pod: KubeObject, apply: (pod: Pod) => void): string[] => {
    const draft = structuredClone(pod);
    apply(podOf(draft));
    pods.strategy.applyDefaults?.(draft);
    return lines(pods.strategy.validateSubresource?.[name]?.(draft, pod) ?? []);
  };
  const debug = { name: 'debug', image: 'busybox:1' };

  it('ephemeral containers are added, and stay as they are', () => {
    expect(
      through('ephemeralcontainers', stored(), (pod) => {
        specOf(pod).ephemeralContainers = [{ ...debug, targetContainerName: 'web' }];
      }),
    ).toEqual([]);
    const pod = stored();
    specOf(podOf(pod)).ephemeralContainers = [debug];
    pods.strategy.applyDefaults?.(pod);
    expect(
      through('ephemeralcontainers', pod, (draft) => {
        specOf(draft).ephemeralContainers = [];
      })[0],
    ).toMatch(/existing ephemeral containers "debug" may not be removed/);
    expect(
      through('ephemeralcontainers', pod, (draft) => {
        for (const one of specOf(draft).ephemeralContainers ?? []) one.image = 'x:1';
      })[0],
    ).toMatch(/may not be changed/);
  });

  it.each<[string, Record<string, unknown>, RegExp]>([
    ['have names of their own', { name: 'web' }, /ephemeralContainers\[0\]\.name: Duplicate value: "web"$/],
    [
      'have no ports',
      { ports: [{ containerPort: 1 }] },
      /ephemeralContainers\[0\]\.ports: Forbidden: cannot be set for an Ephemeral Container$/,
    ],
    ['have no probes', { livenessProbe: { exec: { command: ['a'] } } }, /livenessProbe: Forbidden/],
    [
      'have no resources',
      { resources: { limits: { cpu: '1' } } },
      /resources: Forbidden: cannot be set for an Ephemeral Container$/,
    ],
    ['look at a container of the pod', { targetContainerName: 'gone' }, /targetContainerName: Not found: "gone"$/],
  ])('ephemeral containers %s', (_name, fields, expected) => {
    const found = through('ephemeralcontainers', stored(), (pod) => {
      specOf(pod).ephemeralContainers = [{ ...debug, ...fields }];
    });
    expect(found).toContainEqual(expect.stringMatching(expected));
  });

  it('a status keeps its class and does not bring back what has ended', () => {
    const pod = stored({ restartPolicy: 'Never' });
    const state = (value: Record<string, unknown>): KubeObject => {
      const draft = structuredClone(pod);
      podOf(draft).status = { qosClass: 'Burstable', containerStatuses: [{ name: 'web', state: value }] };
      return draft;
    };
    const ended = state({ terminated: { exitCode: 0 } });
    const again = state({ running: {} });
    expect(lines(pods.strategy.validateStatusUpdate?.(again, ended) ?? [])).toEqual([
      'status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state',
    ]);
    expect(pods.strategy.validateStatusUpdate?.(ended, again)).toEqual([]);
    podOf(again).status = { qosClass: 'Guaranteed' };
    expect(lines(pods.strategy.validateStatusUpdate?.(again, pod) ?? [])).toEqual([
      'status.qosClass: Invalid value: "Guaranteed": field is immutable',
    ]);
  });
});
