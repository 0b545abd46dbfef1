// What a container is configured with, checked inside the container: its user, its capabilities, its name, its
// resolver, its environment, its kernel settings. And what is refused, in the kubelet's words.

import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { loadDefinitions } from '../../../labs/images/build.ts';
import { importImages } from '../../../labs/images/import.ts';
import { type CollectedSpan, type Collector, startCollector } from '../../otlp-collector/collector.ts';
import { apply, container, deletePods, eventWhen, FOREVER, gone, podWhen, ready, shellPod } from '../agent/harness.ts';
import { startLab, type TestLab } from '../support/lab.ts';

let lab: TestLab;
let collector: Collector;

beforeAll(async () => {
  collector = await startCollector();
  lab = await startLab({
    kubeletConfiguration: {
      clusterDNS: ['10.96.0.10'],
      allowedUnsafeSysctls: ['net.core.somaxconn'],
      tracing: { endpoint: collector.endpoint, samplingRatePerMillion: 1_000_000 },
    },
  });
  const profiles = join(lab.paths.kubeletDir, 'seccomp', 'profiles');
  await mkdir(profiles, { recursive: true });
  const refused = { names: ['mkdir', 'mkdirat'], action: 'SCMP_ACT_ERRNO', args: [] };
  const profile = { defaultAction: 'SCMP_ACT_ALLOW', syscalls: [refused] };
  await writeFile(join(profiles, 'no-mkdir.json'), JSON.stringify(profile));
});
afterAll(async () => {
  await lab?.stop();
  collector?.close();
});

const inside = (pod: string, command: string): Promise<string> =>
  lab.kubectl('exec', pod, '-c', 'main', '--', 'sh', '-c', command);
async function remove(...names: string[]): Promise<void> {
  await deletePods(lab, [...names], { wait: false });
  await Promise.all(names.map((name) => gone(lab, name)));
}
const field = async (pod: string, name: string): Promise<string> =>
  new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(await inside(pod, 'cat /proc/self/status'))?.[1] ?? '';

describe('the security context', () => {
  test('sets the container’s user, and the status reports it where the runtime does', async () => {
    const securityContext = { runAsUser: 1000, runAsGroup: 2000, supplementalGroups: [4000], fsGroup: 3000 };
    const volumes = [{ name: 'data', emptyDir: {} }];
    const volumeMounts = [{ name: 'data', mountPath: '/data' }];
    await apply(
      lab,
      shellPod('someone', FOREVER, { securityContext, volumes }, { volumeMounts }),
      shellPod('grouped', FOREVER, {}, { securityContext: { runAsGroup: 2000 } }),
    );
    const [someone] = await Promise.all([ready(lab, 'someone'), ready(lab, 'grouped')]);
    expect((await inside('someone', 'id -u; id -g; id -G')).trim().split('\n')).toEqual([
      '1000',
      '2000',
      '2000 3000 4000',
    ]);
    expect((await inside('someone', 'touch /data/x; stat -c %g /data/x')).trim()).toBe('3000');
    // An image that names no user is root's, also where only the group is set.
    expect((await inside('grouped', 'id -u; id -g')).trim().split('\n')).toEqual(['0', '2000']);
    // Runtimes that know a policy for groups say which identity a container has; older ones do not.
    const node = await lab.client.get<{ status?: { features?: object } }>(`/api/v1/nodes/${lab.nodeName}`);
    const status: object = container(someone);
    expect('user' in status).toBe(node.status?.features !== undefined);
    if ('user' in status) expect(status.user).toMatchObject({ linux: { uid: 1000, gid: 2000 } });
    await remove('someone', 'grouped');
  });

  test('refuses root where it must not be, in the kubelet’s words', async () => {
    await apply(
      lab,
      shellPod('rooted', FOREVER, { securityContext: { runAsNonRoot: true } }),
      shellPod('zero', FOREVER, { securityContext: { runAsNonRoot: true, runAsUser: 0 } }),
    );
    for (const [name, words] of [
      ['rooted', 'container has runAsNonRoot and image will run as root'],
      ['zero', "container's runAsUser breaks non-root policy"],
    ] as const) {
      const pod = await podWhen(
        lab,
        name,
        'refused',
        (each) => container(each).state?.waiting?.reason === 'CreateContainerConfigError',
      );
      expect(container(pod).state?.waiting?.message).toContain(words);
    }
    await remove('rooted', 'zero');
  });

  test('adds and drops capabilities, privilege, and privilege escalation', async () => {
    const drops = { capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE'] }, allowPrivilegeEscalation: false };
    await apply(
      lab,
      shellPod('few', FOREVER, {}, { securityContext: drops }),
      shellPod('usual', FOREVER),
      shellPod('all', FOREVER, {}, { securityContext: { privileged: true } }),
    );
    await Promise.all(['few', 'usual', 'all'].map((name) => ready(lab, name)));
    expect(await field('few', 'CapEff')).toBe('0000000000000400');
    expect(await field('few', 'NoNewPrivs')).toBe('1');
    expect(await field('usual', 'NoNewPrivs')).toBe('0');
    const [usual, all] = [await field('usual', 'CapEff'), await field('all', 'CapEff')];
    expect(BigInt(`0x${all}`)).toBeGreaterThan(BigInt(`0x${usual}`));
    await remove('few', 'usual', 'all');
  });

  test('makes the root file system read-only', async () => {
    await apply(lab, shellPod('fixed', FOREVER, {}, { securityContext: { readOnlyRootFilesystem: true } }));
    await ready(lab, 'fixed');
    expect(await inside('fixed', 'touch /x 2>&1 || true')).toContain('Read-only file system');
    await remove('fixed');
  });

  test('filters system calls by the runtime’s profile, by one of the node’s own, or not at all', async () => {
    const seccomp = (seccompProfile: object) => ({ securityContext: { seccompProfile } });
    await apply(
      lab,
      shellPod('filtered', FOREVER, {}, seccomp({ type: 'RuntimeDefault' })),
      shellPod('free', FOREVER, {}, seccomp({ type: 'Unconfined' })),
      shellPod('own', FOREVER, {}, seccomp({ type: 'Localhost', localhostProfile: 'profiles/no-mkdir.json' })),
    );
    await Promise.all(['filtered', 'free', 'own'].map((name) => ready(lab, name)));
    expect(await field('filtered', 'Seccomp')).toBe('2');
    expect(await field('own', 'Seccomp')).toBe('2');
    expect(await inside('own', 'mkdir /x 2>&1 || true')).toContain('Operation not permitted');
    expect(Number(await field('free', 'Seccomp_filters'))).toBeLessThan(
      Number(await field('filtered', 'Seccomp_filters')),
    );
    await remove('filtered', 'free', 'own');
  });
});

describe('sysctls', () => {
  const sysctls = (name: string, value: string) => ({ securityContext: { sysctls: [{ name, value }] } });
  test('that are safe, or allowed, are set in the pod alone', async () => {
    await apply(
      lab,
      shellPod('safe', FOREVER, sysctls('net.ipv4.ip_local_port_range', '40000 40100')),
      shellPod('allowed', FOREVER, sysctls('net.core.somaxconn', '123')),
      shellPod('slashes', FOREVER, sysctls('net/ipv4/ip_unprivileged_port_start', '42')),
    );
    await Promise.all(['safe', 'allowed', 'slashes'].map((name) => ready(lab, name)));
    expect((await inside('slashes', 'cat /proc/sys/net/ipv4/ip_unprivileged_port_start')).trim()).toBe('42');
    expect((await inside('safe', 'cat /proc/sys/net/ipv4/ip_local_port_range')).trim()).toBe('40000\t40100');
    expect((await inside('allowed', 'cat /proc/sys/net/core/somaxconn')).trim()).toBe('123');
    await remove('safe', 'allowed', 'slashes');
  });

  test('that are neither make the pod Failed with SysctlForbidden', async () => {
    await apply(lab, shellPod('unsafe', FOREVER, sysctls('kernel.msgmax', '65536')));
    const pod = await podWhen(lab, 'unsafe', 'Failed', ({ status }) => status?.phase === 'Failed');
    expect(pod.status).toMatchObject({
      reason: 'SysctlForbidden',
      message: 'Pod was rejected: forbidden sysctl: "kernel.msgmax" not allowlisted',
    });
    await remove('unsafe');
  });
});

describe('names', () => {
  test('the resolver is the cluster’s, the machine’s, or the pod’s own', async () => {
    const dnsConfig = {
      nameservers: ['192.0.2.53'],
      searches: ['shop.example'],
      options: [{ name: 'ndots', value: '2' }, { name: 'edns0' }],
    };
    await apply(
      lab,
      shellPod('cluster', FOREVER),
      shellPod('machine', FOREVER, { dnsPolicy: 'Default' }),
      shellPod('none', FOREVER, { dnsPolicy: 'None', dnsConfig }),
      shellPod('many', FOREVER, { dnsConfig: { nameservers: ['192.0.2.1', '192.0.2.2', '192.0.2.3'] } }),
    );
    await Promise.all(['cluster', 'machine', 'none', 'many'].map((name) => ready(lab, name)));
    await eventWhen(
      lab,
      'many',
      'DNSConfigForming',
      /^Nameserver limits were exceeded, .* the applied nameserver line is: 10\.96\.0\.10 192\.0\.2\.1 192\.0\.2\.2$/,
    );
    const resolver = async (name: string): Promise<string[]> =>
      (await inside(name, 'cat /etc/resolv.conf')).trim().split('\n');
    const cluster = await resolver('cluster');
    expect(cluster[0]).toMatch(/^search default\.svc\.cluster\.local svc\.cluster\.local cluster\.local/);
    expect(cluster).toContain('nameserver 10.96.0.10');
    expect(cluster).toContain('options ndots:5');
    expect(await resolver('machine')).not.toContain('nameserver 10.96.0.10');
    expect(await resolver('none')).toEqual(['search shop.example', 'nameserver 192.0.2.53', 'options ndots:2 edns0']);
    await remove('cluster', 'machine', 'none', 'many');
  });

  test('the host name is the pod’s, its own, or the whole one; aliases are in the hosts file', async () => {
    await apply(
      lab,
      shellPod('plain', FOREVER),
      shellPod('called', FOREVER, {
        hostname: 'alice',
        subdomain: 'crew',
        setHostnameAsFQDN: true,
        hostAliases: [{ ip: '192.0.2.7', hostnames: ['bob', 'robert'] }],
      }),
    );
    await Promise.all([ready(lab, 'plain'), ready(lab, 'called')]);
    expect((await inside('plain', 'hostname')).trim()).toBe('plain');
    expect((await inside('called', 'hostname')).trim()).toBe('alice.crew.default.svc.cluster.local');
    const hosts = await inside('called', 'cat /etc/hosts');
    expect(hosts).toMatch(/^10\.\S+\talice\.crew\.default\.svc\.cluster\.local\talice$/m);
    expect(hosts).toMatch(/^192\.0\.2\.7\tbob\trobert$/m);
    await remove('plain', 'called');
  });
});

describe('the environment', () => {
  test('comes from values, maps, secrets and the pod itself, in order, with references expanded', async () => {
    const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings', namespace: 'default' } };
    await apply(
      lab,
      { ...configMap, data: { COLOUR: 'red', 'not-a-name': 'x', SIZE: 'xl' } },
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'keys', namespace: 'default' },
        stringData: { TOKEN: 's3cret' },
      },
    );
    const env = [
      { name: 'A', value: 'one' },
      { name: 'B', value: '$(A)-$(MISSING)-$$(A)' },
      { name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'keys', key: 'TOKEN' } } },
      { name: 'NONE', valueFrom: { configMapKeyRef: { name: 'settings', key: 'gone', optional: true } } },
      { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
      { name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } } },
      { name: 'IN_COLOUR', value: 'in $(MY_COLOUR)' },
    ];
    const envFrom = [
      { prefix: 'MY_', configMapRef: { name: 'settings' } },
      { secretRef: { name: 'absent', optional: true } },
    ];
    const resources = { limits: { cpu: '250m', memory: '32Mi' } };
    await apply(lab, shellPod('env', FOREVER, {}, { env, envFrom, resources }));
    await ready(lab, 'env');
    const seen = new Map(
      (await inside('env', 'env')).split('\n').map((line) => {
        const at = line.indexOf('=');
        return [line.slice(0, at), line.slice(at + 1)] as const;
      }),
    );
    expect(
      Object.fromEntries(
        ['A', 'B', 'TOKEN', 'NODE', 'CPU', 'MY_COLOUR', 'MY_SIZE', 'IN_COLOUR'].map((name) => [name, seen.get(name)]),
      ),
    ).toEqual({
      A: 'one',
      B: 'one-$(MISSING)-$(A)',
      TOKEN: 's3cret',
      NODE: lab.nodeName,
      CPU: '250',
      MY_COLOUR: 'red',
      MY_SIZE: 'xl',
      IN_COLOUR: 'in red',
    });
    expect(seen.has('NONE')).toBe(false);
    await remove('env');
  });

  test('without a key that must be there keeps the container from starting until it is', async () => {
    const env = [{ name: 'A', valueFrom: { configMapKeyRef: { name: 'later', key: 'a' } } }];
    await apply(lab, shellPod('waits', FOREVER, {}, { env }));
    const pod = await podWhen(
      lab,
      'waits',
      'waiting',
      (each) => container(each).state?.waiting?.reason === 'CreateContainerConfigError',
    );
    expect(container(pod).state?.waiting?.message).toBe('configmap "later" not found');
    const metadata = { name: 'later', namespace: 'default' };
    await apply(lab, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { a: 'b' } });
    await ready(lab, 'waits');
    await remove('waits');
  });
});

describe('bad values', () => {
  test('control characters are refused in names and reach the container in values, and do no harm', async () => {
    const odd = 'a\u0001\u001b[31mb\u007f\tc';
    const refused = await lab.tryKubectl(['apply', '-f', '-'], {
      stdin: JSON.stringify(shellPod('odd\u0007name', FOREVER)),
    });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/metadata\.name: Invalid value/);
    const label = await lab.tryKubectl(['apply', '-f', '-'], {
      stdin: JSON.stringify({ ...shellPod('odd', FOREVER), metadata: { name: 'odd', labels: { a: 'x\u0000y' } } }),
    });
    expect(label.code).toBe(1);
    const nul = await lab.tryKubectl(['apply', '-f', '-'], {
      stdin: JSON.stringify(
        shellPod('nul', 'sleep 1', { restartPolicy: 'Never' }, { env: [{ name: 'A', value: 'x\u0000y' }] }),
      ),
    });
    await apply(
      lab,
      shellPod(
        'odd',
        'printf %s "$A" >/dev/termination-log',
        { restartPolicy: 'Never' },
        { env: [{ name: 'A', value: odd }] },
      ),
    );
    const done = await podWhen(lab, 'odd', 'ended', (each) => container(each).state?.terminated !== undefined);
    expect(container(done).state?.terminated?.message).toBe(odd);
    // What no program can be given: the runtime refuses it, or the server does; the next pod runs all the same.
    if (nul.code === 0) {
      await podWhen(
        lab,
        'nul',
        'stopped short',
        (each) => each.status?.phase !== 'Pending' || container(each).state?.waiting?.message !== undefined,
      );
      await remove('nul');
    }
    await apply(lab, shellPod('next', FOREVER));
    await ready(lab, 'next');
    await remove('odd', 'next');
  });

  test('an image with no command of its own needs one from the pod, and the runtime’s words say so', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'nodelet-image-'));
    const text = 'names: [docker.io/library/silent:1]\npackages: [busybox-static]\napplets: /bin/busybox\n';
    await writeFile(join(directory, 'silent.yaml'), text);
    const images = await loadDefinitions(directory);
    await rm(directory, { recursive: true });
    const { socket } = lab.paths.containerd;
    const native = (await readFile(lab.paths.containerd.config, 'utf8')).includes('snapshotter = "native"');
    await importImages({ socket, snapshotter: native ? 'native' : 'overlayfs', source: 'build', images });
    const spec = { restartPolicy: 'Never' } as const;
    const silent = { image: 'silent:1', command: undefined };
    await apply(lab, shellPod('silent', '', spec, silent));
    const pod = await podWhen(
      lab,
      'silent',
      'refused',
      (each) => container(each).state?.waiting?.reason === 'CreateContainerError',
    );
    expect(container(pod).state?.waiting?.message).toMatch(/no command specified/);
    await apply(lab, shellPod('spoken', '', spec, { ...silent, command: ['true'] }));
    await podWhen(lab, 'spoken', 'Succeeded', ({ status }) => status?.phase === 'Succeeded');
    await remove('silent', 'spoken');
  });
});

test('a collector gets the spans of a pod’s start as the kubelet names them, one trace for each syncPod', async () => {
  await apply(lab, shellPod('traced', FOREVER));
  await ready(lab, 'traced');
  const ofPod = (name: string): CollectedSpan[] => {
    const own = collector.spans.filter((span) => span.name === name && span.attributes['k8s.pod.name'] === 'traced');
    // An exporter that had no answer in time sends the same spans again.
    return [...new Map(own.map((span) => [span.spanId, span])).values()];
  };
  const started = 'runtime.v1.RuntimeService/StartContainer';
  const [start] = await vi.waitUntil(
    () => {
      const found = ofPod(started);
      // A round is exported when it has ended, which is after what it did.
      return ofPod('syncPod').some(({ traceId }) => traceId === found[0]?.traceId) ? found : undefined;
    },
    { timeout: 120_000 },
  );
  expect(start).toMatchObject({
    kind: 'SPAN_KIND_CLIENT',
    resource: { 'service.name': 'kubelet', 'k8s.node.name': lab.nodeName },
  });
  const rounds = ofPod('syncPod');
  expect(rounds.map(({ parentSpanId }) => parentSpanId)).toEqual(rounds.map(() => ''));
  expect(rounds.map(({ traceId }) => traceId)).toContain(start?.traceId);
  expect(new Set(rounds.map(({ traceId }) => traceId)).size).toBe(rounds.length);
  await remove('traced');
});
