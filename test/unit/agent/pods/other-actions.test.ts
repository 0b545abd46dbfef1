// The rules of computePodActions for init containers, sidecars and ephemeral containers, one row each; the restart count.

import { describe, expect, it } from 'vitest';
import type { PodFacts } from '../../../../agent/pods/pod-facts.ts';
import type { ContainerSnapshot, SandboxId } from '../../../../agent/ports/runtime.ts';
import type { Container } from '../../../../client/types.ts';
import { type Case, decide, failed, init, instance, output, probe, sandbox, side, two, web } from './action-facts.ts';

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
