import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { renderConflist, renderKubeletConfiguration } from '../../../../cli/lab/config.ts';
import { DEFAULT_ROOT, LAB_PROCESSES, labPaths } from '../../../../cli/lab/paths.ts';
import { agentProgram, apiserverProgram } from '../../../../cli/lab/programs.ts';
import type { LabState } from '../../../../cli/lab/state.ts';
import { whatNext } from '../../../../cli/lab/up.ts';

const OTHER =
  '/srv/a/rather/long/directory/name/for/a/lab/that/nobody/would/choose/but/somebody/will/have/anyway/indeed';

describe('the layout of a lab', () => {
  it('keeps sockets within the 107 bytes of a socket name, however long the root is', () => {
    const paths = labPaths(OTHER);
    for (const socket of [paths.containerd.ttrpcSocket, paths.traceSocket]) {
      expect(Buffer.byteLength(socket)).toBeLessThanOrEqual(107);
    }
  });

  it('gives interface names of at most 15 characters', () => {
    for (const root of [DEFAULT_ROOT, OTHER]) expect(labPaths(root).bridge.length).toBeLessThanOrEqual(15);
  });

  it('shares nothing between two roots', () => {
    const [a, b] = [labPaths('/tmp/a'), labPaths('/tmp/b')];
    for (const key of ['runDir', 'bridge', 'networkName', 'cgroupRoot', 'podLogsDir', 'stateFile'] as const) {
      expect(a[key]).not.toBe(b[key]);
    }
  });

  it('uses the kubelet’s own places under the default root only', () => {
    expect(labPaths().podLogsDir).toBe('/var/log/pods');
    expect(labPaths().cgroupRoot).toBe('/');
    expect(labPaths('/tmp/a').podLogsDir).toBe('/tmp/a/log/pods');
  });

  it('is the same for every way of writing the root', () => {
    expect(labPaths('/tmp/../tmp/a/').hash).toBe(labPaths('/tmp/a').hash);
  });

  it('is the same through a link, whether the root exists or not; a link that leads nowhere is refused', () => {
    const base = mkdtempSync(join(tmpdir(), 'nodelet-paths-'));
    try {
      mkdirSync(join(base, 'real'));
      symlinkSync('real', join(base, 'link'));
      expect(labPaths(join(base, 'link'))).toMatchObject({ root: join(base, 'real') });
      expect(labPaths(join(base, 'link', 'lab')).hash).toBe(labPaths(join(base, 'real', 'lab')).hash);
      symlinkSync('nowhere', join(base, 'dangling'));
      expect(() => labPaths(join(base, 'dangling'))).toThrow('leads nowhere');
    } finally {
      rmSync(base, { recursive: true });
    }
  });

  it('has a log and a pid file per process', () => {
    const paths = labPaths('/tmp/a');
    const files = LAB_PROCESSES.flatMap((name) => [paths.logFile(name), paths.pidFile(name)]);
    expect(new Set(files).size).toBe(LAB_PROCESSES.length * 2);
  });
});

describe('the files and command lines of a lab', () => {
  const paths = labPaths('/tmp/a');
  const state: LabState = {
    version: 1,
    nodeName: 'node-a',
    apiserverPort: 7443,
    kubeletPort: 11250,
    subnet: '10.244.7.0/24',
    network: 'agent',
    firewall: { chains: { ipv4: [], ipv6: [] } },
    madeDirectories: [],
  };

  it('have a chain of bridge and portmap on the lab’s own bridge and leases', () => {
    const list = JSON.parse(renderConflist(paths, { subnet: state.subnet, forwardDrops: false }));
    expect(list.plugins.map((plugin: { type: string }) => plugin.type)).toEqual(['bridge', 'portmap']);
    expect(list.plugins[0]).toMatchObject({
      bridge: paths.bridge,
      ipam: { ranges: [[{ subnet: '10.244.7.0/24' }]], dataDir: '/tmp/a/cni/leases' },
    });
  });

  it('let pods through a firewall that drops forwarded packets', () => {
    const list = JSON.parse(renderConflist(paths, { subnet: state.subnet, forwardDrops: true }));
    expect(list.plugins.at(-1)).toMatchObject({ type: 'firewall' });
  });

  it('set the agent’s port, cgroup root and certificate authority by KubeletConfiguration', () => {
    const config = parse(renderKubeletConfiguration(paths, { port: 11250, clientCAFile: '/tmp/a/pki/ca.crt' }));
    expect(config).toMatchObject({
      kind: 'KubeletConfiguration',
      port: 11250,
      cgroupRoot: paths.cgroupRoot,
      podLogsDir: '/tmp/a/log/pods',
      authentication: { anonymous: { enabled: false }, x509: { clientCAFile: '/tmp/a/pki/ca.crt' } },
      authorization: { mode: 'Webhook' },
    });
  });

  it.each(['cgroupfs', 'systemd'] as const)(
    'name the cgroup driver %s, and what else was asked for',
    (cgroupDriver) => {
      const choice = { port: 1, clientCAFile: '/ca', cgroupDriver, more: { podPidsLimit: 48 } };
      expect(parse(renderKubeletConfiguration(paths, choice))).toMatchObject({ cgroupDriver, podPidsLimit: 48 });
    },
  );

  it('start the agent and the API server on the lab’s own directories and ports', () => {
    expect(apiserverProgram(paths, state, { bind: '127.0.0.1' }).args.join(' ')).toContain(
      '--bind-address 127.0.0.1 --port 7443 --node-name node-a',
    );
    expect(agentProgram(paths, state).args.join(' ')).toContain(
      `--root-dir /tmp/a/kubelet --socket-dir ${paths.runDir}`,
    );
  });

  it('end with what to type next, which names the kubeconfig', () => {
    expect(whatNext(paths)).toContain('  export KUBECONFIG=/tmp/a/kubeconfig');
  });
});
