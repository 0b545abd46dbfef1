// The rules of computePodActions for sandboxes and regular containers, one row each.

import { describe, expect, it } from 'vitest';
import { hashContainer } from '../../../../agent/pods/hash.ts';
import type { PodFacts, RestartWanted } from '../../../../agent/pods/pod-facts.ts';
import { restartBackoffKey } from '../../../../agent/pods/restart-backoff.ts';
import type { ContainerId, SandboxId } from '../../../../agent/ports/runtime.ts';
import { epochMs, plusMs } from '../../../../lib/clock.ts';
import { type Case, decide, failed, instance, NOW, output, sandbox, two, web } from './action-facts.ts';

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
