// The CNI runtime on Debian's own plugins, in network namespaces of this machine.

import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadConflist } from '../../../cni/conflist.ts';
import { CniError } from '../../../cni/types.ts';
import { exec, execOk } from '../../../lib/exec.ts';
import { freePort } from '../support/ports.ts';
import {
  attachment,
  bridgeChain,
  cachedFiles,
  cniRuntime,
  eventually,
  leases,
  linkExists,
  logOf,
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

beforeEach(async () => {
  network = await testNetwork();
  netns = await testNetns();
});

afterEach(async () => {
  await netns.remove();
  await removeTestNetwork(network);
});

describe('ADD and DEL with bridge, host-local and portmap', () => {
  it.each(['0.3.1', '0.4.0', '1.0.0'])(
    'gives the namespace the interface, address and route of a %s result, and takes all of it away',
    async (cniVersion) => {
      const runtime = cniRuntime(network);
      const list = await loadConflist(await writeConf(network, bridgeChain(network, { cniVersion, ipMasq: true })));
      const result = await runtime.add(list, attachment(netns));

      expect(result.ips).toEqual([{ address: `${network.prefix}.2/24`, gateway: `${network.prefix}.1`, interface: 2 }]);
      const [bridge, host, inside] = result.interfaces;
      expect(bridge?.name).toBe(network.bridge);
      expect(inside).toMatchObject({ name: 'eth0', sandbox: netns.path });
      expect(await netns.run('ip', '-o', '-4', 'addr', 'show', 'eth0')).toContain(`inet ${network.prefix}.2/24`);
      expect(await netns.run('ip', 'route')).toContain(`default via ${network.prefix}.1 dev eth0`);
      expect(await netns.run('cat', '/sys/class/net/eth0/address')).toBe(`${inside?.mac}\n`);
      expect(await linkExists(host?.name ?? '')).toBe(true);
      expect(await leases(network)).toEqual([`${network.prefix}.2`]);
      await netns.run('busybox', 'ping', '-c1', '-W120', `${network.prefix}.1`);
      if (cniVersion !== '0.3.1') await runtime.check(attachment(netns));

      await runtime.del(attachment(netns));
      expect(await linkExists(host?.name ?? '')).toBe(false);
      expect(await remains(network)).toEqual([]);
      expect(await cachedFiles(network)).toEqual([]);
    },
  );

  it('makes a mapped port reachable on the host while the pod lives, and not after', async () => {
    const runtime = cniRuntime(network);
    const list = await loadConflist(await writeConf(network, bridgeChain(network)));
    const hostPort = await freePort();
    const mapped = attachment(netns, {
      capabilityArgs: { portMappings: [{ hostPort, containerPort: 8080, protocol: 'tcp' }] },
    });
    await runtime.add(list, mapped);
    const server = netns.run('timeout', '400', 'busybox', 'nc', '-l', '-p', '8080', '-e', 'echo', 'hello from the pod');
    const ask = (): Promise<string> =>
      execOk('timeout', ['60', 'busybox', 'nc', `${network.prefix}.1`, String(hostPort)], { stdin: '' }).catch(
        () => '',
      );
    let heard = '';
    await eventually('an answer on the host port', async () => {
      heard = await ask();
      return heard !== '';
    });
    expect(heard).toBe('hello from the pod\n');
    await server;

    // The capability arguments of ADD serve DEL too: the caller need not repeat them.
    await runtime.del(attachment(netns));
    expect(await remains(network)).toEqual([]);
    expect(await ask()).toBe('');
  });

  it('passes bandwidth to the plugin that declares it, and its qdisc goes with the pod', async () => {
    const runtime = cniRuntime(network);
    const more = [{ type: 'bandwidth', capabilities: { bandwidth: true } }];
    const list = await loadConflist(await writeConf(network, bridgeChain(network, { more })));
    const limits = { ingressRate: 8_000_000, ingressBurst: 800_000, egressRate: 8_000_000, egressBurst: 800_000 };
    const result = await runtime.add(list, attachment(netns, { capabilityArgs: { bandwidth: limits } }));
    const host = result.interfaces[1]?.name ?? '';
    expect(await execOk('tc', ['qdisc', 'show', 'dev', host])).toMatch(/tbf .*rate 8Mbit/);
    const ifb = result.interfaces.find((entry) => entry.name.startsWith('bwp'))?.name ?? '';
    expect(await linkExists(ifb)).toBe(true);
    await runtime.del(attachment(netns));
    expect(await linkExists(ifb)).toBe(false);
    expect(await remains(network)).toEqual([]);
  });

  it('detaches from the cache alone, with a new runtime and the conflist gone', async () => {
    const list = await loadConflist(await writeConf(network, bridgeChain(network, { ipMasq: true })));
    await cniRuntime(network).add(list, attachment(netns));
    await cniRuntime(network).del(attachment(netns));
    expect(await remains(network)).toEqual([]);
    expect(await cachedFiles(network)).toEqual([]);
  });

  it('detaches when the network namespace is already gone, and when its path is an empty file', async () => {
    const runtime = cniRuntime(network);
    const list = await loadConflist(await writeConf(network, bridgeChain(network, { ipMasq: true })));
    const nothingButLinks = async () => (await remains(network)).filter((what) => !what.startsWith('link '));
    // The kernel removes a veth with its network namespace, after those queued before it.
    const nothing = () => eventually('the kernel to take the veth', async () => (await remains(network)).length === 0);
    await runtime.add(list, attachment(netns));
    await netns.remove();
    await runtime.del(attachment(netns));
    expect(await nothingButLinks()).toEqual([]);
    await nothing();

    const other = await testNetns();
    await runtime.add(list, attachment(other));
    await execOk('umount', [other.path]);
    await runtime.del(attachment(other));
    expect(await nothingButLinks()).toEqual([]);
    await other.remove();
    await nothing();
  });

  it('may be detached twice', async () => {
    const runtime = cniRuntime(network);
    const list = await loadConflist(await writeConf(network, bridgeChain(network)));
    await runtime.add(list, attachment(netns));
    await runtime.del(attachment(netns), list);
    await runtime.del(attachment(netns), list);
    expect(await remains(network)).toEqual([]);
  });

  it('runs containers beside each other and gives each its own address', async () => {
    const runtime = cniRuntime(network);
    const list = await loadConflist(await writeConf(network, bridgeChain(network)));
    const others = await Promise.all([testNetns(), testNetns(), testNetns(), testNetns()]);
    const results = await Promise.all(others.map((one) => runtime.add(list, attachment(one))));
    expect(new Set(results.map((result) => result.ips[0]?.address)).size).toBe(others.length);
    await Promise.all(others.map((one) => runtime.del(attachment(one))));
    await Promise.all(others.map((one) => one.remove()));
    expect(await remains(network)).toEqual([]);
  });
});

describe('a plugin that fails in the middle of the chain', () => {
  const FAILING = `cat > "$(dirname "$0")/$CNI_COMMAND.stdin"
echo "$CNI_COMMAND" >> "$(dirname "$0")/calls"
[ "$CNI_COMMAND" = ADD ] || exit 0
echo '{"cniVersion":"1.0.0","code":119,"msg":"no more widgets","details":"the widget pool is empty"}'
exit 1`;

  it('is reported with its own message, and leaves neither interface, lease, rule nor cache entry', async () => {
    await writePlugin(network, 'widget', FAILING);
    const runtime = cniRuntime(network);
    const chain = bridgeChain(network, { ipMasq: true, more: [{ type: 'widget' }, { type: 'tuning' }] });
    const list = await loadConflist(await writeConf(network, chain));
    const failure = await runtime.add(list, attachment(netns)).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(CniError);
    expect(failure).toMatchObject({ code: 119, msg: 'no more widgets', plugin: 'widget', command: 'ADD' });
    expect(String(failure)).toContain('plugin type="widget" failed (add): no more widgets; the widget pool is empty');
    expect(await logOf(join(network.binDir, 'calls'))).toEqual(['ADD', 'DEL']);
    expect(await remains(network)).toEqual([]);
    expect(await cachedFiles(network)).toEqual([]);
    expect(await netns.run('ls', '/sys/class/net')).toBe('lo\n');
    const names = network.spans.map((span) => `${span.name} ${span.outcome}`);
    expect(names.filter((name) => name.startsWith('DEL'))).toEqual([
      'DEL widget ok',
      'DEL portmap ok',
      'DEL bridge ok',
    ]);
    expect(names).toContain('ADD widget error');
    expect(names).not.toContain('ADD tuning ok');
  });

  it('that cannot clean up either stays in the cache, is reported, and is removed by the garbage collection', async () => {
    // Made its part and cannot undo it; the one that fails the ADD after it is another.
    await writePlugin(
      network,
      'stubborn',
      `[ "$CNI_COMMAND" = ADD ] && exec sed 's/.*"prevResult"://; s/}$//'
[ -e "$(dirname "$0")/healed" ] && exit 0
echo "{\\"code\\":120,\\"msg\\":\\"$CNI_COMMAND refused\\"}"; exit 1`,
    );
    await writePlugin(
      network,
      'widget',
      '[ "$CNI_COMMAND" = DEL ] && exit 0; echo \'{"code":119,"msg":"no more widgets"}\'; exit 1',
    );
    const runtime = cniRuntime(network);
    const more = [{ type: 'stubborn' }, { type: 'widget' }];
    const list = await loadConflist(await writeConf(network, bridgeChain(network, { more })));
    await expect(runtime.add(list, attachment(netns))).rejects.toThrow(/no more widgets; .*DEL refused/);
    expect(await remains(network)).toEqual([]);
    expect(await cachedFiles(network)).toHaveLength(1);
    const stuck = await runtime.collectGarbage(list, async () => true);
    expect(stuck.failures.map((failure) => failure.message)).toEqual([
      'plugin type="stubborn" failed (del): DEL refused',
    ]);
    await writePlugin(network, 'healed', '');
    const freed = await runtime.collectGarbage(list, async () => true);
    expect(freed).toEqual({ removed: [{ containerID: attachment(netns).containerId, ifname: 'eth0' }], failures: [] });
    expect(await cachedFiles(network)).toEqual([]);
  });

  it('is killed when it takes too long, with what it started cleaned up', async () => {
    await writePlugin(network, 'sleeper', '[ "$CNI_COMMAND" = DEL ] && exit 0; exec sleep 3600');
    // The limit is for that one call: how long the others take depends on the machine.
    const runtime = cniRuntime(network, {
      pluginTimeoutMs: 700,
      exec: (file, args, options) => {
        const sleeps = file.endsWith('/sleeper') && options?.env?.['CNI_COMMAND'] === 'ADD';
        return exec(file, args, sleeps ? options : { ...options, timeoutMs: 120_000 });
      },
    });
    const list = await loadConflist(await writeConf(network, bridgeChain(network, { more: [{ type: 'sleeper' }] })));
    await expect(runtime.add(list, attachment(netns))).rejects.toThrow(/plugin type="sleeper" .*killed after 700 ms/);
    expect(await remains(network)).toEqual([]);
  });
});

describe('after kill -9', () => {
  it('an ADD that was cut short is known from the cache, and the garbage collection frees its lease and link', async () => {
    // The plugin kills the process that runs the chain, right after bridge and portmap did their work.
    await writePlugin(network, 'assassin', '[ "$CNI_COMMAND" = DEL ] && exit 0; kill -9 $PPID');
    const chain = bridgeChain(network, { ipMasq: true, more: [{ type: 'assassin' }] });
    const list = await loadConflist(await writeConf(network, chain));
    const script = join(import.meta.dirname, 'victim.ts');
    const job = JSON.stringify({ network, list, attachment: attachment(netns) }, (key, value) =>
      key === 'tracer' || key === 'spans' ? undefined : value,
    );
    await expect(execOk(process.execPath, [script], { stdin: job })).rejects.toThrow(/SIGKILL/);
    expect(await leases(network)).toEqual([`${network.prefix}.2`]);
    expect(await remains(network)).not.toEqual([]);

    const runtime = cniRuntime(network);
    const report = await runtime.collectGarbage(undefined, async (entry) => entry.state === 'adding');
    expect(report.failures).toEqual([]);
    expect(report.removed).toHaveLength(1);
    expect(await remains(network)).toEqual([]);
    expect(await cachedFiles(network)).toEqual([]);
  });
});
