import { describe, expect, it } from 'vitest';
import { RuntimeError } from '../../../../agent/ports/runtime.ts';
import { UnreachableError } from '../../../../client/errors.ts';
import type { Node } from '../../../../client/types.ts';
import { apiError } from '../../../support/fake-client.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { GOOD } from './fixtures.ts';
import { LEASE, NODE, STATUS, start } from './node-server.ts';

describe('NodeAgent', () => {
  it('registers a Node that is Ready at once, and holds its lease', async () => {
    const { client, agent, ready, writes, events, stop, running } = start();
    await settle();
    expect(client.writes[0]).toMatchObject({
      verb: 'create',
      path: '/api/v1/nodes',
      body: { metadata: { name: 'n' } },
    });
    expect(ready()).toMatchObject({ status: 'True', reason: 'KubeletReady' });
    expect([agent.ready, agent.node?.metadata.name]).toEqual([true, 'n']);
    expect(client.objects.get(LEASE)).toMatchObject({
      metadata: { ownerReferences: [{ kind: 'Node', name: 'n', uid: 'uid' }] },
      spec: { holderIdentity: 'n', leaseDurationSeconds: 40 },
    });
    // NodeReady records a change, and this node was always ready.
    expect(events).toEqual(['Starting', 'NodeHasSufficientMemory', 'NodeHasNoDiskPressure', 'NodeHasSufficientPID']);
    expect(writes(LEASE).length).toBe(0);
    stop.abort();
    await running;
  });

  it('renews the lease every 10 s, and writes the status only every 5 min when nothing changes', async () => {
    const { clock, writes } = start();
    await settle();
    const before = writes(STATUS).length;
    await clock.advance(299_000);
    expect(writes(LEASE).length).toBe(29);
    expect(writes(LEASE).at(-1)).toMatchObject({
      verb: 'replace',
      body: { spec: { renewTime: '2026-01-01T00:04:50.000000Z' } },
    });
    expect(writes(STATUS).length).toBe(before);
    await clock.advance(11_000);
    expect(writes(STATUS).length).toBe(before + 1);
  });

  it('reports with its next check when the network stops being ready, and ten seconds later that it is back', async () => {
    const { clock, network, ready, events, logs } = start();
    await clock.advance(60_000);
    network.now = { ok: false, reason: 'NetworkPluginNotReady', message: 'no conflist in /etc/cni/net.d' };
    await clock.advance(10_000);
    expect(ready()).toMatchObject({
      status: 'False',
      reason: 'KubeletNotReady',
      message:
        'container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:no conflist in /etc/cni/net.d',
      lastTransitionTime: '2026-01-01T00:01:10Z',
    });
    network.now = GOOD;
    await clock.advance(9_000);
    expect(ready()?.status).toBe('False');
    await clock.advance(1_000);
    expect(ready()).toMatchObject({ status: 'True', lastTransitionTime: '2026-01-01T00:01:20Z' });
    expect(events.filter((reason) => reason.startsWith('NodeNot') || reason === 'NodeReady')).toEqual([
      'NodeNotReady',
      'NodeReady',
    ]);
    expect(logs).toContain('the node is ready');
  });

  it('reports without waiting for its next check when it is notified of a change', async () => {
    const { clock, network, agent, ready } = start();
    await clock.advance(10_000);
    network.now = { ok: false, reason: 'NetworkPluginNotReady', message: 'gone' };
    await agent.checkNow();
    await settle();
    expect(ready()?.status).toBe('False');
  });

  it('writes a status at most every ten seconds however often it changes, unless a mount waits for it', async () => {
    const { clock, network, agent, writes } = start();
    await clock.advance(60_000);
    const before = writes(STATUS).length;
    const flip = async (): Promise<void> => {
      network.now = network.now.ok ? { ok: false, reason: 'NetworkPluginNotReady', message: 'gone' } : GOOD;
      await agent.checkNow();
      await clock.advance(100);
    };
    await flip();
    expect(writes(STATUS).length).toBe(before + 1);
    for (let count = 0; count < 21; count++) await flip();
    expect(writes(STATUS).length).toBe(before + 1);
    agent.wake(true);
    await settle();
    expect(writes(STATUS).length).toBe(before + 2);
  });

  it('holds nothing back until the node is Ready for the first time', async () => {
    const { clock, runtime, agent, ready } = start({}, new RuntimeError('Status', 'UNAVAILABLE', 'no such file'));
    await clock.advance(500);
    expect(ready()?.status).toBe('False');
    runtime.failure = undefined;
    await agent.checkNow();
    await settle();
    expect(ready()?.status).toBe('True');
  });

  it('forgives a runtime a restart of less than 30 s, says when it is down, and recovers by itself', async () => {
    const { clock, runtime, ready } = start();
    await clock.advance(10_000);
    runtime.failure = new RuntimeError('Status', 'UNAVAILABLE', 'connection refused');
    await clock.advance(29_000);
    expect(ready()?.status).toBe('True');
    await clock.advance(6000);
    expect(ready()).toMatchObject({ status: 'False', message: 'container runtime is down: connection refused' });
    runtime.failure = undefined;
    await clock.advance(10_000);
    expect(ready()?.status).toBe('True');
    // It may be another version now.
    expect(runtime.versions).toBe(2);
  });

  it('starts without a runtime: registered, not ready', async () => {
    const { ready } = start({}, new RuntimeError('Status', 'UNAVAILABLE', 'no such file'));
    await settle();
    expect(ready()).toMatchObject({ status: 'False', message: 'container runtime is down: no such file' });
  });

  it('registers although the runtime hangs, and says that it does not answer', async () => {
    const { clock, runtime, agent, ready } = start({}, undefined, true);
    await settle();
    expect(agent.node).toBeUndefined();
    await clock.advance(2000);
    expect(ready()).toMatchObject({
      status: 'False',
      message: 'container runtime status check may not have completed yet',
    });
    await clock.advance(20_000);
    expect(ready()?.message).toBe('container runtime is down: no answer within 10 s');
    // The question is put once and left open, however often we look.
    expect(runtime.requested).toBe(1);
  });

  it('is NotReady 30 s after the last answer of a runtime that hangs, whichever call it hangs in', async () => {
    const { clock, runtime, ready } = start();
    // A status is due, and the list of images for it is too old.
    await clock.advance(299_000);
    expect(ready()?.status).toBe('True');
    runtime.hangs = true;
    await clock.advance(30_000);
    expect(ready()).toMatchObject({
      status: 'False',
      reason: 'KubeletNotReady',
      message: 'container runtime is down: no answer within 10 s',
    });
  });

  it('is NotReady in the words of a check that fails, says so once however they change, and recovers', async () => {
    const { clock, checks, ready, logs, events } = start();
    await clock.advance(60_000);
    for (let seconds = 1; seconds <= 30; seconds++) {
      checks.PLEG = `PLEG is not healthy: pleg was last seen active 3m${seconds}s ago; threshold is 3m0s`;
      await clock.advance(1000);
    }
    expect(ready()).toMatchObject({ status: 'False', reason: 'KubeletNotReady' });
    expect(ready()?.message).toMatch(/^PLEG is not healthy: pleg was last seen active 3m2\d+s ago; threshold is 3m0s$/);
    expect(logs.filter((line) => line.includes('PLEG'))).toHaveLength(1);
    expect(events.filter((reason) => reason === 'NodeNotReady')).toHaveLength(1);
    checks.PLEG = undefined;
    await clock.advance(12_000);
    expect(ready()?.status).toBe('True');
  });

  it('writes another reason for not being ready with the next status, not at once', async () => {
    const { clock, network, ready, writes } = start();
    await clock.advance(10_500);
    network.now = { ok: false, reason: 'A', message: 'first' };
    await clock.advance(5000);
    const before = writes(STATUS).length;
    network.now = { ok: false, reason: 'A', message: 'second' };
    await clock.advance(2000);
    expect(writes(STATUS).length).toBe(before);
    await clock.advance(10_000);
    expect(ready()?.message).toContain('second');
  });

  it('tries to register for ever while the server is away, with waits that grow to 7 s, and complains once', async () => {
    const { clock, client, agent, logs } = start();
    client.failures.push(...Array.from({ length: 10 }, () => new UnreachableError('refused', 'ECONNREFUSED')));
    await clock.advance(33_600);
    expect(agent.node).toBeUndefined();
    await clock.advance(100);
    expect(agent.node?.metadata.name).toBe('n');
    expect(logs.filter((line) => line.includes('cannot register'))).toEqual(['cannot register node n: refused']);
  });

  it('adopts a Node that exists, and mends its labels', async () => {
    const { client, writes, agent, ready } = start();
    client.failures.push(apiError(409, 'AlreadyExists'));
    client.objects.set(NODE, {
      metadata: { name: 'n', uid: 'old', resourceVersion: '1', labels: { mine: 'yes' } },
    });
    await settle();
    expect(writes(NODE)[0]).toMatchObject({
      verb: 'patch',
      type: 'merge',
      body: { metadata: { labels: { 'kubernetes.io/os': 'linux' } } },
    });
    expect(agent.node?.metadata.uid).toBe('old');
    expect(ready()?.status).toBe('True');
  });

  it('records that the machine was rebooted since the Node was last written', async () => {
    const { clock, client, events } = start();
    await clock.advance(1_000);
    expect(events).not.toContain('Rebooted');
    const node = client.objects.get(NODE) as Node;
    const nodeInfo = { ...node.status?.nodeInfo, bootID: 'an earlier one' };
    client.objects.set(NODE, { ...node, status: { ...node.status, nodeInfo } } as Node);
    await clock.advance(20_000);
    expect(events.filter((reason) => reason === 'Rebooted')).toHaveLength(1);
  });

  it('records that the node was cordoned and uncordoned, once each', async () => {
    const { clock, client, events } = start();
    const cordon = (unschedulable: boolean): void => {
      const node = client.objects.get(NODE) as Node;
      client.objects.set(NODE, { ...node, spec: { ...node.spec, unschedulable } });
    };
    const seen = (): readonly string[] => events.filter((reason) => reason.endsWith('Schedulable'));
    await clock.advance(11_000);
    expect(seen()).toEqual([]);
    cordon(true);
    await clock.advance(30_000);
    expect(seen()).toEqual(['NodeNotSchedulable']);
    cordon(false);
    await clock.advance(30_000);
    expect(seen()).toEqual(['NodeNotSchedulable', 'NodeSchedulable']);
  });

  it('does not register with registerNode false, but serves a Node that someone makes', async () => {
    const { clock, client, agent, logs, writes } = start({ registerNode: false });
    await clock.advance(30_000);
    expect([client.writes, agent.node]).toEqual([[], undefined]);
    expect(logs.filter((line) => line.includes('there is no Node n')).length).toBe(1);
    client.objects.set(NODE, { metadata: { name: 'n', uid: 'made', resourceVersion: '1' } });
    await clock.advance(10_000);
    expect(writes(STATUS).length).toBe(1);
    expect(client.objects.get(LEASE)).toBeDefined();
  });

  it('sets right what others have written into its conditions', async () => {
    const { clock, client, ready } = start();
    await settle();
    const node = client.objects.get(NODE) as Node;
    const conditions = node.status?.conditions?.map((condition) => ({ ...condition, status: 'Unknown' })) ?? [];
    client.objects.set(NODE, { ...node, status: { ...node.status, conditions } });
    await clock.advance(10_000);
    expect(ready()?.status).toBe('True');
  });

  it.each([
    ['fails', false],
    ['hangs', true],
  ])(
    'is Ready again with its next lease after a time without the server, in which its status %s',
    async (_how, hangs) => {
      const { clock, client, ready } = start();
      await clock.advance(59_000);
      const get = client.get.bind(client);
      const away = new UnreachableError('no route to host', 'EHOSTUNREACH');
      const hanging = (signal?: AbortSignal): Promise<never> =>
        new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
      client.get = (path, _query, options) =>
        hangs && path === NODE ? hanging(options?.signal) : Promise.reject(away);
      client.replace = () => Promise.reject(away);
      await clock.advance(60_000);
      const node = client.objects.get(NODE) as Node;
      const conditions = node.status?.conditions?.map((condition) => ({ ...condition, status: 'Unknown' })) ?? [];
      client.objects.set(NODE, { ...node, status: { ...node.status, conditions } });
      client.get = get;
      client.replace = (path, body) => client.patch(path, body, 'merge');
      const renewed = () => client.writes.some(({ path }) => path === LEASE);
      client.writes.length = 0;
      while (!renewed()) await clock.advance(100);
      expect(ready()?.status).toBe('True');
    },
  );

  it('makes its lease again when someone deletes or changes it', async () => {
    const { clock, client, writes } = start();
    await settle();
    client.objects.delete(LEASE);
    const answer = client.onWrite;
    client.onWrite = (write) => {
      if (write.path === LEASE && !client.objects.has(LEASE)) throw apiError(404, 'NotFound');
      return answer(write);
    };
    await clock.advance(10_000);
    expect(client.objects.get(LEASE)).toBeDefined();
    let conflicts = 1;
    client.onWrite = (write) => {
      if (write.path === LEASE && conflicts-- > 0) throw apiError(409, 'Conflict');
      return answer(write);
    };
    const before = writes(LEASE).length;
    await clock.advance(10_000);
    expect(writes(LEASE).length).toBe(before + 2);
  });

  it('retries a lease that cannot be written sooner than its next turn, and says so once', async () => {
    const { clock, client, logs } = start();
    await settle();
    const answer = client.onWrite;
    client.onWrite = (write) => {
      if (write.path === LEASE) throw new UnreachableError('refused', 'ECONNREFUSED');
      return answer(write);
    };
    await clock.advance(15_000);
    expect(client.writes.filter(({ path }) => path === LEASE).length).toBeGreaterThan(3);
    client.onWrite = answer;
    await clock.advance(10_000);
    expect(logs.filter((line) => line.includes('lease'))).toEqual([
      "cannot renew the node's lease: refused",
      "the node's lease is renewed again",
    ]);
  });
});
