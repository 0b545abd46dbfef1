// When a request is executed: at once, in its turn, or never. Turns of the event loop are the test's.

import { beforeEach, describe, expect, it } from 'vitest';
import { type FlowConfig, flowConfig } from '../../../../apiserver/flowcontrol/config.ts';
import { dump } from '../../../../apiserver/flowcontrol/dump.ts';
import { FlowControl, type Place } from '../../../../apiserver/flowcontrol/flow-control.ts';
import { OverloadError } from '../../../../apiserver/flowcontrol/overload.ts';
import { FLOW_SCHEMAS, PRIORITY_LEVELS } from '../../../../apiserver/kinds/flowcontrol/default-objects.ts';
import type { KubeObject } from '../../../../apiserver/kinds/resource.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { failureOf } from '../support.ts';

const GROUP = 'flowcontrol.apiserver.k8s.io/v1';
function objects(kind: string, specs: Readonly<Record<string, object>>): KubeObject[] {
  return Object.entries(specs).map(([name, spec]) => {
    return { apiVersion: GROUP, kind, metadata: { name, uid: `${name}-uid` }, spec };
  });
}

function config(levels: Readonly<Record<string, object>> = {}): FlowConfig {
  return flowConfig(
    objects('FlowSchema', { ...FLOW_SCHEMAS.mandatory, ...FLOW_SCHEMAS.suggested }),
    objects('PriorityLevelConfiguration', { ...PRIORITY_LEVELS.mandatory, ...PRIORITY_LEVELS.suggested, ...levels }),
  );
}

let clock: VirtualClock;
let turns: (() => void)[];
let observed: string[];
let flow: FlowControl;
let running: FlowControl | undefined;

function start(total: number, levels?: Readonly<Record<string, object>>): void {
  running?.stop();
  flow = new FlowControl({
    clock,
    total,
    later: (run) => turns.push(run),
    observer: {
      waited: (level, schema, executed, seconds) => observed.push(`waited ${level} ${schema} ${executed} ${seconds}`),
      executed: (level, schema, isWatch, seconds) => observed.push(`executed ${level} ${schema} ${isWatch} ${seconds}`),
      estimated: () => undefined,
    },
  });
  running = flow;
  flow.configure(config(levels));
}

beforeEach(() => {
  clock = new VirtualClock();
  turns = [];
  observed = [];
  start(600);
});

/** The next turn of the event loop. */
async function turn(): Promise<void> {
  for (const run of turns.splice(0)) run();
  await Promise.resolve();
}

const executed: string[] = [];
/** A request that is written to `executed` once it is. */
function enter(user: string, groups = ['system:authenticated'], seats = 1): Place {
  const resource = { group: '', version: 'v1', resource: 'pods', subresource: '', namespace: 'default', name: '' };
  const place = flow.enter(
    { user, groups, verb: 'list', path: '/api/v1/namespaces/default/pods', resource },
    { seats, isWatch: false, waitMs: 15_000, classified: (...uids) => observed.push(uids.join(' ')) },
  );
  if (place.ready === undefined) executed.push(user);
  else
    place.ready.then(
      () => executed.push(user),
      (error: unknown) => executed.push(`${user}: ${error instanceof OverloadError ? error.retryAfter : 'failed'}`),
    );
  return place;
}
const taken = (): string[] => executed.splice(0);

describe('one turn of the event loop', () => {
  it('executes at once while there is time, then one a turn', async () => {
    enter('alice');
    enter('alice');
    expect(taken()).toEqual(['alice', 'alice']);
    await clock.advance(2);
    enter('alice');
    enter('alice');
    expect(taken()).toEqual([]);
    await turn();
    expect(taken()).toEqual(['alice']);
    enter('alice');
    expect(taken()).toEqual([]);
    await turn();
    await turn();
    expect(taken()).toEqual(['alice', 'alice']);
    await turn();
    enter('alice');
    expect(taken()).toEqual(['alice']);
  });

  it('a flood does not delay another user, whose requests come later', async () => {
    enter('flood');
    await clock.advance(2);
    for (let i = 0; i < 100; i++) enter('flood');
    taken();
    enter('bob');
    await turn();
    await turn();
    expect(taken()).toContain('bob');
  });

  it('levels share the turns by their shares', async () => {
    enter('first');
    await clock.advance(2);
    taken();
    const nodes = ['system:nodes', 'system:authenticated'];
    for (let i = 0; i < 60; i++) {
      enter('alice');
      enter('system:node:n1', nodes);
    }
    for (let i = 0; i < 50; i++) {
      await turn();
      // Each takes as long.
      await clock.advance(3);
    }
    // 74 and 49 seats.
    const ofNode = taken().filter((user) => user === 'system:node:n1').length;
    expect([ofNode >= 28, ofNode <= 32]).toEqual([true, true]);
  });

  it('exempt requests wait for nothing', async () => {
    enter('alice');
    await clock.advance(2);
    for (let i = 0; i < 50; i++) enter('alice');
    taken();
    enter('admin', ['system:masters']);
    expect(taken()).toEqual(['admin']);
  });
});

describe('seats', () => {
  const ONE = {
    'global-default': {
      ...PRIORITY_LEVELS.suggested['global-default'],
      limited: {
        nominalConcurrencyShares: 1,
        borrowingLimitPercent: 0,
        limitResponse: { type: 'Queue', queuing: { queues: 4, handSize: 2, queueLengthLimit: 1 } },
      },
    },
  };
  beforeEach(() => start(10, ONE));

  it('are taken until the response is over; others wait, time out, leave, or are refused', async () => {
    const first = enter('alice');
    const second = enter('alice');
    const third = enter('alice');
    expect(taken()).toEqual(['alice']);
    expect(failureOf(() => enter('alice'))).toMatchObject({ code: 429, reason: 'TooManyRequests' });
    await turn();
    expect(taken()).toEqual([]);
    first.leave();
    first.leave();
    await turn();
    expect(taken()).toEqual(['alice']);
    third.leave();
    await turn();
    expect(taken()).toEqual(['alice: 1']);
    second.leave();
    const busy = enter('alice');
    enter('alice');
    await clock.advance(15_000);
    await turn();
    expect(taken()).toEqual(['alice', 'alice: 1']);
    busy.leave();
    const counts = [...flow.counts].find(({ schema }) => schema === 'global-default');
    expect(counts).toMatchObject({ dispatched: 3, waiting: 0, waitingSeats: 0, executing: 0, executingSeats: 0 });
    expect(counts?.rejected).toEqual(
      new Map([
        ['queue-full', 1],
        ['time-out', 2],
      ]),
    );
    expect(observed).toContain('waited global-default global-default false 15');
    expect(observed).toContain('global-default-uid global-default-uid');
    expect(clock.timers).toBe(1);
  });

  it('a level that is deleted serves those it has, and goes', async () => {
    const place = enter('alice');
    const { levels, ...rest } = config();
    const left = new Map([...levels].filter(([name]) => name !== 'global-default'));
    flow.configure({ ...rest, schemas: rest.schemas.filter(({ level }) => left.has(level)), levels: left });
    expect(flow.levels.get('global-default')).toMatchObject({ isQuiescing: true });
    enter('alice').leave();
    expect(observed.at(-2)).toBe('catch-all-uid catch-all-uid');
    place.leave();
    await clock.advance(10_000);
    expect(flow.levels.has('global-default')).toBe(false);
  });

  it('are borrowed where they are needed, every ten seconds', async () => {
    start(100);
    const nodes = ['system:nodes', 'system:authenticated'];
    const before = flow.levels.get('system')?.current ?? 0;
    for (let i = 0; i < 60; i++) enter('system:node:n1', nodes);
    await clock.advance(10_000);
    expect(flow.levels.get('system')?.current).toBeGreaterThan(before);
    expect(flow.levels.get('workload-low')?.current).toBeLessThan(flow.levels.get('workload-low')?.limits.nominal ?? 0);
    taken();
  });
});

describe('the tables for debugging', () => {
  const rows = (path: string, query = ''): string[][] => {
    const text = dump(`/debug/api_priority_and_fairness/${path}`, new URLSearchParams(query), flow.levels) ?? '';
    return text.split('\n').map((line) => line.split(/, */));
  };
  it('show levels, queues and requests', () => {
    enter('alice');
    taken();
    expect(rows('dump_priority_levels').find(([name]) => name === 'global-default')).toEqual(
      'global-default 0 false false 0 1 1 0 0 0'.split(' '),
    );
    const queues = rows('dump_queues').filter(([name]) => name === 'global-default');
    expect(queues).toHaveLength(128);
    expect(queues.filter(([, , , executing]) => executing === '1')).toHaveLength(1);
    const request = rows('dump_requests', 'includeRequestDetails=1').find(([name]) => name === 'global-default');
    expect(request?.slice(1, 2)).toEqual(['global-default']);
    expect(request?.slice(3)).toEqual(
      '-1|alice|2026-01-01T00:00:00.000000000Z|1|0|0s|2026-01-01T00:00:00.000000000Z|alice|list|/api/v1/namespaces/default/pods|default||v1|pods|'.split(
        '|',
      ),
    );
    expect(dump('/debug/api_priority_and_fairness/x', new URLSearchParams(), flow.levels)).toBeUndefined();
  });
});
