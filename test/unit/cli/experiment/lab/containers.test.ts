// The lives of containers as an experiment on a lab observes them: tables of events and lists, and the watch of a runtime that has
// events, has none, or goes away.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { RuntimeEvent } from '../../../../../agent/runtime/events/runtime-event.ts';
import {
  type ContainerChange,
  ContainerLives,
  type ContainerState,
  containerOfCall,
  type NamedContainer,
} from '../../../../../cli/experiment/lab/container-lives.ts';
import { ContainerWatch } from '../../../../../cli/experiment/lab/containers.ts';
import { epochMs, systemClock } from '../../../../../lib/clock.ts';
import type { Span } from '../../../../../lib/trace.ts';
import { loadProto } from '../../../../../proto/load.ts';
import { FakeCri } from '../../../agent/runtime/fake-cri.ts';

const LISTED_AT = epochMs(99);

const state = (given: Partial<ContainerState>): ContainerState => ({
  id: 'c1',
  pod: 'demo/web',
  podUid: 'u',
  container: 'main',
  attempt: 0,
  createdAt: epochMs(10),
  startedAt: epochMs(0),
  finishedAt: epochMs(0),
  exitCode: 0,
  reason: '',
  ...given,
});
const created = state({});
const running = state({ startedAt: epochMs(20) });
const exited = state({ startedAt: epochMs(20), finishedAt: epochMs(30), exitCode: 137, reason: 'OOMKilled' });
const event = (kind: RuntimeEvent['kind'], at: number, exitCode?: number): RuntimeEvent => ({
  kind,
  id: 'c1',
  at: epochMs(at),
  ...(exitCode === undefined ? {} : { exitCode }),
});
type Source = RuntimeEvent | NamedContainer | readonly ContainerState[];
const named: NamedContainer = {
  id: 'c1',
  pod: 'demo/web',
  podUid: 'u',
  container: 'main',
  attempt: 0,
  createdAt: epochMs(12),
};

/** What each of them shows, one after the other. */
function shown(...sources: readonly Source[]): ContainerChange[] {
  const lives = new ContainerLives();
  return sources.flatMap((source) =>
    'kind' in source
      ? lives.event(source)
      : 'id' in source
        ? lives.named(source)
        : lives.listed(new Map(source.map((each) => [each.id, each])), LISTED_AT),
  );
}
const texts = (...sources: readonly Source[]) =>
  shown(...sources).map(({ change, at, exitCode, reason }) =>
    [change, at, ...(exitCode === undefined ? [] : [exitCode, reason])].join(' '),
  );

describe('by lists alone', () => {
  test.each<readonly [string, readonly Source[], readonly string[]]>([
    ['nothing new', [[running], [running]], ['created 10', 'started 20']],
    ['one that has started since', [[created], [running]], ['created 10', 'started 20']],
    [
      'one that was created, started and ended between two',
      [[exited]],
      ['created 10', 'started 20', 'exited 30 137 OOMKilled'],
    ],
    [
      'one that never started',
      [[created], [state({ finishedAt: epochMs(30), exitCode: 128, reason: 'StartError' })]],
      ['created 10', 'exited 30 128 StartError'],
    ],
    ['one that is gone', [[exited], []], ['created 10', 'started 20', 'exited 30 137 OOMKilled', 'removed 99']],
    ['one whose end was between two', [[running], []], ['created 10', 'started 20', 'removed 99']],
    [
      'several, by their moments',
      [[running], [state({ id: 'c2', attempt: 1, createdAt: epochMs(40), startedAt: epochMs(41) })]],
      ['created 10', 'started 20', 'created 40', 'started 41', 'removed 99'],
    ],
  ])('%s', (_, sources, expected) => {
    expect(texts(...sources)).toEqual(expected);
  });
});

describe('by events, which have the moments, and lists, which have the names', () => {
  test.each<readonly [string, readonly Source[], readonly string[]]>([
    [
      'an end between two lists',
      [[running], event('exited', 31, 3), event('removed', 35), []],
      ['created 10', 'started 20', 'exited 31 3 Error', 'removed 35'],
    ],
    ['what ends well', [[running], event('exited', 31, 0)], ['created 10', 'started 20', 'exited 31 0 Completed']],
    [
      'what is killed for memory',
      [[running], event('oom', 30), event('exited', 31, 137)],
      ['created 10', 'started 20', 'exited 31 137 OOMKilled'],
    ],
    [
      'a status that does not have the end yet',
      [[running], event('exited', 31, 3), [running], [exited]],
      ['created 10', 'started 20', 'exited 31 3 Error'],
    ],
    [
      'a status that has it first',
      [[running], [exited], event('exited', 30, 137)],
      ['created 10', 'started 20', 'exited 30 137 OOMKilled'],
    ],
    [
      'a start that the status does not have yet',
      [[created], event('started', 21), [created], [running]],
      ['created 10', 'started 21'],
    ],
    [
      'all of it before the first list',
      [event('started', 21), event('exited', 31, 1), [running]],
      ['created 10', 'started 20', 'exited 31 1 Error'],
    ],
    [
      'gone while the first list with it is read',
      [event('started', 21), event('exited', 31, 1), event('removed', 40), [running], []],
      ['created 10', 'started 20', 'exited 31 1 Error', 'removed 40'],
    ],
    [
      'gone, and no list has ever had it: the agent’s call names it',
      [event('started', 21), event('exited', 31, 1), event('removed', 40), [], named, named, []],
      ['created 12', 'started 21', 'exited 31 1 Error', 'removed 40'],
    ],
    ['named before it has gone: a list has it', [event('started', 21), named, [running]], ['created 10', 'started 20']],
    [
      'named, and gone before a list has it',
      [event('started', 21), named, [], event('exited', 31, 1), event('removed', 40), []],
      ['created 12', 'started 21', 'exited 31 1 Error', 'removed 40'],
    ],
    ['named, and in a list', [[running], named], ['created 10', 'started 20']],
    ['gone, and nothing names it', [event('started', 21), event('removed', 40), []], []],
    [
      'gone, and in a list that was under way',
      [[running], event('exited', 31, 3), event('removed', 40), [running], []],
      ['created 10', 'started 20', 'exited 31 3 Error', 'removed 40'],
    ],
    [
      'the removal before the exit',
      [[running], event('removed', 40), event('exited', 31, 3)],
      ['created 10', 'started 20', 'exited 31 3 Error', 'removed 40'],
    ],
    [
      'a removal whose exit does not come',
      [[running], event('removed', 40), []],
      ['created 10', 'started 20', 'removed 40'],
    ],
    [
      'a start that failed, of which containerd tells an exit',
      [[created], event('exited', 22, 255), [state({ finishedAt: epochMs(23), exitCode: 128, reason: 'StartError' })]],
      ['created 10', 'exited 23 128 StartError'],
    ],
    ['one that was never started', [[created], event('removed', 40)], ['created 10', 'removed 40']],
  ])('%s', (_, sources, expected) => {
    expect(texts(...sources)).toEqual(expected);
  });

  test('each change names pod, container and attempt; a reason is there where the runtime has one', () => {
    expect(shown([running], [exited]).at(-1)).toEqual({
      type: 'container',
      change: 'exited',
      pod: 'demo/web',
      container: 'main',
      attempt: 0,
      at: 30,
      exitCode: 137,
      reason: 'OOMKilled',
    });
    expect(shown([{ ...exited, reason: '' }]).at(-1)).not.toHaveProperty('reason');
  });
});

test.each<readonly [string, Partial<Span>, Partial<NamedContainer> | undefined]>([
  [
    'of the agent',
    { attributes: { container: 'c1', containerName: 'main', attempt: 2 } },
    { id: 'c1', container: 'main', attempt: 2 },
  ],
  [
    'of a tap',
    { name: 'CreateContainer', attributes: { id: 'c1', container: 'main', attempt: '1' } },
    { id: 'c1', attempt: 1 },
  ],
  ['the agent’s, which has no id yet', { name: 'CreateContainer', attributes: { container: 'main' } }, undefined],
  [
    'one that failed',
    { outcome: 'error', attributes: { container: 'c1', containerName: 'main', attempt: 2 } },
    undefined,
  ],
  ['another', { name: 'StopContainer', attributes: { container: 'c1', containerName: 'main', attempt: 2 } }, undefined],
])('a call that names a container: %s', (_, change, expected) => {
  const pod = { namespace: 'demo', name: 'web', uid: 'u' };
  const span: Span = {
    id: 1,
    kind: 'cri',
    name: 'StartContainer',
    pod,
    start: epochMs(5),
    durationMs: 3,
    outcome: 'ok',
    attributes: {},
    ...change,
  };
  const found = containerOfCall(span);
  if (expected === undefined) expect(found).toBeUndefined();
  else expect(found).toMatchObject({ pod: 'demo/web', podUid: 'u', createdAt: 5, ...expected });
});

describe('the watch of a runtime', () => {
  const types = loadProto('containerd-tasks').containerd.events;
  let cri: FakeCri;
  let watch: ContainerWatch;
  let changes: string[];
  let over: AbortController;
  let following: Promise<void>;

  const start = async (containerd: boolean): Promise<void> => {
    cri = await FakeCri.start({ cri: false, containerd });
    cri.addSandbox('s1', 'u');
    cri.addContainer('c1', 'u', 's1');
    watch = ContainerWatch.at(cri.socket);
    const add = (more: readonly ContainerChange[]): void => {
      changes.push(
        ...more.map(({ change, attempt, at, exitCode }) => `${change} ${attempt} ${at} ${exitCode ?? ''}`.trim()),
      );
    };
    let looking: Promise<void> = Promise.resolve();
    const look = (): Promise<void> => {
      looking = looking.then(async () => add((await watch.look(systemClock)) ?? []));
      return looking;
    };
    const onUnknown = (): void => void look();
    following = watch.follow({ clock: systemClock, onChanges: add, onUnknown, look, signal: over.signal });
  };
  const publish = (name: 'TaskStart' | 'TaskExit' | 'ContainerDelete', value: Buffer, ms = 5_000): void => {
    const timestamp = { seconds: String(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1e6 };
    for (const stream of cri.streams.containerd)
      stream.write({
        timestamp,
        namespace: 'k8s.io',
        topic: '/x',
        event: { type_url: `containerd.events.${name}`, value },
      });
  };
  const exit = (id: string, ms: number): void =>
    publish('TaskExit', types.TaskExit.serialize({ container_id: id, id, exit_status: 7 }), ms);
  const remove = (id: string, ms: number): void => {
    cri.containers.delete(id);
    publish('ContainerDelete', types.ContainerDelete.serialize({ id }), ms);
  };
  const seen = (...expected: readonly string[]): Promise<void> => vi.waitFor(() => expect(changes).toEqual(expected));
  const first = ['created 0 2000', 'started 0 3000'];

  beforeEach(() => {
    changes = [];
    over = new AbortController();
  });
  afterEach(async () => {
    over.abort();
    await following;
    watch.close();
    await cri.stop();
  });

  test('has each end with its moment, with no list read for it', async () => {
    await start(true);
    await seen(...first);
    const lists = cri.calls.length;
    exit('c1', 4_321);
    remove('c1', 4_400);
    await seen(...first, 'exited 0 4321 7', 'removed 0 4400');
    expect(cri.calls).toHaveLength(lists);
  });

  test('looks for one that it hears of for the first time', async () => {
    await start(true);
    await seen(...first);
    cri.addContainer('c2', 'u', 's1', { metadata: { name: 'main', attempt: 1 } });
    publish('TaskStart', types.TaskStart.serialize({ container_id: 'c2' }));
    await seen(...first, 'created 1 2000', 'started 1 3000');
  });

  test('a list that is without a container waits for what its events have', async () => {
    await start(true);
    await seen(...first);
    cri.containers.delete('c1');
    const looked = watch.look(systemClock);
    await vi.waitFor(() => expect(cri.calls.filter((name) => name === 'ListContainers').length).toBeGreaterThan(1));
    exit('c1', 4_321);
    remove('c1', 4_400);
    expect(await looked).toEqual([]);
    expect(changes).toEqual([...first, 'exited 0 4321 7', 'removed 0 4400']);
  });

  test('after a restart of the runtime it has what still shows, and then events again', async () => {
    await start(true);
    await seen(...first);
    cri.addContainer('c2', 'u', 's1', { metadata: { name: 'main', attempt: 1 } });
    await cri.crash();
    cri.containers.delete('c1');
    await cri.listen();
    await vi.waitFor(() =>
      expect(changes.slice(2)).toEqual(['created 1 2000', 'started 1 3000', expect.stringMatching(/^removed 0 /)]),
    );
    await vi.waitFor(() => expect(cri.streams.containerd).toHaveLength(1));
    exit('c2', 6_000);
    await vi.waitFor(() => expect(changes.at(-1)).toBe('exited 1 6000 7'));
  });

  test('without events, lists are read again and again', async () => {
    await start(false);
    await seen(...first);
    cri.set('c1', { state: 'CONTAINER_EXITED', exit_code: 3, finished_at: '4000000000' });
    await seen(...first, 'exited 0 4000 3');
  });
});
