// Leader election: what to do about a lease, as a table, and processes that take turns without ever working at once.

import { describe, expect, it } from 'vitest';
import type { RequestOptions } from '../../../client/api.ts';
import {
  decideElection,
  LEADER_ELECTION_DEFAULTS,
  LeaderElector,
  type ObservedLease,
} from '../../../client/leader-election.ts';
import type { Lease } from '../../../client/types.ts';
import { abortable } from '../../../lib/abort.ts';
import { epochMs, monotonicMs } from '../../../lib/clock.ts';
import { apiError } from '../../support/fake-client.ts';
import { settle, VirtualClock } from '../../support/virtual-clock.ts';

const NOW = epochMs(1_750_000_000_000);
const lease = (spec: Lease['spec']): Lease => ({
  metadata: { name: 'l', namespace: 'kube-system', uid: 'u', resourceVersion: '1' },
  ...(spec === undefined ? {} : { spec }),
});
const seen = (spec: Lease['spec'], ageMs: number): ObservedLease => ({
  lease: lease(spec),
  since: monotonicMs(100_000 - ageMs),
});
const OTHER = { holderIdentity: 'b', leaseDurationSeconds: 15, leaseTransitions: 4, acquireTime: 'long ago' };

describe('a lease', () => {
  it.each<[string, ObservedLease | undefined, object]>([
    ['that is not there is created', undefined, { holderIdentity: 'a', leaseTransitions: 0, leaseDurationSeconds: 15 }],
    ['of another process is waited for', seen(OTHER, 14_999), { holder: 'b' }],
    [
      'that nobody renewed for as long as it says is taken',
      seen(OTHER, 15_000),
      { holderIdentity: 'a', leaseTransitions: 5 },
    ],
    [
      'that was given up is taken',
      seen({ ...OTHER, holderIdentity: '' }, 0),
      { holderIdentity: 'a', leaseTransitions: 5 },
    ],
    ['without a spec is taken', seen(undefined, 0), { holderIdentity: 'a', leaseTransitions: 1 }],
    [
      'of this process is renewed',
      seen({ ...OTHER, holderIdentity: 'a' }, 0),
      { holderIdentity: 'a', leaseTransitions: 4, acquireTime: 'long ago', renewTime: '2025-06-15T15:06:40.000000Z' },
    ],
  ])('%s', (_, observed, expected) => {
    const election = decideElection(observed, 'a', 15_000, NOW, monotonicMs(100_000));
    expect(election.kind === 'wait' ? election : election.spec).toMatchObject(expected);
  });
});

/** One lease that all processes share; `isAway` for a process that does not reach the server. */
class Server {
  stored: Lease | undefined;
  #version = 1;
  writes = 0;
  /** Writes are answered when it resolves. */
  answering = Promise.resolve();

  client(isAway: () => boolean) {
    const reach = (): void => {
      if (isAway()) throw new Error('connect ECONNREFUSED');
    };
    const store = (body: unknown): Lease => {
      this.writes++;
      const { spec } = body as Lease;
      const metadata = { name: 'l', namespace: 'kube-system', uid: 'u', resourceVersion: String(++this.#version) };
      this.stored = { metadata, ...(spec === undefined ? {} : { spec }) };
      return structuredClone(this.stored);
    };
    return {
      get: async <T>(): Promise<T> => {
        reach();
        if (this.stored === undefined) throw apiError(404, 'NotFound');
        return structuredClone(this.stored) as T;
      },
      create: async <T>(_path: string, body: unknown): Promise<T> => {
        reach();
        if (this.stored !== undefined) throw apiError(409, 'AlreadyExists');
        return store(body) as T;
      },
      replace: async <T>(_path: string, body: unknown, { signal }: RequestOptions = {}): Promise<T> => {
        reach();
        if ((body as Lease).metadata.resourceVersion !== this.stored?.metadata.resourceVersion)
          throw apiError(409, 'Conflict');
        const stored = store(body) as T;
        await (signal === undefined ? this.answering : abortable(this.answering, signal));
        return stored;
      },
    };
  }
}

function processes(...names: readonly string[]) {
  const clock = new VirtualClock();
  const server = new Server();
  const working = new Set<string>();
  const history: string[] = [];
  const all = names.map((identity) => {
    const one = { identity, isAway: false, stop: new AbortController(), ended: Promise.resolve() };
    const elector = new LeaderElector({
      ...LEADER_ELECTION_DEFAULTS,
      client: server.client(() => one.isAway),
      clock,
      random: () => 0.5,
      namespace: 'kube-system',
      name: 'l',
      identity,
      log: () => undefined,
      onLeading: () => void history.push(identity),
    });
    const run = async (): Promise<void> => {
      await elector.acquire(one.stop.signal);
      if (one.stop.signal.aborted) return;
      working.add(identity);
      expect([...working]).toEqual([identity]);
      await elector.renew(one.stop.signal).finally(() => working.delete(identity));
    };
    one.ended = run().catch((error: unknown) => void history.push(`${identity}: ${String(error)}`));
    return one;
  });
  return { clock, server, working, history, all };
}

describe('processes', () => {
  it('work one at a time; the next one follows a holder that vanishes', async () => {
    const { clock, working, history, all } = processes('a', 'b');
    await settle();
    await clock.advance(60_000);
    expect([...working]).toEqual(['a']);
    const [a] = all;
    if (a === undefined) throw new Error('no process');
    a.isAway = true;
    // It stops before the other one may begin.
    await clock.advance(12_000);
    expect([...working]).toEqual([]);
    await clock.advance(8000);
    expect([...working]).toEqual(['b']);
    expect(history).toEqual(['a', 'a: Error: leader election lost: l is held by "a"', 'b']);
  });

  it('hand over at once where the holder ends orderly', async () => {
    const { clock, server, working, all } = processes('a', 'b');
    await settle();
    await clock.advance(10_000);
    all[0]?.stop.abort();
    await settle();
    // The server refuses an empty one.
    expect(server.stored?.spec).not.toHaveProperty('holderIdentity');
    expect(server.stored?.spec?.leaseDurationSeconds).toBe(1);
    await clock.advance(4000);
    expect([...working]).toEqual(['b']);
    expect(server.stored?.spec?.leaseTransitions).toBe(1);
  });

  it('hand over at once where the holder ends during a renewal that was written without an answer', async () => {
    const { clock, server, working, all } = processes('a', 'b');
    await settle();
    const before = server.writes;
    const answer = Promise.withResolvers<void>();
    server.answering = answer.promise;
    await clock.advance(2000);
    expect(server.writes - before).toBe(1);
    all[0]?.stop.abort();
    answer.resolve();
    await clock.advance(5000);
    expect([...working]).toEqual(['b']);
  });

  it.each([-3_600_000, 3_600_000])(
    'neither lose nor keep a lease by a wall clock that jumps by %i ms',
    async (jump) => {
      const { clock, working, history, all } = processes('a', 'b');
      await settle();
      await clock.advance(10_000);
      clock.jump(jump);
      await clock.advance(60_000);
      expect(history).toEqual(['a']);
      const [a] = all;
      if (a === undefined) throw new Error('no process');
      a.isAway = true;
      clock.jump(jump);
      await clock.advance(20_000);
      expect([...working]).toEqual(['b']);
    },
  );

  it('renew with one request every two seconds', async () => {
    const { clock, server } = processes('a');
    await settle();
    const before = server.writes;
    await clock.advance(20_000);
    expect(server.writes - before).toBe(10);
  });

  it('stop when another one has taken the lease', async () => {
    const { clock, server, working, history } = processes('a');
    await settle();
    const taken = lease({ holderIdentity: 'c', leaseDurationSeconds: 15 });
    server.stored = { ...taken, metadata: { ...taken.metadata, resourceVersion: '77' } };
    await clock.advance(4000);
    expect([...working]).toEqual([]);
    expect(history.at(-1)).toContain('held by "c"');
  });
});
