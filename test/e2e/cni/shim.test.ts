// The shim as a container runtime runs it, against the agent's network: the whole way to the real plugins and back.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, readlink, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createAgentNetwork } from '../../../agent/network/agent-network.ts';
import type { AgentNetwork, AgentNetworkOptions } from '../../../agent/network/options.ts';
import type { SandboxId } from '../../../agent/ports/runtime.ts';
import { installShim, SHIM_NAME, shimConflist } from '../../../cni/shim/install.ts';
import type { CniCommand, JsonObject } from '../../../cni/types.ts';
import { systemClock } from '../../../lib/clock.ts';
import { type ExecResult, exec } from '../../../lib/exec.ts';
import { median } from '../../support/median.ts';
import { freePort } from '../support/ports.ts';
import {
  attachment,
  bridgeChain,
  cachedFiles,
  eventually,
  PLUGIN_DIR,
  remains,
  removeTestNetwork,
  type TestNetns,
  type TestNetwork,
  testNetns,
  testNetwork,
  writeConf,
  writePlugin,
} from './harness.ts';

let network: TestNetwork;
let netns: TestNetns;
let agent: AgentNetwork | undefined;
const errors: string[] = [];

const socketPath = (): string => join(network.dir, 'cni.sock');
const shimDirs = (): { confDir: string; binDir: string } => ({
  confDir: join(network.dir, 'shim/net.d'),
  binDir: join(network.dir, 'shim/bin'),
});

async function startAgent(more: Partial<AgentNetworkOptions> = {}): Promise<AgentNetwork> {
  const started = createAgentNetwork({
    confDir: network.confDir,
    binDirs: [network.binDir, PLUGIN_DIR],
    cacheDir: network.cacheDir,
    socketPath: socketPath(),
    shim: shimDirs(),
    tracer: network.tracer,
    clock: systemClock,
    onError: (what, error) => errors.push(`${what}: ${error}`),
    ...more,
  });
  agent = started;
  await started.start();
  return started;
}

interface ShimOptions {
  readonly runtimeConfig?: JsonObject;
  readonly id?: string;
  readonly netconf?: string;
}

/** The environment and configuration that a container runtime gives the shim. */
function shimInput(command: CniCommand, more: ShimOptions = {}) {
  const { containerId, netns: path, ifName, args } = attachment(netns);
  const plugin = (JSON.parse(shimConflist()) as { plugins: JsonObject[] }).plugins[0];
  const netconf = { ...plugin, cniVersion: '1.0.0', name: 'nodelet', runtimeConfig: more.runtimeConfig };
  return {
    env: {
      PATH: process.env['PATH'],
      CNI_COMMAND: command,
      CNI_CONTAINERID: more.id ?? containerId,
      CNI_NETNS: path,
      CNI_IFNAME: ifName,
      CNI_ARGS: args,
      CNI_PATH: '/nowhere',
    },
    stdin: more.netconf ?? JSON.stringify(netconf),
  };
}

function shim(command: CniCommand, more: ShimOptions = {}): Promise<ExecResult> {
  return exec(join(shimDirs().binDir, SHIM_NAME), [], shimInput(command, more));
}

beforeEach(async () => {
  network = await testNetwork();
  netns = await testNetns();
  errors.length = 0;
});

afterEach(async () => {
  await agent?.close();
  agent = undefined;
  await netns.remove();
  await removeTestNetwork(network);
});

describe('the way through the shim', () => {
  it('gives the pod its network, shows its veth, address and routes, and takes all of it away', async () => {
    await writeConf(network, bridgeChain(network, { cniVersion: '0.4.0', ipMasq: true }));
    const agent = await startAgent();
    expect(await agent.status()).toEqual({ ok: true, reason: '', message: '' });
    const hostPort = await freePort();
    const added = await shim('ADD', {
      runtimeConfig: { portMappings: [{ hostPort, containerPort: 80, protocol: 'tcp' }], dns: {} },
    });
    expect(added).toMatchObject({ code: 0, stderr: '' });
    const result = JSON.parse(added.stdout);
    expect(result.cniVersion).toBe('1.0.0');
    expect(result.ips).toEqual([{ interface: 2, address: `${network.prefix}.2/24`, gateway: `${network.prefix}.1` }]);

    const sandbox = attachment(netns).containerId as SandboxId;
    const host = result.interfaces[1].name;
    expect(await agent.interfaces(sandbox)).toEqual([
      {
        name: 'eth0',
        hostName: host,
        mac: result.interfaces[2].mac,
        mtu: 1500,
        addresses: [`${network.prefix}.2/24`],
        routes: [{ dst: '0.0.0.0/0', gw: `${network.prefix}.1` }],
      },
    ]);
    const named = (name: string) => network.spans.find((span) => span.name === name);
    await eventually('the kernel tells of the link', () => named(`NEWLINK ${host}`) !== undefined);
    expect(named(`NEWLINK ${host}`)).toMatchObject({
      kind: 'netlink',
      pod: { namespace: 'demo', name: 'web', uid: 'u-1' },
      attributes: {
        kind: 'veth',
        master: network.bridge,
        addresses: [`${network.prefix}.2/24`],
        routes: [`0.0.0.0/0 via ${network.prefix}.1`],
        hostRoute: `${network.prefix}.0/24 dev ${network.bridge}`,
      },
    });
    expect(named('ADD bridge')).toMatchObject({ kind: 'cni', outcome: 'ok', pod: { name: 'web' } });
    expect(named('ADD bridge')?.parent).toBe(named(`ADD network ${network.name}`)?.id);

    expect(await shim('DEL')).toMatchObject({ code: 0, stdout: '', stderr: '' });
    await eventually('the kernel tells that the link is gone', () => named(`DELLINK ${host}`) !== undefined);
    expect(named(`DELLINK ${host}`)).toMatchObject({ pod: { name: 'web' } });
    expect(await agent.interfaces(sandbox)).toEqual([]);
    expect(await remains(network)).toEqual([]);
    expect(errors).toEqual([]);
  });

  it('calls the plugins on CHECK, and returns their errors', async () => {
    await writeConf(network, bridgeChain(network));
    await startAgent();
    await shim('ADD');
    expect(await shim('CHECK')).toMatchObject({ code: 0, stdout: '' });
    await netns.run('ip', 'addr', 'flush', 'dev', 'eth0');
    const broken = await shim('CHECK');
    expect(broken.code).toBe(1);
    expect(JSON.parse(broken.stdout).msg).toContain('plugin type="bridge" failed (check)');
  });

  it('hands back a failing plugin’s own message and code', async () => {
    await writePlugin(
      network,
      'widget',
      'echo \'{"code":119,"msg":"no more \\"widgets\\"","details":"empty"}\'; exit 1',
    );
    await writeConf(network, bridgeChain(network, { more: [{ type: 'widget' }] }));
    await startAgent();
    const failed = await shim('ADD');
    expect(failed.code).toBe(1);
    expect(JSON.parse(failed.stdout)).toMatchObject({
      cniVersion: '1.0.0',
      code: 119,
      msg: 'plugin type="widget" failed (add): no more "widgets"',
    });
    expect(await netns.run('ls', '/sys/class/net')).toBe('lo\n');
  });

  it('detaches after the agent was replaced by a new one', async () => {
    await writeConf(network, bridgeChain(network));
    const agent = await startAgent();
    await shim('ADD');
    await agent.close();
    await rm(join(network.confDir, '10-test.conflist'));
    const next = await startAgent();
    expect((await next.interfaces(attachment(netns).containerId as SandboxId))[0]?.addresses).toEqual([
      `${network.prefix}.2/24`,
    ]);
    expect(await shim('DEL')).toMatchObject({ code: 0 });
    expect(await remains(network)).toEqual([]);
  });

  it('undoes an ADD whose caller was killed before the answer', async () => {
    const [begun, go] = [join(network.dir, 'begun'), join(network.dir, 'go')];
    await writePlugin(
      network,
      'slow',
      `[ "$CNI_COMMAND" = ADD ] || exit 0
touch '${begun}'; while [ ! -e '${go}' ]; do sleep 0.05; done; sed 's/.*"prevResult"://; s/}$//'`,
    );
    await writeConf(network, bridgeChain(network, { more: [{ type: 'slow' }] }));
    await startAgent();
    const { containerId, netns: path, ifName, args } = attachment(netns);
    const env = {
      CNI_COMMAND: 'ADD',
      CNI_CONTAINERID: containerId,
      CNI_NETNS: path,
      CNI_IFNAME: ifName,
      CNI_ARGS: args,
      PATH: process.env['PATH'],
    };
    const caller = spawn(join(shimDirs().binDir, SHIM_NAME), [], { env, stdio: ['pipe', 'ignore', 'inherit'] });
    caller.stdin.end('{"cniVersion":"1.0.0","name":"nodelet","type":"nodelet-cni"}');
    await eventually('the last plugin of the chain is at work', () => existsSync(begun));
    const ended = once(caller, 'close');
    caller.kill('SIGKILL');
    await ended;
    await writeFile(go, '');
    await eventually('the attachment is undone', () =>
      network.spans.some((span) => span.name === `DEL network ${network.name}`),
    );
    expect(network.spans.find((span) => span.name === `ADD network ${network.name}`)?.outcome).toBe('ok');
    expect(await remains(network)).toEqual([]);
    await eventually('its cache entry is gone', async () => (await cachedFiles(network)).length === 0);
  });

  it('answers VERSION by itself and refuses what the specification forbids with its codes', async () => {
    await writeConf(network, bridgeChain(network));
    await startAgent();
    const version = await shim('VERSION');
    expect(JSON.parse(version.stdout).supportedVersions).toContain('1.1.0');
    const cases: [Promise<ExecResult>, number][] = [
      [shim('ADD', { id: '../../etc' }), 4],
      [shim('ADD', { netconf: 'not json' }), 6],
      [shim('ADD', { netconf: '{"cniVersion":"9.9.9","name":"x","type":"y"}' }), 1],
    ];
    for (const [answer, code] of cases) {
      const { stdout, code: exit } = await answer;
      expect({ exit, code: JSON.parse(stdout).code }).toEqual({ exit: 1, code });
    }
  });
});

describe('when the agent is not there', () => {
  it('the shim returns code 11, for every command that needs it', async () => {
    await writeConf(network, bridgeChain(network));
    const agent = await startAgent();
    await agent.close();
    for (const command of ['ADD', 'DEL', 'CHECK'] as const) {
      const answer = await shim(command);
      expect(answer.code).toBe(1);
      expect(JSON.parse(answer.stdout)).toEqual({
        cniVersion: '1.0.0',
        code: 11,
        msg: `the nodelet agent does not answer on ${socketPath()}; is it running?`,
        details: 'connect: No such file or directory',
      });
    }
  });

  it.each([
    ['hangs up without a word', '', 'the connection was closed before an answer came'],
    ['hangs up in the middle of its answer', '0 100\n{"cni', 'the connection was closed in the middle of the answer'],
  ])('an agent that %s is code 11 as well', async (_, bytes, details) => {
    const agent = await startAgent();
    await agent.close();
    const server = createServer((socket) => socket.once('data', () => socket.end(bytes)));
    await new Promise<void>((resolve) => server.listen(socketPath(), resolve));
    const answer = await shim('ADD');
    server.close();
    expect(answer.code).toBe(1);
    expect(JSON.parse(answer.stdout)).toMatchObject({ code: 11, details });
  });

  it('a killed agent’s socket is replaced, a living one’s is not, and no other user may connect', async () => {
    const living = await startAgent();
    expect((await stat(socketPath())).mode & 0o777).toBe(0o600);
    await expect(startAgentBeside()).rejects.toThrow(`another process listens on ${socketPath()}`);
    await living.close();
    // What kill -9 leaves: a socket file without a listener.
    await exec('perl', ['-e', 'socket(S,1,1,0); bind(S, pack("S a108", 1, $ARGV[0])) or die $!', socketPath()]);
    await writeConf(network, bridgeChain(network));
    await startAgent();
    expect(await shim('ADD')).toMatchObject({ code: 0 });
    expect(await shim('DEL')).toMatchObject({ code: 0 });
  });

  async function startAgentBeside(): Promise<void> {
    const beside = createAgentNetwork({
      confDir: network.confDir,
      binDirs: [PLUGIN_DIR],
      cacheDir: network.cacheDir,
      socketPath: socketPath(),
      tracer: network.tracer,
      clock: systemClock,
      onError: () => undefined,
    });
    try {
      await beside.start();
    } finally {
      await beside.close();
    }
  }
});

describe('what it costs', () => {
  async function agentProcess(): Promise<AsyncDisposable & { readonly pid: number | undefined }> {
    const options = {
      confDir: network.confDir,
      binDirs: [network.binDir],
      cacheDir: network.cacheDir,
      socketPath: socketPath(),
    };
    await installShim(shimDirs().binDir, { socketPath: socketPath(), pluginDirs: [PLUGIN_DIR] });
    const script = join(import.meta.dirname, 'agent-process.ts');
    const child = spawn(process.execPath, [script, JSON.stringify(options)], { stdio: ['pipe', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    return {
      pid: child.pid,
      async [Symbol.asyncDispose]() {
        child.stdin.end();
        await once(child, 'exit');
      },
    };
  }

  /** In turns, so that what else the machine is doing is in all figures. */
  const ROUNDS = 5;
  const CALLS_EACH = 10;
  /** Runs a program for ADD and for DEL, so often, and prints what all that it started has had of a processor, ms. */
  const RUNNER = `my ($often, $input, @command) = @ARGV;
open(my $out, '>&', STDOUT); open(STDOUT, '>', '/dev/null');
for (1 .. $often) { for my $call ('ADD', 'DEL') {
  $ENV{CNI_COMMAND} = $call; open(STDIN, '<', $input); system(@command) == 0 or die "@command: $?";
} }
my (undef, undef, $user, $system) = times; print $out 1000 * ($user + $system);`;

  /** Of a call, on the average; with what a process that serves it has had meanwhile, and the programs that it ran. */
  async function processorMs(command: readonly string[], server?: number): Promise<number> {
    const { env, stdin } = shimInput('ADD');
    const input = join(network.dir, 'input');
    await writeFile(input, stdin);
    const served = async (): Promise<number> => {
      if (server === undefined) return 0;
      // utime, stime, cutime and cstime, in hundredths of a second.
      const fields = (await readFile(`/proc/${server}/stat`, 'utf8')).replace(/^.*\) /, '').split(' ');
      return fields.slice(11, 15).reduce((sum, ticks) => sum + 10 * Number(ticks), 0);
    };
    const before = await served();
    const run = await exec('perl', ['-e', RUNNER, String(CALLS_EACH), input, ...command], { env });
    expect(run).toMatchObject({ code: 0, stderr: '' });
    return (Number(run.stdout) + (await served()) - before) / (2 * CALLS_EACH);
  }

  it('the shim and the socket add less than half of what starting Node would', async () => {
    await writePlugin(network, 'quick', 'exec cat "$(dirname "$0")/answer"');
    await writeFile(
      join(network.binDir, 'answer'),
      '{"cniVersion":"1.0.0","ips":[{"address":"10.9.9.9/24"}],"dns":{}}',
    );
    await writeConf(network, { cniVersion: '1.0.0', name: network.name, plugins: [{ type: 'quick' }] });
    await using agent = await agentProcess();
    const [through, direct, node]: [number[], number[], number[]] = [[], [], []];
    for (let round = 0; round < ROUNDS; round++) {
      direct.push(await processorMs([join(network.binDir, 'quick')]));
      through.push(await processorMs([join(shimDirs().binDir, SHIM_NAME)], agent.pid));
      node.push(await processorMs([process.execPath, '-e', '0']));
    }
    const [withShim, without, startNode] = [median(through), median(direct), median(node)];
    console.log(
      `plugin alone ${without.toFixed(1)} ms, through shim and agent ${withShim.toFixed(1)} ms, a Node start ${startNode.toFixed(1)} ms`,
    );
    expect(withShim - without).toBeLessThan(startNode / 2);
  });

  it('is a Perl program that loads nothing, and would hold before strict', async () => {
    const path = await installShim(shimDirs().binDir, { socketPath: socketPath(), pluginDirs: [PLUGIN_DIR] });
    expect(await exec('perl', ['-Mstrict', '-wc', path])).toMatchObject({ code: 0, stderr: `${path} syntax OK\n` });
    const used = [...(await readFile(path, 'utf8')).matchAll(/^\s*(?:use|require)\s+(\w+)/gm)].map((match) => match[1]);
    expect(used).toEqual([]);
    expect(await readlink(join(shimDirs().binDir, 'loopback'))).toBe(join(PLUGIN_DIR, 'loopback'));
  });
});
