// A pod of which several containers or volumes have something wrong, each for a reason of its own: all are named, the most severe
// first. By tables.

import { expect, test } from 'vitest';
import type { PodFacts } from '../../../../cli/explain/facts.ts';
import { explain } from '../../../../cli/explain/findings.ts';
import { eachContainer, eachVolume } from '../../../../cli/explain/parts.ts';
import { POD_RULES, unknownPod } from '../../../../cli/explain/rules/pod-rules.ts';
import type { ContainerStatus, PodSpec } from '../../../../client/types.ts';
import type { Span } from '../../../../lib/trace.ts';
import { claim, crashed, event, facts, NOW, type PodChange, references, waiting } from './facts.ts';

type Container = PodSpec['containers'][number];

/** A pod with these containers and their states. */
function withContainers(...all: readonly (Partial<Container> & { name: string; state: Partial<ContainerStatus> })[]) {
  const statuses = all.map(({ name, state }) => ({
    name,
    image: '',
    imageID: '',
    ready: false,
    started: false,
    restartCount: 0,
    ...state,
  }));
  const containers = all.map(({ state: _state, ...spec }): Container => ({ image: `${spec.name}:1`, ...spec }));
  return { spec: { containers }, status: { phase: 'Running', containerStatuses: statuses } } satisfies PodChange;
}

const volume = (name: string, more: object): NonNullable<PodSpec['volumes']>[number] => ({ name, ...more });
const mounts = (...names: string[]) => ({ volumeMounts: names.map((name) => ({ name, mountPath: `/${name}` })) });
const running = { state: { running: {} }, started: true };
const pullFails = (image: string, why: string) => `Failed to pull image "${image}": ${why}`;

let lastId = 0;
function span(change: Partial<Span>): Span {
  return {
    id: ++lastId,
    kind: 'volume',
    name: '',
    start: NOW,
    durationMs: 1,
    outcome: 'error',
    attributes: {},
    ...change,
  };
}

interface Case {
  readonly facts: PodFacts;
  /** The beginnings of all verdicts, the answer's own first. */
  readonly verdicts: readonly string[];
}

const one = span({ name: 'MountVolume.SetUp', attributes: { volume: 'one' } });
const two = span({ name: 'MountVolume.SetUp', attributes: { volume: 'two' } });

const CASES: Readonly<Record<string, Case>> = {
  'two images that cannot be pulled, each with its own answer': {
    facts: facts(
      withContainers({ name: 'a', state: waiting('ErrImagePull') }, { name: 'b', state: waiting('ImagePullBackOff') }),
      {
        events: [
          event('Failed', pullFails('a:1', 'dial tcp: lookup nowhere: no such host'), { container: 'a' }),
          event('Failed', pullFails('b:1', 'b:1: not found'), { container: 'b' }),
        ],
      },
    ),
    verdicts: ['image a:1 of container a cannot be pulled: ', 'image b:1 of container b cannot be pulled: '],
  },
  'two containers that end again and again, and one that runs': {
    facts: facts(
      withContainers(
        { name: 'a', state: crashed({ exitCode: 3 }) },
        { name: 'b', state: running },
        { name: 'c', state: crashed({ exitCode: 4 }) },
      ),
    ),
    verdicts: ['container a ', 'container c '],
  },
  'one that ends, and one that lacks a ConfigMap': {
    facts: facts(
      withContainers(
        { name: 'a', state: crashed({ exitCode: 3 }) },
        {
          name: 'b',
          state: waiting('CreateContainerConfigError'),
          env: [{ name: 'COLOUR', valueFrom: { configMapKeyRef: { name: 'settings', key: 'colour' } } }],
        },
      ),
      { references: references({ configMaps: new Map([['settings', { state: 'absent' }]]) }) },
    ),
    verdicts: ['container a ', 'variable COLOUR of container b cannot be set: ConfigMap settings does not exist'],
  },
  'an image and a container that ends': {
    facts: facts(
      withContainers(
        { name: 'a', state: crashed({ exitCode: 3 }) },
        { name: 'b', state: waiting('ErrImageNeverPull') },
      ),
    ),
    verdicts: ['image b:1 of container b is not on node n1', 'container a '],
  },
  'two volumes that need what is not there': {
    facts: facts(
      {
        container: mounts('one', 'two'),
        spec: {
          volumes: [
            volume('one', { configMap: { name: 'settings' } }),
            volume('two', { secret: { secretName: 'key' } }),
          ],
        },
      },
      {
        references: references({
          configMaps: new Map([['settings', { state: 'absent' }]]),
          secrets: new Map([['key', { state: 'absent' }]]),
        }),
      },
    ),
    verdicts: ['volume one cannot be mounted: ConfigMap settings', 'volume two cannot be mounted: Secret key'],
  },
  'two volumes whose driver fails, each in its own words': {
    facts: facts(
      {
        container: mounts('one', 'two'),
        spec: { volumes: [volume('one', { csi: { driver: 'd' } }), volume('two', { csi: { driver: 'd' } })] },
      },
      {
        events: [
          event('FailedMount', 'MountVolume.SetUp failed for volume "one" : no space'),
          event('FailedMount', 'MountVolume.SetUp failed for volume "two" : no such file system'),
        ],
        spans: [
          span({ kind: 'csi', name: 'NodePublishVolume', parent: one.id, error: 'no space' }),
          one,
          span({ kind: 'csi', name: 'NodePublishVolume', parent: two.id, error: 'no such file system' }),
          two,
        ],
      },
    ),
    verdicts: ['volume one cannot be mounted: no space', 'volume two cannot be mounted: no such file system'],
  },
  'two claims that are not there, one that is bound': {
    facts: facts(
      {
        spec: {
          nodeName: '',
          volumes: ['a', 'b', 'c'].map((name) => volume(name, { persistentVolumeClaim: { claimName: name } })),
        },
        status: {
          phase: 'Pending',
          conditions: [{ type: 'PodScheduled', status: 'False', message: 'persistentvolumeclaim "a" not found' }],
        },
      },
      {
        references: references({
          claims: new Map([
            ['a', { state: 'absent' }],
            ['b', { state: 'found', value: claim({}, { volumeName: 'v' }, 'Bound') }],
            ['c', { state: 'absent' }],
          ]),
        }),
      },
    ),
    verdicts: ['it uses claim a, which does not exist', 'it uses claim c, which does not exist'],
  },
};

test.each(Object.entries(CASES))('%s', (_what, { facts: given, verdicts }) => {
  const target = { kind: 'pod', namespace: 'demo', name: 'web' } as const;
  const { finding, others } = explain(target, given, POD_RULES, unknownPod, () => []);
  const found = [finding, ...others].map(({ verdict }) => verdict);
  expect(found).toEqual(verdicts.map((text) => expect.stringContaining(text)));
});

test('a volume that fails comes before one that waits, and that is named too', () => {
  const attach = (name: string) => ({
    claim: claim().claim,
    storageClass: undefined,
    events: [],
    volume: {
      apiVersion: 'v1' as const,
      kind: 'PersistentVolume' as const,
      metadata: { name: `pv-${name}`, uid: name, resourceVersion: '1' },
      spec: { csi: { driver: 'd', volumeHandle: name } },
    },
  });
  const given = facts(
    {
      container: mounts('one', 'two'),
      spec: {
        volumes: [
          volume('one', { persistentVolumeClaim: { claimName: 'one' } }),
          volume('two', { configMap: { name: 'settings' } }),
        ],
      },
    },
    {
      references: references({
        claims: new Map([['one', { state: 'found', value: attach('one') }]]),
        configMaps: new Map([['settings', { state: 'absent' }]]),
        attachDrivers: ['d'],
      }),
    },
  );
  const target = { kind: 'pod', namespace: 'demo', name: 'web' } as const;
  const { finding, others } = explain(target, given, POD_RULES, unknownPod, () => []);
  expect(finding).toMatchObject({ rule: 'volume-object-missing', state: 'broken' });
  expect(others).toMatchObject([{ rule: 'volume-attach', state: 'waiting' }]);
});

test('events of another container, and of another volume, are not taken for this one’s', () => {
  const given = facts(withContainers({ name: 'a', state: running }, { name: 'b', state: running }), {
    events: [
      event('Failed', 'of a', { container: 'a' }),
      event('Failed', 'of the pod'),
      event('FailedMount', 'MountVolume.SetUp failed for volume "one" : x'),
    ],
  });
  const messages = (parts: readonly PodFacts[]): string[][] =>
    parts.map(({ events }) => events.map(({ message }) => message));
  const mount = 'MountVolume.SetUp failed for volume "one" : x';
  expect(messages(eachContainer(given))).toEqual([
    ['of a', 'of the pod', mount],
    ['of the pod', mount],
  ]);
  const volumes = {
    ...given,
    pod: { ...given.pod, spec: { ...given.pod.spec, volumes: [volume('one', {}), volume('two', {})] } },
  };
  expect(messages(eachVolume(volumes))).toEqual([
    ['of a', 'of the pod', mount],
    ['of a', 'of the pod'],
  ]);
});
