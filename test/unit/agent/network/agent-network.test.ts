import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createAgentNetwork } from '../../../../agent/network/agent-network.ts';
import type { AgentNetwork } from '../../../../agent/network/options.ts';
import { createRuntimeNetwork } from '../../../../agent/network/runtime-network.ts';
import type { SandboxId } from '../../../../agent/ports/runtime.ts';
import { type Clock, epochMs, systemClock } from '../../../../lib/clock.ts';
import { Tracer } from '../../../../lib/trace.ts';
import { exhaustInotify } from '../../../support/no-inotify.ts';
import { answer, chainOf, type FakeHost, type FakePlugin, fails, fakeHost, pod } from '../../cni/fake-plugins.ts';

let host: FakeHost;
let network: AgentNetwork;
let confDir: string;
let changes: (() => void)[];
let now: number;
let uplink: boolean;
const errors: string[] = [];
const clock: Clock = { ...systemClock, now: () => epochMs(now) };
const plugin: FakePlugin = (call) => {
  if (call.command === 'ADD') return answer('10.0.0.2/24');
  return call.command === 'STATUS' && !uplink ? fails(50, 'no uplink') : undefined;
};
const CONF = JSON.stringify({ cniVersion: '1.1.0', name: 'net', plugins: [{ type: 'one' }] });

beforeEach(async () => {
  host = await fakeHost({ one: plugin });
  confDir = join(host.dir, 'etc', 'cni', 'net.d');
  changes = [];
  now = 1_000_000;
  uplink = true;
  errors.length = 0;
  network = makeNetwork();
});
afterEach(async () => {
  await network.close();
  await rm(host.dir, { recursive: true, force: true });
});

function makeNetwork(): AgentNetwork {
  return createAgentNetwork({
    confDir,
    binDirs: [host.binDir],
    cacheDir: host.cacheDir,
    socketPath: join(host.dir, 'cni.sock'),
    tracer: new Tracer(),
    clock,
    exec: host.exec,
    onStatusChange: () => {
      for (const waiter of changes.splice(0)) waiter();
    },
    onError: (what, error) => errors.push(`${what}: ${error}`),
  });
}

/** Does something to the conf dir and waits until the agent has the inotify event. */
async function andHeard(change: () => Promise<unknown>): Promise<void> {
  const heard = new Promise<void>((resolve) => changes.push(resolve));
  await change();
  await heard;
}
/** Whole at once: half of it would be another change. */
const put = async (content: string, name = '10-net.conflist'): Promise<void> => {
  await writeFile(join(host.dir, 'new'), content);
  await rename(join(host.dir, 'new'), join(confDir, name));
};

describe('the status follows the conf dir', () => {
  it('from a directory that does not exist to a network, to a broken one, to none', async () => {
    await network.start();
    expect(await network.status()).toEqual({
      ok: false,
      reason: 'NetworkPluginNotReady',
      message: `Network plugin returns error: cni plugin not initialized: no network config found in ${confDir}`,
    });
    await andHeard(async () => {
      await mkdir(confDir, { recursive: true });
      await put(CONF);
    });
    expect(await network.status()).toEqual({ ok: true, reason: '', message: '' });
    await andHeard(() => put('{"cniVersion":"1.0.0","name":"net","plugins":[{}]}'));
    expect(await network.status()).toMatchObject({
      ok: false,
      message: `Network plugin returns error: cni plugin not initialized: ${confDir}/10-net.conflist: plugins[0].type: missing`,
    });
    await andHeard(() => rm(join(confDir, '10-net.conflist')));
    expect((await network.status()).message).toContain('no network config found');
  });

  it('also when the directory is replaced by another of the same name', async () => {
    await mkdir(confDir, { recursive: true });
    await put(CONF);
    await network.start();
    await andHeard(() => rename(confDir, `${confDir}.old`));
    expect((await network.status()).ok).toBe(false);
    await andHeard(async () => {
      await mkdir(confDir);
      await put(CONF);
    });
    expect((await network.status()).ok).toBe(true);
    await andHeard(() => put('{'));
    expect((await network.status()).ok).toBe(false);
  });

  it("also when only a plugin in the network's own directory changes", async () => {
    await mkdir(join(confDir, 'net'), { recursive: true });
    await put(CONF);
    await network.start();
    await andHeard(() => put('{"type":"two"}', 'net/20-two.conf'));
    expect((await network.status()).message).toContain('failed to find plugin "two"');
  });

  it('also where the machine has no inotify watch left', async () => {
    const inotify = exhaustInotify('EMFILE');
    await network.start();
    await andHeard(async () => {
      await mkdir(confDir, { recursive: true });
      await put(CONF);
      await put('{', '00-broken.conflist');
    });
    expect((await network.status()).ok).toBe(true);
    await andHeard(() => rm(join(confDir, '10-net.conflist')));
    expect((await network.status()).ok).toBe(false);
    expect(errors.filter((line) => line.includes('changes are seen late')).length).toBeGreaterThan(0);
    expect(errors.filter((line) => line.includes('skipped')).length).toBeLessThan(2);
    inotify.free();
  });

  it('and names what the plugins say, and binaries that are missing', async () => {
    await mkdir(confDir, { recursive: true });
    await put(CONF);
    await network.start();
    uplink = false;
    expect((await network.status()).message).toBe(
      `Network plugin returns error: ${confDir}/10-net.conflist: plugin type="one" failed (status): no uplink`,
    );
    await rm(join(host.binDir, 'one'));
    expect((await network.status()).message).toContain(`failed to find plugin "one" in path [${host.binDir}]`);
  });

  it('is not ready while nothing listens on the socket', async () => {
    await mkdir(confDir, { recursive: true });
    await put(CONF);
    await network.start();
    await network.close();
    expect((await network.status()).message).toContain('nothing listens on the CNI socket');
  });

  it('reports a broken file that is skipped for a good one', async () => {
    await mkdir(confDir, { recursive: true });
    await put('{', '00-broken.conflist');
    await put(CONF);
    await network.start();
    expect((await network.status()).ok).toBe(true);
    expect(errors.join()).toContain('00-broken.conflist: is not JSON');
  });
});

describe('garbage collection', () => {
  const list = chainOf('1.1.0', 'one');
  const attach = async (containerId: string, netns: string): Promise<void> => {
    await host.runtime({ clock }).add(list, pod({ containerId, netns }));
  };
  const deleted = (): (string | undefined)[] =>
    host.calls.filter((call) => call.command === 'DEL').map((call) => call.env['CNI_CONTAINERID']);
  beforeEach(async () => {
    await mkdir(confDir, { recursive: true });
    await put(CONF);
  });

  it('happens on start when the sandboxes can be listed', async () => {
    await attach('gone', '/gone');
    await network.start(async () => []);
    while (!host.names().includes('GC one')) await new Promise(setImmediate);
    expect(deleted()).toEqual(['gone']);
    expect(await network.interfaces('gone' as SandboxId)).toEqual([]);
  });

  it('reports what failed, and shows the attachments that remain', async () => {
    await attach('gone', '/gone');
    await rm(join(host.binDir, 'one'));
    await network.start(async () => []);
    while (errors.length === 0) await new Promise(setImmediate);
    expect(errors.join()).toMatch(/could not free everything: .*failed to find plugin "one"/);
    expect(await network.interfaces('gone' as SandboxId)).toMatchObject([{ name: 'eth0', addresses: ['10.0.0.2/24'] }]);
    expect(await network.result('gone' as SandboxId)).toMatchObject({ ips: [{ address: '10.0.0.2/24' }] });
  });
});

it('--network=runtime is what the runtime says of itself, and nothing else', async () => {
  const networkReady = { ok: false, reason: 'NetworkPluginNotReady', message: 'cni plugin not initialized' };
  const port = createRuntimeNetwork({ runtime: { status: async () => ({ networkReady }) } });
  expect(await port.status()).toEqual(networkReady);
  expect(await port.interfaces('x' as SandboxId)).toEqual([]);
});
