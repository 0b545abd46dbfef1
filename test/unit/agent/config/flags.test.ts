import { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { FIELD_FLAGS, OWN_FLAGS } from '../../../../agent/config/flag-table.ts';
import { addAgentFlags, flagKey, resolveAgentOptions } from '../../../../agent/config/flags.ts';
import { KUBELET_FIELDS } from '../../../../agent/config/kubelet-fields.ts';
import type { FieldTable } from '../../../../agent/config/schema.ts';
import { UserError } from '../../../../lib/errors.ts';

const FILE = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
port: 1000
maxPods: 20
featureGates: {ImageVolume: true, KubeletPSI: false}
authentication: {x509: {clientCAFile: /file/ca.crt}}
hairpinMode: none
`;

function options(...args: string[]) {
  const command = addAgentFlags(new Command().exitOverride().configureOutput({ writeErr: () => undefined }));
  command.parse(args, { from: 'user' });
  const readFile = (path: string): string => {
    if (path === '/cfg.yaml') return FILE;
    throw new Error(`ENOENT: no such file or directory, open '${path}'`);
  };
  return resolveAgentOptions(command.opts(), readFile, 'Machine-1');
}

describe('the agent’s flags', () => {
  test('leave defaults when none is given', () => {
    expect(options()).toMatchObject({
      kubeconfig: undefined,
      nodeName: 'machine-1',
      nodeIPs: [],
      nodeLabels: {},
      rootDir: '/var/lib/nodelet/kubelet',
      certDir: '/var/lib/nodelet/kubelet/pki',
      containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
      imageServiceEndpoint: 'unix:///run/containerd/containerd.sock',
      network: 'agent',
      cni: { confDir: '/etc/cni/net.d', binDirs: ['/opt/cni/bin', '/usr/lib/cni'], cacheDir: '/var/lib/cni' },
      verbosity: 0,
      withoutEffect: [],
    });
  });

  test('override the file, field by field', () => {
    const { config, withoutEffect } = options(
      '--config',
      '/cfg.yaml',
      '--port',
      '2000',
      '--feature-gates',
      'KubeletPSI=true,NodeSwap=true',
    );
    expect(config).toMatchObject({
      port: 2000,
      maxPods: 20,
      featureGates: { ImageVolume: true, KubeletPSI: true, NodeSwap: true },
    });
    expect(config.authentication.x509.clientCAFile).toBe('/file/ca.crt');
    expect(withoutEffect).toEqual([
      'hairpinMode (bridges are configured by CNI plugins)',
      'featureGates.KubeletPSI (is not there: cannot be set to true)',
    ]);
  });

  test('give static pods a URL, with headers that may come more than once', () => {
    const { config } = options(
      '--manifest-url=http://here/pods',
      '--manifest-url-header=X-Key:one,X-Key:two:three',
      '--manifest-url-header',
      'Accept: */*',
      '--http-check-frequency=5s',
    );
    expect(config).toMatchObject({
      staticPodURL: 'http://here/pods',
      staticPodURLHeader: { 'X-Key': ['one', 'two:three'], Accept: ['*/*'] },
      httpCheckFrequency: 5000,
    });
    expect(() => options('--manifest-url-header=novalue')).toThrow(
      /--manifest-url-header: "novalue" is not name:value/,
    );
  });

  test('name credential providers by a configuration and a directory, both or neither', () => {
    expect(options().credentialProviders).toBeUndefined();
    const both = options('--image-credential-provider-config=/c', '--image-credential-provider-bin-dir=/b');
    expect(both.credentialProviders).toEqual({ config: '/c', binDir: '/b' });
    expect(() => options('--image-credential-provider-config=/c')).toThrow(/go together/);
  });

  test('reach nested fields without losing their neighbours', () => {
    const { config } = options('--config', '/cfg.yaml', '--anonymous-auth', '--authorization-mode=AlwaysAllow');
    expect(config.authentication).toMatchObject({
      anonymous: { enabled: true },
      x509: { clientCAFile: '/file/ca.crt' },
    });
    expect(config.authorization.mode).toBe('AlwaysAllow');
  });

  test('take lists and maps with commas and repeated', () => {
    const parsed = options(
      ...['--cluster-dns', '10.0.0.1,10.0.0.2', '--cluster-dns', '10.0.0.3'],
      ...['--node-labels', 'a=b,c=', '--node-labels', 'node.kubernetes.io/x=y'],
      ...['--eviction-hard', 'memory.available<1Gi,nodefs.available<5%'],
      ...['--register-with-taints', 'a=b:NoSchedule,c:NoExecute', '--node-ip', '10.1.1.1,fd00::1'],
    );
    expect(parsed.config.clusterDNS).toEqual(['10.0.0.1', '10.0.0.2', '10.0.0.3']);
    expect(parsed.nodeLabels).toEqual({ a: 'b', c: '', 'node.kubernetes.io/x': 'y' });
    expect(parsed.config.evictionHard).toEqual({ 'memory.available': '1Gi', 'nodefs.available': '5%' });
    expect(parsed.config.registerWithTaints).toMatchObject([
      { key: 'a', value: 'b', effect: 'NoSchedule' },
      { key: 'c', value: '', effect: 'NoExecute' },
    ]);
    expect(parsed.nodeIPs).toEqual(['10.1.1.1', 'fd00::1']);
  });

  test('switch booleans off with =false', () => {
    expect(options('--register-node=false').config.registerNode).toBe(false);
    expect(options('--register-node').config.registerNode).toBe(true);
  });

  test('take a bare path for an endpoint and send images there too', () => {
    const { containerRuntimeEndpoint, imageServiceEndpoint } = options('--container-runtime-endpoint', '/run/c.sock');
    expect([containerRuntimeEndpoint, imageServiceEndpoint]).toEqual(['unix:///run/c.sock', 'unix:///run/c.sock']);
  });

  test('return an immutable value', () => {
    const frozen = options('--config', '/cfg.yaml');
    expect(Object.isFrozen(frozen) && Object.isFrozen(frozen.config.authentication.x509)).toBe(true);
    expect(Object.isFrozen(frozen.config.featureGates)).toBe(true);
  });

  test.each([
    [['--port', 'abc'], '--port must be an integer, not "abc"'],
    [['--port', '70000'], 'port: must be between 1 and 65535'],
    [['--register-node=maybe'], '--register-node must be true or false, not "maybe"'],
    [['--network', 'host'], '--network must be agent or runtime, not "host"'],
    [['--node-ip', 'here'], '--node-ip must be an IP address, not "here"'],
    [['--node-labels', 'novalue'], '--node-labels: "novalue" is not key=value'],
    [['--node-labels', 'kubernetes.io/role=x'], '"kubernetes.io/role" is in a reserved namespace'],
    [['--node-labels', '-a=x'], '"-a" is not a label key'],
    [['--register-with-taints', 'a=b'], '"a=b" is not key=value:NoSchedule'],
    [['--hostname-override', 'a_b'], '"a_b" cannot be the name of a node'],
    [['--container-runtime-endpoint', 'tcp://1.2.3.4'], '--container-runtime-endpoint must be unix:///absolute/path'],
    [['--config', '/none.yaml'], '--config: /none.yaml cannot be read: ENOENT'],
  ])('%j is refused', (args, message) => {
    expect(() => options(...args)).toThrow(UserError);
    expect(() => options(...args)).toThrow(message);
  });

  test('say in the help which of them change nothing', () => {
    const help = addAgentFlags(new Command()).helpInformation().replace(/\s+/g, ' ');
    expect(help).toMatch(/--hairpin-mode <value> [^[]*\[no effect\]/);
    expect(help).not.toMatch(/--max-pods <n> [^-]*\[accepted/);
  });

  test('refuse an unknown flag', () => {
    expect(() => options('--no-such-flag', 'x')).toThrow(/unknown option '--no-such-flag'/);
  });

  test('point at fields that exist', () => {
    for (const row of FIELD_FLAGS) {
      let table: FieldTable | undefined = KUBELET_FIELDS;
      for (const name of row.field ?? []) {
        expect(Object.keys(table ?? {}), `--${row.flag}`).toContain(name);
        table = table?.[name]?.fields;
      }
    }
  });

  test('have the keys that commander gives them', () => {
    const command = addAgentFlags(new Command());
    expect(command.options.map((option) => option.attributeName()).sort()).toEqual(
      [...OWN_FLAGS, ...FIELD_FLAGS].map((row) => flagKey(row.flag)).sort(),
    );
  });
});
