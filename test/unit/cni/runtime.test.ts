import { readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { answerOf } from '../../../cni/invoke.ts';
import { CniError } from '../../../cni/types.ts';
import { temporaryOf } from '../../../lib/atomic.ts';
import type { Exec, ExecResult } from '../../../lib/exec.ts';
import { type Span, Tracer } from '../../../lib/trace.ts';
import { answer, chainOf, type FakeHost, type FakePlugin, fails, fakeHost, pod } from './fake-plugins.ts';

let host: FakeHost;
const setUp = async (plugins: Readonly<Record<string, FakePlugin>>): Promise<FakeHost> => {
  host = await fakeHost(plugins);
  return host;
};
afterEach(() => rm(host.dir, { recursive: true, force: true }));
const onAdd =
  (result: ReturnType<FakePlugin>): FakePlugin =>
  (call) =>
    call.command === 'ADD' ? result : undefined;

describe('ADD', () => {
  it('runs the chain in order, each plugin with the result of the one before in the version of the conflist', async () => {
    await setUp({
      one: onAdd({ cniVersion: '1.0.0', ips: [{ address: '10.0.0.2/24' }] }),
      two: onAdd(answer('10.0.0.3/24')),
    });
    const result = await host.runtime().add(chainOf('0.4.0', 'one', 'two'), pod());
    expect(host.names()).toEqual(['ADD one', 'ADD two']);
    expect(host.calls[0]?.netconf).toEqual({ type: 'one', name: 'net', cniVersion: '0.4.0' });
    expect(host.calls[1]?.netconf['prevResult']).toEqual({
      cniVersion: '0.4.0',
      ips: [{ version: '4', address: '10.0.0.2/24' }],
      dns: {},
    });
    expect(result.ips).toEqual([{ address: '10.0.0.3/24' }]);
  });

  it('gives plugins the environment of the specification, and nothing of CNI that was in its own', async () => {
    process.env['CNI_STRAY'] = 'x';
    await setUp({ one: onAdd(answer('10.0.0.2/24')) });
    await host.runtime({ binDirs: ['/nonexistent', host.binDir] }).add(chainOf('1.0.0', 'one'), pod());
    delete process.env['CNI_STRAY'];
    const env = host.calls[0]?.env ?? {};
    expect(Object.fromEntries(Object.entries(env).filter(([name]) => name.startsWith('CNI_')))).toEqual({
      CNI_COMMAND: 'ADD',
      CNI_CONTAINERID: 'c1',
      CNI_NETNS: '/proc/self/ns/net',
      CNI_IFNAME: 'eth0',
      CNI_ARGS: pod().args,
      CNI_PATH: `/nonexistent:${host.binDir}`,
    });
    expect(env['PATH']).toBe(process.env['PATH']);
  });

  it('gives each plugin the capability arguments that it declares, and takes the declaration away', async () => {
    await setUp({ one: onAdd(answer('10.0.0.2/24')), two: onAdd(answer('10.0.0.2/24')) });
    const list = chainOf(
      '1.0.0',
      { type: 'one', capabilities: { portMappings: true, dns: false } },
      { type: 'two', mtu: 9 },
    );
    const portMappings = [{ hostPort: 80, containerPort: 80, protocol: 'tcp' }];
    const annotations = { a: 'b' };
    const capabilityArgs = { portMappings, dns: { servers: [] }, 'io.kubernetes.cri.pod-annotations': annotations };
    await host.runtime().add(list, pod({ capabilityArgs }));
    expect(host.calls[0]?.netconf).toEqual({
      type: 'one',
      name: 'net',
      cniVersion: '1.0.0',
      runtimeConfig: { portMappings },
    });
    expect(host.calls[1]?.netconf).toMatchObject({ type: 'two', mtu: 9 });
    expect(host.calls[1]?.netconf).not.toHaveProperty('runtimeConfig');
  });

  it('undoes in reverse what ran when a plugin fails, with the result so far, and rejects with its error', async () => {
    await setUp({ one: onAdd(answer('10.0.0.2/24')), two: onAdd(fails(101, 'two is broken')), three: () => undefined });
    const failure = await host
      .runtime()
      .add(chainOf('1.0.0', 'one', 'two', 'three'), pod())
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 101, plugin: 'two', command: 'ADD', msg: 'two is broken' });
    expect(host.names()).toEqual(['ADD one', 'ADD two', 'DEL two', 'DEL one']);
    expect(host.calls[2]?.netconf['prevResult']).toMatchObject({ ips: [{ address: '10.0.0.2/24' }] });
    expect(await readdir(join(host.cacheDir, 'attachments'))).toEqual([]);
  });

  it('forgets an attachment whose only trouble is that the plugin that failed cannot clean up either', async () => {
    await setUp({ one: onAdd(answer('10.0.0.2/24')), two: () => fails(100, 'never works') });
    const runtime = host.runtime();
    const list = chainOf('1.0.0', 'one', 'two');
    await expect(runtime.add(list, pod())).rejects.toThrow('plugin type="two" failed (add): never works');
    expect(host.names()).toEqual(['ADD one', 'ADD two', 'DEL two', 'DEL one']);
    expect(await readdir(join(host.cacheDir, 'attachments'))).toEqual([]);
    await runtime.del(pod(), list);
  });

  it.each<[string, Partial<ExecResult>]>([
    ['was killed', { code: null, signal: 'SIGKILL' }],
    ['took too long', { code: null, signal: 'SIGKILL', timedOut: true }],
    ['crashed', { code: 2, stderr: 'panic: runtime error' }],
    ['failed without a CNI error', { code: 3, stdout: '{}' }],
    ['printed no JSON', { stdout: 'panic!' }],
    ['printed no result', { stdout: '' }],
    ['printed a result that cannot be read', { stdout: '[]' }],
  ])('keeps an attachment whose plugin %s during ADD until a DEL of it succeeds', async (_, end) => {
    let stuck = true;
    await setUp({ one: ({ command }) => (command === 'ADD' ? end : stuck ? fails(102, 'busy') : undefined) });
    const runtime = host.runtime();
    const list = chainOf('1.0.0', 'one');
    await expect(runtime.add(list, pod())).rejects.toThrow(
      'cleaning up failed too: plugin type="one" failed (del): busy',
    );
    expect(runtime.attachments('c1')).toHaveLength(1);
    await expect(runtime.del(pod(), list)).rejects.toThrow('plugin type="one" failed (del): busy');
    stuck = false;
    await runtime.del(pod(), list);
    expect(runtime.attachments('c1')).toEqual([]);
  });

  it('keeps an attachment that was made whole, could not be recorded as such and could not be undone', async () => {
    await setUp({
      one: async ({ command }) => {
        if (command === 'DEL') return fails(102, 'busy');
        const entry = join(host.cacheDir, 'attachments', 'c1~eth0@net.json');
        // The next write of the cache meets a full disk.
        await symlink('/dev/full', temporaryOf(entry));
        return answer('10.0.0.2/24');
      },
    });
    const runtime = host.runtime();
    await expect(runtime.add(chainOf('1.0.0', 'one'), pod())).rejects.toThrow(/ENOSPC.*cleaning up failed too/);
    expect(runtime.attachments('c1')).toMatchObject([{ state: 'adding' }]);
  });

  it('forgets an attachment whose plugin was never there', async () => {
    await setUp({});
    await expect(host.runtime().add(chainOf('1.0.0', 'absent'), pod())).rejects.toThrow(
      'failed to find plugin "absent"',
    );
    expect(await readdir(join(host.cacheDir, 'attachments'))).toEqual([]);
  });

  it('keeps an attachment that another plugin could not undo, and undoes past the failing one later', async () => {
    let stuck = true;
    await setUp({
      one: (call) => (call.command === 'ADD' ? answer('10.0.0.2/24') : stuck ? fails(102, 'busy') : undefined),
      two: () => fails(100, 'never works'),
    });
    const runtime = host.runtime();
    const list = chainOf('1.0.0', 'one', 'two');
    await expect(runtime.add(list, pod())).rejects.toThrow('never works');
    expect(runtime.attachments('c1')).toHaveLength(1);
    stuck = false;
    await expect(runtime.del(pod(), list)).rejects.toThrow('plugin type="two" failed (del): never works');
    expect(host.names().slice(-2)).toEqual(['DEL two', 'DEL one']);
  });

  it.each<[string, FakePlugin, RegExp]>([
    ['prints nothing', () => undefined, /plugin type="one" failed \(add\): printed no result/],
    ['prints garbage', onAdd({ stdout: 'panic!' }), /printed what is not JSON: "panic!"/],
    ['prints a list', onAdd({ stdout: '[]' }), /result: must be an object/],
    ['fails in silence', onAdd({ code: 2 }), /exit code 2 with no error message/],
    ['fails on stderr alone', onAdd({ code: 2, stderr: 'no route' }), /exit code 2 with no error message; no route/],
    ['fails with garbage', onAdd({ code: 3, stdout: 'Killed' }), /exit code 3, and printed no CNI error: "Killed"/],
    ['fails with JSON that is no error', onAdd({ code: 3, stdout: '{}' }), /printed no CNI error: "{}"/],
    ['is killed', onAdd({ code: null, signal: 'SIGSEGV' }), /killed by SIGSEGV with no error message/],
    ['takes too long', onAdd({ code: null, signal: 'SIGKILL', timedOut: true }), /killed after 120000 ms/],
  ])('says so when a plugin %s', async (_, plugin, message) => {
    await setUp({ one: plugin });
    await expect(host.runtime().add(chainOf('1.0.0', 'one'), pod())).rejects.toThrow(message);
  });

  it('names the directories when a plugin is nowhere, after undoing those before it', async () => {
    await setUp({ one: onAdd(answer('10.0.0.2/24')) });
    await expect(host.runtime().add(chainOf('1.0.0', 'one', 'two'), pod())).rejects.toThrow(
      `failed to find plugin "two" in path [${host.binDir}]`,
    );
    expect(host.names()).toEqual(['ADD one', 'DEL one']);
  });

  it('refuses a second ADD of a living attachment, and leaves that alone', async () => {
    await setUp({ one: onAdd(answer('10.0.0.2/24')) });
    const runtime = host.runtime();
    await runtime.add(chainOf('1.0.0', 'one'), pod());
    await expect(runtime.add(chainOf('1.0.0', 'one'), pod())).rejects.toThrow(
      'c1 is already attached to network "net"',
    );
    expect(host.names()).toEqual(['ADD one']);
    expect(await runtime.attachments('c1')).toHaveLength(1);
  });

  it.each([
    [{ containerId: '' }, 'CNI_CONTAINERID is missing'],
    [{ containerId: 'a/../b' }, 'CNI_CONTAINERID "a/../b" has characters'],
    [{ ifName: '' }, 'CNI_IFNAME is missing'],
    [{ ifName: 'sixteen-chars-xx' }, 'longer than 15 bytes'],
    [{ ifName: '..' }, 'CNI_IFNAME is . or ..'],
    [{ ifName: 'a b' }, 'a slash, a colon or a space'],
  ])('refuses %j with code 4', async (wrong, message) => {
    await setUp({});
    const failure = await Promise.resolve()
      .then(() => host.runtime().add(chainOf('1.0.0', 'one'), pod(wrong)))
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 4 });
    expect(String(failure)).toContain(message);
  });
});

describe('DEL', () => {
  it('reads the firewall for a masquerading rule that is left, once the namespace is gone: each run is a span', async () => {
    await setUp({ one: onAdd(answer('10.0.0.2/24')) });
    const tracer = new Tracer();
    const spans: Span[] = [];
    tracer.subscribe((span) => spans.push(span));
    const exec: Exec = async (file, args, options) =>
      file.endsWith('-save')
        ? { code: 0, signal: null, timedOut: false, stdout: '', stderr: '' }
        : host.exec(file, args, options);
    const runtime = host.runtime({ tracer, exec });
    await runtime.add(chainOf('1.0.0', { type: 'one', ipMasq: true }), pod());
    await runtime.del(pod({ netns: '' }));
    expect(spans.filter(({ kind }) => kind === 'netfilter')).toMatchObject([
      { name: 'iptables-save', outcome: 'ok', attributes: { args: [], exitCode: 0 } },
      { name: 'ip6tables-save', outcome: 'ok', attributes: { args: [], exitCode: 0 } },
    ]);
  });

  it.each([
    ['0.3.1', false],
    ['0.4.0', true],
    ['1.1.0', true],
  ])('runs in reverse; at %s the result of ADD is given back: %s', async (version, given) => {
    await setUp({ one: onAdd(answer('10.0.0.2/24')), two: onAdd(answer('10.0.0.2/24')) });
    const capabilityArgs = { portMappings: [{ hostPort: 1 }] };
    const list = chainOf(version, 'one', { type: 'two', capabilities: { portMappings: true } });
    await host.runtime().add(list, pod({ capabilityArgs }));
    await host.runtime().del(pod());
    expect(host.names()).toEqual(['ADD one', 'ADD two', 'DEL two', 'DEL one']);
    expect('prevResult' in (host.calls[2]?.netconf ?? {})).toBe(given);
    expect(host.calls[2]?.netconf['runtimeConfig']).toEqual(capabilityArgs);
  });

  it('stops at the plugin that fails, keeps the attachment, and can be repeated', async () => {
    let broken = true;
    await setUp({
      one: onAdd(answer('10.0.0.2/24')),
      two: (call) => (call.command === 'ADD' ? answer('10.0.0.2/24') : broken ? fails(102, 'busy') : undefined),
    });
    const runtime = host.runtime();
    await runtime.add(chainOf('1.0.0', 'one', 'two'), pod());
    await expect(runtime.del(pod())).rejects.toThrow('plugin type="two" failed (del): busy');
    expect(host.names().slice(2)).toEqual(['DEL two']);
    expect(await runtime.attachments('c1')).toHaveLength(1);
    broken = false;
    await runtime.del(pod());
    expect(host.names().slice(3)).toEqual(['DEL two', 'DEL one']);
    expect(await runtime.attachments('c1')).toEqual([]);
  });

  it('does nothing about an unknown container when there is no network, and runs the chain when there is', async () => {
    await setUp({ one: () => undefined });
    await host.runtime().del(pod());
    expect(host.names()).toEqual([]);
    await host.runtime().del(pod(), chainOf('1.0.0', 'one'));
    expect(host.names()).toEqual(['DEL one']);
  });

  it('of an unknown container is no failure when a plugin fails, and runs the others', async () => {
    await setUp({ one: () => undefined, two: () => fails(100, 'never works') });
    await host.runtime().del(pod(), chainOf('1.0.0', 'one', 'two'));
    expect(host.names()).toEqual(['DEL two', 'DEL one']);
  });

  it('that comes again after it succeeded runs nothing; after another ADD it does', async () => {
    await setUp({ one: onAdd(answer('10.0.0.2/24')) });
    const runtime = host.runtime();
    const list = chainOf('1.0.0', 'one');
    await runtime.add(list, pod());
    await runtime.del(pod(), list);
    await runtime.del(pod({ netns: '/var/run/netns/gone' }), list);
    expect(host.names()).toEqual(['ADD one', 'DEL one']);
    await runtime.del(pod({ ifName: 'eth1' }), list);
    expect(host.names().slice(2)).toEqual(['DEL one']);
    await runtime.add(list, pod());
    await runtime.del(pod(), list);
    expect(host.names().slice(3)).toEqual(['ADD one', 'DEL one']);
  });

  it('that failed is run again', async () => {
    let broken = true;
    await setUp({
      one: (call) => (call.command === 'ADD' ? answer('10.0.0.2/24') : broken ? fails(100, 'not now') : undefined),
    });
    const runtime = host.runtime();
    const list = chainOf('1.0.0', 'one');
    await runtime.add(list, pod());
    await expect(runtime.del(pod(), list)).rejects.toThrow('not now');
    broken = false;
    await runtime.del(pod(), list);
    await runtime.del(pod(), list);
    expect(host.names()).toEqual(['ADD one', 'DEL one', 'DEL one']);
  });

  it('passes an empty netns when its path is gone', async () => {
    await setUp({ one: onAdd(answer('10.0.0.2/24')) });
    await host.runtime().add(chainOf('1.0.0', 'one'), pod());
    await host.runtime().del(pod({ netns: '/var/run/netns/gone' }));
    expect(host.calls[1]?.env['CNI_NETNS']).toBe('');
  });
});

describe('CHECK', () => {
  it('asks every plugin in order with the cached result', async () => {
    await setUp({ one: onAdd(answer('10.0.0.2/24')), two: onAdd(answer('10.0.0.2/24')) });
    await host.runtime().add(chainOf('1.0.0', 'one', 'two'), pod());
    await host.runtime().check(pod());
    expect(host.names().slice(2)).toEqual(['CHECK one', 'CHECK two']);
    expect(host.calls[2]?.netconf['prevResult']).toMatchObject({ ips: [{ address: '10.0.0.2/24' }] });
  });
  it('is refused before 0.4.0, skipped by disableCheck, and impossible without an attachment', async () => {
    await setUp({ one: onAdd({ ips: [] }) });
    await expect(host.runtime().check(pod())).rejects.toMatchObject({ code: 3 });
    await host.runtime().add(chainOf('0.3.1', 'one'), pod());
    await expect(host.runtime().check(pod())).rejects.toThrow('"0.3.1" does not support the CHECK command');
    await host.runtime().add({ ...chainOf('1.0.0', 'one'), disableCheck: true }, pod({ containerId: 'c2' }));
    await host.runtime().check(pod({ containerId: 'c2' }));
    expect(host.names()).toEqual(['ADD one', 'ADD one']);
  });
});

describe('STATUS', () => {
  it('asks plugins from 1.1.0 on, without a container in the environment', async () => {
    await setUp({ one: () => undefined });
    await host.runtime().status(chainOf('1.0.0', 'one'));
    expect(host.names()).toEqual([]);
    await host.runtime().status(chainOf('1.1.0', 'one'));
    expect(host.names()).toEqual(['STATUS one']);
    expect(host.calls[0]?.env).not.toHaveProperty('CNI_CONTAINERID');
  });
  it('passes on what a plugin says, and finds a missing binary at every version, that of ipam too', async () => {
    await setUp({ one: (call) => (call.command === 'STATUS' ? fails(50, 'no uplink') : undefined) });
    await expect(host.runtime().status(chainOf('1.1.0', 'one'))).rejects.toMatchObject({ code: 50, msg: 'no uplink' });
    await expect(host.runtime().status(chainOf('0.3.1', 'two'))).rejects.toThrow('failed to find plugin "two"');
    const withIpam = chainOf('1.0.0', { type: 'one', ipam: { type: 'leaser' } });
    await expect(host.runtime().status(withIpam)).rejects.toThrow('failed to find plugin "leaser"');
  });
});

describe('garbage collection', () => {
  const plugins = { one: onAdd(answer('10.0.0.2/24')) };
  it('undoes stale attachments with DEL at every version', async () => {
    await setUp(plugins);
    const runtime = host.runtime();
    await runtime.add(chainOf('0.3.1', 'one'), pod());
    await runtime.add(chainOf('0.3.1', 'one'), pod({ containerId: 'c2' }));
    const report = await runtime.collectGarbage(chainOf('0.3.1', 'one'), async (entry) => entry.containerId === 'c1');
    expect(report).toEqual({ removed: [{ containerID: 'c1', ifname: 'eth0' }], failures: [] });
    expect(host.names().slice(2)).toEqual(['DEL one']);
    expect((await runtime.allAttachments()).entries.map((entry) => entry.containerId)).toEqual(['c2']);
  });
  it('neither asks about what is in use nor reads its files, where no plugin has to know them', async () => {
    await setUp(plugins);
    const runtime = host.runtime();
    await runtime.add(chainOf('0.3.1', 'one'), pod());
    await runtime.add(chainOf('0.3.1', 'one'), pod({ containerId: 'c2' }));
    const file = join(host.cacheDir, 'attachments', 'c2~eth0@net.json');
    await writeFile(file, 'not JSON');
    const checked: string[] = [];
    const isStale = async ({ containerId }: { readonly containerId: string }): Promise<boolean> => {
      checked.push(containerId);
      return true;
    };
    const inUse = (containerId: string): boolean => containerId === 'c2';
    expect(await runtime.collectGarbage(undefined, isStale, { inUse })).toEqual({
      removed: [{ containerID: 'c1', ifname: 'eth0' }],
      failures: [],
    });
    expect(checked).toEqual(['c1']);
    const withPlugins = await runtime.collectGarbage(chainOf('0.3.1', 'one'), isStale, { inUse });
    expect(withPlugins.failures.map(({ message }) => message)).toEqual([expect.stringContaining(file)]);
    expect(checked).toEqual(['c1']);
  });
  it('gives plugins of 1.1.0 the attachments that remain, under both spellings of the key', async () => {
    await setUp(plugins);
    const runtime = host.runtime();
    const list = chainOf('1.1.0', 'one');
    await runtime.add(list, pod());
    await runtime.add(list, pod({ containerId: 'c2' }));
    await runtime.collectGarbage(list, async (entry) => entry.containerId === 'c1', {
      alsoValid: [{ containerID: 'c3', ifname: 'eth0' }],
    });
    expect(host.names().slice(2)).toEqual(['DEL one', 'GC one']);
    const valid = [
      { containerID: 'c2', ifname: 'eth0' },
      { containerID: 'c3', ifname: 'eth0' },
    ];
    expect(host.calls[3]?.netconf).toMatchObject({ 'cni.dev/valid-attachments': valid, 'cni.dev/attachments': valid });
  });
  it('does not run GC where the network says disableGC', async () => {
    await setUp(plugins);
    await host.runtime().collectGarbage({ ...chainOf('1.1.0', 'one'), disableGC: true }, async () => true);
    expect(host.names()).toEqual([]);
  });
  it('goes on past a failing plugin and reports it', async () => {
    await setUp({ one: (call) => (call.command === 'GC' ? fails(7, 'bad') : undefined), two: () => undefined });
    const report = await host.runtime().collectGarbage(chainOf('1.1.0', 'one', 'two'), async () => true);
    expect(host.names()).toEqual(['GC one', 'GC two']);
    expect(report.failures).toEqual([expect.any(CniError)]);
  });
  it('waits for operations that run, and keeps new ones out until it is done', async () => {
    const gate = Promise.withResolvers<undefined>();
    const collecting = Promise.withResolvers<undefined>();
    await setUp({
      one: (call) =>
        call.command === 'ADD' ? answer('10.0.0.2/24') : call.command === 'GC' ? collecting.promise : undefined,
      slow: (call) => (call.command === 'ADD' ? gate.promise.then(() => undefined) : undefined),
    });
    const runtime = host.runtime();
    const list = chainOf('1.1.0', 'one');
    const first = runtime.add(chainOf('1.1.0', 'one', 'slow'), pod()).catch(() => 'failed');
    while (host.names().length < 2) await new Promise(setImmediate);
    const collected = runtime.collectGarbage(list, async () => false);
    while (!(await nothingMoves())) await new Promise(setImmediate);
    expect(host.names()).toEqual(['ADD one', 'ADD slow']);
    gate.resolve(undefined);
    expect(await first).toBe('failed');
    while (!host.names().includes('GC one')) await new Promise(setImmediate);
    const later = runtime.add(list, pod({ containerId: 'c2' }));
    expect(await nothingMoves()).toBe(true);
    expect(host.names().at(-1)).toBe('GC one');
    collecting.resolve(undefined);
    await Promise.all([collected, later]);
    expect(host.names().at(-1)).toBe('ADD one');
  });
  async function nothingMoves(): Promise<boolean> {
    const before = host.calls.length;
    for (let turn = 0; turn < 200; turn++) await new Promise(setImmediate);
    return host.calls.length === before;
  }
});

it('operations on one container run one after the other', async () => {
  const gate = Promise.withResolvers<undefined>();
  await setUp({
    one: async (call) => {
      if (call.command === 'ADD' && call.env['CNI_CONTAINERID'] === 'c1') await gate.promise;
      return undefined;
    },
  });
  const runtime = host.runtime();
  const list = chainOf('1.0.0', 'one');
  const add = runtime.add(list, pod()).catch(() => undefined);
  const del = runtime.del(pod(), list);
  const other = runtime.add(list, pod({ containerId: 'c2' })).catch(() => undefined);
  await other;
  expect(host.calls.filter((call) => call.env['CNI_CONTAINERID'] === 'c1').map((call) => call.command)).toEqual([
    'ADD',
  ]);
  gate.resolve(undefined);
  await Promise.all([add, del]);
  const commands = host.calls.filter((call) => call.env['CNI_CONTAINERID'] === 'c1').map((call) => call.command);
  expect(commands).toEqual(['ADD', 'DEL', 'DEL']);
});

describe('VERSION', () => {
  it('gives the versions a plugin names', async () => {
    await setUp({ one: () => ({ cniVersion: '1.0.0', supportedVersions: ['0.4.0', '1.0.0'] }) });
    expect(await host.runtime().version('one')).toEqual(['0.4.0', '1.0.0']);
  });
});

it('an error object without a code is an internal error with the message that is there', () => {
  const result: ExecResult = { code: 1, signal: null, timedOut: false, stdout: '{"msg":"hm"}', stderr: '' };
  expect(() => answerOf({ command: 'DEL', type: 'one' }, result, 1)).toThrow('plugin type="one" failed (del): hm');
});
