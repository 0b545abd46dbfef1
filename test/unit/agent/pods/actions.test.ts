// The rules of computePodActions, one row each.
// One table of one function, past 500 lines by its rows.

import { describe, expect, it } from 'vitest';
import { computePodActions } from '../../../../agent/pods/actions.ts';
import { hashContainer } from '../../../../agent/pods/hash.ts';
import type { PodAction } from '../../../../agent/pods/pod-action.ts';
import type { PodFacts, RestartWanted } from '../../../../agent/pods/pod-facts.ts';
import { restartBackoffKey } from '../../../../agent/pods/restart-backoff.ts';
import type {
  ContainerId,
  ContainerSnapshot,
  PodUID,
  SandboxId,
  SandboxSnapshot,
} from '../../../../agent/ports/runtime.ts';
import type { Container, Pod } from '../../../../client/types.ts';
import { epochMs, plusMs } from '../../../../lib/clock.ts';
import { FakeProbes, makePod } from '../../../sim/fakes.ts';

const NOW = epochMs(1_000_000);
const policy = { initialMs: 10_000, maxMs: 300_000, factor: 2, resetMs: 600_000 };
const web: Container = { name: 'web', image: 'nginx:stable' };
const side: Container = { name: 'side', image: 'busybox:stable', restartPolicy: 'Always' };
const init: Container = { name: 'init', image: 'busybox:stable' };
const two: Container = { name: 'two', image: 'busybox:stable' };
const probe = { tcpSocket: { port: 80 } };

function sandbox(over: Partial<SandboxSnapshot> = {}): SandboxSnapshot {
  return {
    id: 's0' as SandboxId,
    attempt: 0,
    state: 'ready',
    createdAt: epochMs(1),
    ips: ['10.0.0.1'],
    hostNetwork: false,
    runtimeHandler: '',
    ...over,
  };
}

function instance(of: Container, state: ContainerSnapshot['state'], over: Partial<ContainerSnapshot> = {}) {
  const snapshot: ContainerSnapshot = {
    id: `${of.name}-id` as ContainerId,
    sandboxId: 's0' as SandboxId,
    name: of.name,
    type: 'container',
    restartCount: 0,
    hash: hashContainer(of),
    state,
    createdAt: epochMs(1),
    startedAt: epochMs(state === 'created' ? 0 : 2),
    finishedAt: epochMs(state === 'exited' ? NOW : 0),
    exitCode: 0,
    reason: '',
    message: '',
    image: of.image ?? '',
    imageId: '',
    logPath: '',
    ...over,
  };
  return snapshot;
}

interface Case {
  spec?: Partial<Pod['spec']>;
  sandboxes?: readonly SandboxSnapshot[];
  containers?: readonly ContainerSnapshot[];
  facts?: Partial<PodFacts>;
  verdicts?: readonly (readonly ['liveness' | 'startup', string, 'success' | 'failure'])[];
}

function decide({ spec = {}, sandboxes = [sandbox()], containers = [], facts = {}, verdicts = [] }: Case) {
  const probes = new FakeProbes();
  for (const [kind, id, verdict] of verdicts) probes.set(kind, id, verdict);
  const pod = makePod('p', { containers: [web], ...spec });
  return computePodActions({
    pod,
    snapshot: {
      pod: { uid: 'u' as PodUID, namespace: 'demo', name: 'p' },
      sandboxes,
      containers,
      observedAt: NOW,
    },
    previous: undefined,
    probes,
    backoff: new Map(),
    backoffPolicy: policy,
    now: NOW,
    sandboxBusy: false,
    starting: new Set(),
    killing: new Set(),
    restartWanted: new Map(),
    ...facts,
  });
}

function say(action: PodAction): string {
  switch (action.kind) {
    case 'finishPod':
      return `finish: ${action.why}`;
    case 'createSandbox':
      return `sandbox ${action.attempt}: ${action.why}${action.replaces ? ', replaces' : ''}`;
    case 'killContainer':
      return `kill ${action.container.name}: ${action.message}${action.thenStart ? ' (then start)' : ''}`;
    case 'resizePod':
      return `resize: ${action.updates.map(({ container }) => container.name).join(', ')}`;
    default: {
      const created = action.created === undefined ? '' : ' (created)';
      const superseded = action.superseded === undefined ? '' : `, removes ${action.superseded.join(', ')} first`;
      return `start ${action.type} ${action.container.name} #${action.restartCount}${created}${superseded}`;
    }
  }
}

const output = (row: Case) => decide(row).actions.map(say);
const failed = { exitCode: 1 };

describe('the sandbox', () => {
  const dead = sandbox({ state: 'notReady' });
  const rows: readonly (readonly [string, Case, readonly string[]])[] = [
    ['is made when there is none', { sandboxes: [] }, ['sandbox 0: none']],
    ['is replaced when it is not ready', { sandboxes: [dead] }, ['sandbox 1: notReady, replaces']],
    [
      'is replaced when more than one is ready',
      { sandboxes: [sandbox({ attempt: 3 }), sandbox()] },
      ['sandbox 4: severalReady, replaces'],
    ],
    [
      'is replaced when the pod moved to the host network',
      { spec: { hostNetwork: true } },
      ['sandbox 1: networkNamespace, replaces'],
    ],
    ['is replaced when it has no address', { sandboxes: [sandbox({ ips: [] })] }, ['sandbox 1: noAddress, replaces']],
    [
      'needs no address on the host network',
      { spec: { hostNetwork: true }, sandboxes: [sandbox({ ips: [], hostNetwork: true })] },
      ['start container web #0'],
    ],
    [
      'is not made again for a Never pod that had containers',
      { spec: { restartPolicy: 'Never' }, sandboxes: [dead], containers: [instance(web, 'exited')] },
      ['finish: sandboxDead'],
    ],
    [
      'is made again for a Never pod that never had a container',
      { spec: { restartPolicy: 'Never' }, sandboxes: [dead] },
      ['sandbox 1: notReady, replaces'],
    ],
    [
      'is not made again for an OnFailure pod whose containers all succeeded',
      { spec: { restartPolicy: 'OnFailure' }, sandboxes: [dead], containers: [instance(web, 'exited')] },
      ['finish: sandboxDead'],
    ],
    [
      'is made again for an OnFailure pod with a container that failed',
      { spec: { restartPolicy: 'OnFailure' }, sandboxes: [dead], containers: [instance(web, 'exited', failed)] },
      ['sandbox 1: notReady, replaces'],
    ],
    ['is waited for while it is being made', { sandboxes: [], facts: { sandboxBusy: true } }, []],
    ['is not replaced while a start is under way', { sandboxes: [dead], facts: { starting: new Set(['web']) } }, []],
  ];
  it.each(rows)('%s', (_name, row, expected) => expect(output(row)).toEqual(expected));
});

describe('a regular container', () => {
  const rows: readonly (readonly [string, Case, readonly string[]])[] = [
    ['is started when there is none', {}, ['start container web #0']],
    ['is left alone while it runs', { containers: [instance(web, 'running')] }, []],
    ['is not started twice', { facts: { starting: new Set(['web']) } }, []],
    [
      'that was created is started as it is',
      { containers: [instance(web, 'created')] },
      ['start container web #0 (created)'],
    ],
    [
      'that was created waits while the runtime shows the instance before it running',
      {
        containers: [
          instance(web, 'created', { restartCount: 1 }),
          instance(web, 'running', { id: 'old' as ContainerId }),
        ],
      },
      [],
    ],
    [
      'that was created starts once the instance before it has ended',
      {
        containers: [
          instance(web, 'created', { restartCount: 1 }),
          instance(web, 'exited', { id: 'old' as ContainerId }),
        ],
      },
      ['start container web #1 (created)'],
    ],
    [
      'that was created waits until the instance before it is killed, where the runtime has lost sight of that',
      {
        containers: [
          instance(web, 'created', { restartCount: 1 }),
          instance(web, 'unknown', { id: 'old' as ContainerId }),
        ],
      },
      ['kill web: Container is in "unknown" state, try killing it before restart (then start)'],
    ],
    [
      'that was created in an older sandbox is made anew, and is removed first',
      { containers: [instance(web, 'created', { sandboxId: 'old' as SandboxId })] },
      ['start container web #1, removes web-id first'],
    ],
    [
      'that was created of an image that is no longer the pod’s is made anew, and is removed first: its start may still be executed',
      { containers: [instance({ ...web, image: 'old' }, 'created')] },
      ['start container web #1, removes web-id first'],
    ],
    [
      'that was created is started when another that was created before it is removed',
      {
        containers: [
          instance(web, 'created', { restartCount: 1 }),
          instance(web, 'created', { id: 'old' as ContainerId }),
        ],
      },
      ['start container web #1 (created), removes old first'],
    ],
    ['that ended is restarted under Always', { containers: [instance(web, 'exited')] }, ['start container web #1']],
    [
      'that failed is restarted under OnFailure',
      { spec: { restartPolicy: 'OnFailure' }, containers: [instance(web, 'exited', failed)] },
      ['start container web #1'],
    ],
    [
      'that succeeded ends the pod under OnFailure',
      { spec: { restartPolicy: 'OnFailure' }, containers: [instance(web, 'exited')] },
      ['finish: completed'],
    ],
    [
      'that failed ends the pod under Never',
      { spec: { restartPolicy: 'Never' }, containers: [instance(web, 'exited', failed)] },
      ['finish: completed'],
    ],
    [
      'that ended does not end the pod while another runs',
      {
        spec: { restartPolicy: 'Never', containers: [web, two] },
        containers: [instance(two, 'running'), instance(web, 'exited')],
      },
      [],
    ],
    [
      'with a restart policy of its own follows that',
      {
        spec: { restartPolicy: 'Never', containers: [{ ...web, restartPolicy: 'OnFailure' }] },
        containers: [instance(web, 'exited', failed)],
      },
      ['start container web #1'],
    ],
    [
      'of a changed image is killed and started whatever the policy',
      { spec: { restartPolicy: 'Never' }, containers: [instance({ ...web, image: 'old' }, 'running')] },
      ['kill web: Container web definition changed, will be restarted (then start)'],
    ],
    [
      'that was killed for a changed image is started under Never too',
      {
        spec: { restartPolicy: 'Never' },
        containers: [instance(web, 'exited')],
        facts: { restartWanted: new Map([['web', { endedBefore: undefined }]]) },
      },
      ['start container web #1'],
    ],
    [
      'that fails liveness is killed and started',
      { containers: [instance(web, 'running')], verdicts: [['liveness', 'web-id', 'failure']] },
      ['kill web: Container web failed liveness probe, will be restarted (then start)'],
    ],
    [
      'that fails liveness is started again under OnFailure, however it ends',
      {
        spec: { restartPolicy: 'OnFailure' },
        containers: [instance(web, 'exited')],
        facts: { restartWanted: new Map([['web', { endedBefore: undefined }]]) },
      },
      ['start container web #1'],
    ],
    [
      'that fails liveness under Never is killed for good',
      {
        spec: { restartPolicy: 'Never' },
        containers: [instance(web, 'running')],
        verdicts: [['liveness', 'web-id', 'failure']],
      },
      ['kill web: Container web failed liveness probe'],
    ],
    [
      'that fails liveness with a restart policy of its own follows that, and no rule about exit codes',
      {
        spec: {
          containers: [
            {
              ...web,
              restartPolicy: 'Never',
              ...{ restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: [137] } }] },
            },
          ],
        },
        containers: [instance(web, 'running')],
        verdicts: [['liveness', 'web-id', 'failure']],
      },
      ['kill web: Container web failed liveness probe'],
    ],
    [
      'that fails its startup probe is killed and started',
      { containers: [instance(web, 'running')], verdicts: [['startup', 'web-id', 'failure']] },
      ['kill web: Container web failed startup probe, will be restarted (then start)'],
    ],
    [
      'that is being killed is left to it',
      {
        containers: [instance(web, 'running')],
        verdicts: [['liveness', 'web-id', 'failure']],
        facts: { killing: new Set(['web-id' as ContainerId]) },
      },
      [],
    ],
    [
      'in an unknown state is killed before it is started',
      { containers: [instance(web, 'unknown')] },
      ['kill web: Container is in "unknown" state, try killing it before restart (then start)'],
    ],
  ];
  it.each(rows)('%s', (_name, row, expected) => expect(output(row)).toEqual(expected));

  it.each([
    ['In', [42], 42, true],
    ['In', [42], 1, false],
    ['NotIn', [42], 1, true],
    ['NotIn', [42], 42, false],
  ])('restarts by its rule exit code %s %j when it ended with %i: %s', (operator, values, exitCode, restarts) => {
    const rules = [{ action: 'Restart', exitCodes: { operator, values } }];
    const ruled = { ...web, restartPolicy: 'Never', restartPolicyRules: rules };
    const row = { spec: { containers: [ruled] }, containers: [instance(web, 'exited', { exitCode })] };
    expect(output(row)).toEqual([restarts ? 'start container web #1' : 'finish: completed']);
  });

  it('waits out its back-off, then starts', () => {
    const backoff = new Map([
      [restartBackoffKey('web', hashContainer(web)), { delayMs: 20_000, since: plusMs(NOW, -5_000) }],
    ]);
    const containers = [instance(web, 'exited', { finishedAt: plusMs(NOW, -1_000), exitCode: 1 })];
    const early = decide({ containers, facts: { backoff } });
    expect(early.actions).toEqual([]);
    expect(early.wakeAt).toBe(plusMs(NOW, 19_000));
    expect(early.waiting.get('web')?.message).toBe('back-off 20s restarting failed container=web pod=p_demo(uid-p)');
    expect(output({ containers, facts: { backoff, now: plusMs(NOW, 19_000) } })).toEqual(['start container web #1']);
  });

  describe('that was stopped in order to run again', () => {
    const backoff = new Map([
      [restartBackoffKey('web', hashContainer(web)), { delayMs: 20_000, since: plusMs(NOW, -50_000) }],
    ]);
    const containers = [instance(web, 'exited', { finishedAt: NOW })];
    const start = (wanted: RestartWanted, known: PodFacts['backoff'] = backoff) =>
      decide({ containers, facts: { backoff: known, restartWanted: new Map([['web', wanted]]) } });

    it('does not wait when the instance before ended longer ago than the back-off', () => {
      const [action] = start({ endedBefore: plusMs(NOW, -20_000) }).actions;
      expect(action).toMatchObject({ kind: 'startContainer', previousFinishedAt: NOW });
    });
    it('waits from its own end when the instance before ended too lately', () => {
      const { actions, waiting } = start({ endedBefore: plusMs(NOW, -19_999) });
      expect(actions).toEqual([]);
      expect(waiting.get('web')?.until).toBe(plusMs(NOW, 20_000));
    });
    it('is delayed by its own end once it had to wait', () => {
      expect(start('waited').waiting.get('web')?.until).toBe(plusMs(NOW, 20_000));
    });
    it('does not wait when no instance was before it, and that is no reason to wait next time', () => {
      const [action] = start({ endedBefore: undefined }).actions;
      expect(action).toMatchObject({ kind: 'startContainer', restartCount: 1 });
      expect(action).not.toHaveProperty('previousFinishedAt');
    });
    it('has the end of the instance before noted when it is killed', () => {
      const [running, before] = [instance(web, 'running'), instance(web, 'exited', { finishedAt: epochMs(7) })];
      const row: Case = { containers: [running, before], verdicts: [['liveness', 'web-id', 'failure']] };
      expect(decide(row).actions).toMatchObject([{ kind: 'killContainer', endedBefore: 7 }]);
      expect(decide({ ...row, containers: [running] }).actions).toMatchObject([{ endedBefore: undefined }]);
    });
  });

  it('has its back-off forgotten when it ran longer than ten minutes', () => {
    const backoff = new Map([
      [restartBackoffKey('web', hashContainer(web)), { delayMs: 300_000, since: plusMs(NOW, -600_001) }],
    ]);
    expect(output({ containers: [instance(web, 'exited')], facts: { backoff } })).toEqual(['start container web #1']);
  });
});

describe('init containers', () => {
  const spec = { initContainers: [init, two] };
  const ended = (of: Container, over = {}) => instance(of, 'exited', { type: 'init', ...over });
  const runs = (of: Container, over = {}) => instance(of, 'running', { type: 'init', ...over });
  const rows: readonly (readonly [string, Case, readonly string[]])[] = [
    ['begin with the first', { spec }, ['start init init #0']],
    ['hold back the rest while one runs', { spec, containers: [runs(init)] }, []],
    [
      'begin again in a new sandbox, whatever of the pod was made or ended in the one before',
      {
        spec,
        sandboxes: [sandbox({ id: 's1' as SandboxId, attempt: 1 }), sandbox({ state: 'notReady' })],
        containers: [instance(web, 'created'), ended(two), ended(init)],
      },
      ['start init init #1'],
    ],
    ['go on with the next when one succeeded', { spec, containers: [ended(init)] }, ['start init two #0']],
    [
      'let the others begin when the last succeeded',
      { spec, containers: [ended(two), ended(init)] },
      ['start container web #0'],
    ],
    ['are not missed when only the last is left', { spec, containers: [ended(two)] }, ['start container web #0']],
    ['do not run again once a regular container runs', { spec, containers: [instance(web, 'running')] }, []],
    ['that fail are restarted under Always', { spec, containers: [ended(init, failed)] }, ['start init init #1']],
    [
      'that ran out of memory have failed, whatever the exit code of their first process',
      { spec, containers: [ended(init, { reason: 'OOMKilled' })] },
      ['start init init #1'],
    ],
    [
      'that ran out of memory end the pod under Never, whatever the exit code of their first process',
      { spec: { ...spec, restartPolicy: 'Never' }, containers: [ended(init, { reason: 'OOMKilled' })] },
      ['finish: initFailed'],
    ],
    [
      'that fail end the pod under Never',
      { spec: { ...spec, restartPolicy: 'Never' }, containers: [ended(init, failed)] },
      ['finish: initFailed'],
    ],
    [
      'in an unknown state are killed first',
      { spec, containers: [instance(init, 'unknown', { type: 'init' })] },
      ['kill init: Init container is in "unknown" state, try killing it before restart (then start)'],
    ],
  ];
  it.each(rows)('%s', (_name, row, expected) => expect(output(row)).toEqual(expected));
});

describe('sidecars', () => {
  const spec = { initContainers: [side, init] };
  const probed = { ...side, startupProbe: probe };
  const runs = (of: Container) => instance(of, 'running', { type: 'init' });
  const ended = (of: Container, over = {}) => instance(of, 'exited', { type: 'init', ...over });
  const rows: readonly (readonly [string, Case, readonly string[]])[] = [
    ['let the next begin once they run', { spec, containers: [runs(side)] }, ['start init init #0']],
    [
      'with a startup probe hold the next until it succeeds',
      { spec: { initContainers: [probed, init] }, containers: [runs(probed)] },
      [],
    ],
    [
      'with a startup probe that succeeded let the next begin',
      {
        spec: { initContainers: [probed, init] },
        containers: [runs(probed)],
        verdicts: [['startup', 'side-id', 'success']],
      },
      ['start init init #0'],
    ],
    [
      'with a startup probe that failed are killed and started',
      {
        spec: { initContainers: [probed] },
        containers: [runs(probed)],
        verdicts: [['startup', 'side-id', 'failure']],
      },
      ['kill side: Init container side failed startup probe (then start)'],
    ],
    [
      'that fail liveness are killed and started, even under Never',
      {
        spec: { initContainers: [side], restartPolicy: 'Never' },
        containers: [instance(web, 'running'), runs(side)],
        verdicts: [['liveness', 'side-id', 'failure']],
      },
      ['kill side: Init container side failed liveness probe (then start)'],
    ],
    [
      'are restarted while the pod runs, even under Never',
      {
        spec: { initContainers: [side], restartPolicy: 'Never' },
        containers: [instance(web, 'running'), ended(side)],
      },
      ['start init side #1'],
    ],
    [
      'do not keep a pod alive whose own containers are through',
      {
        spec: { initContainers: [side], restartPolicy: 'Never' },
        containers: [instance(web, 'exited'), runs(side)],
      },
      ['finish: completed'],
    ],
    [
      'are started again when the runtime lost them while the pod runs',
      { spec: { initContainers: [side] }, containers: [instance(web, 'running')] },
      ['start init side #0'],
    ],
  ];
  it.each(rows)('%s', (_name, row, expected) => expect(output(row)).toEqual(expected));
});

describe('ephemeral containers', () => {
  const ephemeralContainers = [{ name: 'dbg', image: 'busybox:stable' }];
  it('start beside a running pod', () => {
    expect(output({ spec: { ephemeralContainers }, containers: [instance(web, 'running')] })).toEqual([
      'start ephemeral dbg #0',
    ]);
  });
  it('start even before initialization is over', () => {
    const running = instance(init, 'running', { type: 'init' });
    expect(output({ spec: { ephemeralContainers, initContainers: [init] }, containers: [running] })).toEqual([
      'start ephemeral dbg #0',
    ]);
  });
  it('never start again', () => {
    const over = instance({ name: 'dbg', image: 'busybox:stable' }, 'exited', { type: 'ephemeral' });
    expect(output({ spec: { ephemeralContainers }, containers: [instance(web, 'running'), over] })).toEqual([]);
  });
});

describe('the restart count', () => {
  const status = (restartCount: number, state: object, lastState: object = {}) => ({
    containerStatuses: [{ name: 'web', image: '', imageID: '', ready: false, restartCount, state, lastState }],
  });
  const count = (facts: Partial<PodFacts>, containers: readonly ContainerSnapshot[] = []) =>
    decide({ facts, containers }).actions.map((action) => action.kind === 'startContainer' && action.restartCount);

  it.each([
    [
      'the runtime, when it knows more than the status',
      status(2, { running: {} }),
      [instance(web, 'exited', { restartCount: 5 })],
      6,
    ],
    ['the status, when the runtime has forgotten', status(5, { running: {} }), [], 6],
    ['the status as it is, when that counts the next start already', status(5, { waiting: {} }), [], 5],
    ['zero, when nobody knows anything', {}, [], 0],
  ] as const)('comes from %s', (_name, previous, containers, expected) => {
    expect(count({ previous: structuredClone(previous) }, containers)).toEqual([expected]);
  });
});
