// What changes at the API reaches the files that containers see, by watches alone: the periodic resync of all pods is
// an hour away. A watch is shared between pods and ends with the last of them.

import { readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { labProcesses } from '../../../cli/lab/processes.ts';
import { exec } from '../../../lib/exec.ts';
import {
  agentLog,
  apply,
  deletePods,
  eventually,
  eventWhen,
  FOREVER,
  gone,
  mainProcess,
  ready,
  shellPod,
  spans,
} from '../agent/harness.ts';
import { startLab, type TestLab } from '../support/lab.ts';

let lab: TestLab;
/** The root directory of the container of pod "live", as the kernel shows it. */
let root = '';

const object = (kind: string, name: string, data: Record<string, string>, more: object = {}) => ({
  apiVersion: 'v1',
  kind,
  metadata: { name, namespace: 'default' },
  ...(kind === 'Secret' ? { stringData: data } : { data }),
  ...more,
});

const LIVE = {
  volumes: [
    { name: 'cm', configMap: { name: 'settings' } },
    { name: 'secret', secret: { secretName: 'keys' } },
    {
      name: 'all',
      projected: {
        sources: [
          { configMap: { name: 'settings', items: [{ key: 'color', path: 'deep/colour' }] } },
          { secret: { name: 'keys', optional: true } },
          { secret: { name: 'later', optional: true } },
        ],
      },
    },
    {
      name: 'self',
      downwardAPI: {
        items: [
          { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } },
          { path: 'note', fieldRef: { fieldPath: "metadata.annotations['note']" } },
        ],
      },
    },
    { name: 'fixed', configMap: { name: 'fixed' } },
  ],
};
const MOUNTS = {
  env: [{ name: 'COLOR', valueFrom: { configMapKeyRef: { name: 'settings', key: 'color' } } }],
  volumeMounts: [
    { name: 'cm', mountPath: '/cm' },
    { name: 'secret', mountPath: '/secret' },
    { name: 'all', mountPath: '/all' },
    { name: 'self', mountPath: '/self' },
    { name: 'fixed', mountPath: '/fixed' },
    { name: 'cm', mountPath: '/one/color', subPath: 'color' },
  ],
};

/** What the agent watches at this moment: those of its watches whose connection to the API server is open. */
async function watched(): Promise<string[]> {
  const agent = (await labProcesses(lab.root)).find(({ argv }) => argv.includes('agent'));
  const server = `:${lab.lab.state.apiserverPort}`;
  const { stdout } = await exec('ss', ['-Htnp', 'state', 'established', 'dport', '=', server]);
  const mine = stdout.split('\n').filter((line) => line.includes(`pid=${agent?.pid},`));
  const ports = new Set(mine.map((line) => Number(/:(\d+)\s/.exec(line)?.[1])));
  return (await spans(lab))
    .filter(({ kind, name, attributes }) => {
      return kind === 'api' && name.startsWith('WATCH') && ports.has(Number(attributes.localPort));
    })
    .map(({ name }) => name.replace('WATCH ', ''))
    .sort();
}
async function eventuallyWatched(wanted: readonly string[]): Promise<void> {
  await eventually(`the watches to be those of ${wanted}`, async () =>
    isDeepStrictEqual(await watched(), wanted) ? true : undefined,
  );
}
/** Of every agent, and those of kube-root-ca.crt, settings, keys, later; each shown by several volumes or variables. */
const ALWAYS = ['nodes', 'pods', 'services'];
const WITH_PODS = [...ALWAYS, 'configmaps', 'configmaps', 'secrets', 'secrets'].sort();

beforeAll(async () => {
  lab = await startLab({ kills: true, kubeletConfiguration: { syncFrequency: '1h' } });
  await eventually('the agent to be there', async () =>
    (await agentLog(lab)).includes('Started kubelet') ? true : undefined,
  );
  await apply(
    lab,
    object('ConfigMap', 'settings', { color: 'red' }),
    object('ConfigMap', 'fixed', { a: '1' }, { immutable: true }),
    object('Secret', 'keys', { key: 'K1' }),
  );
  await apply(lab, shellPod('live', FOREVER, LIVE, MOUNTS));
  const pod = await ready(lab, 'live');
  const pid = await mainProcess(lab, pod);
  root = `/proc/${pid}/root`;
  await readlink(root);
});
afterAll(() => lab?.stop());

const text = (path: string): Promise<string> => readFile(join(root, path), 'utf8');

/** Changes an object, and waits until the container sees the new content of the file. */
async function shows(path: string, content: string, change: () => Promise<unknown>): Promise<void> {
  await change();
  await eventually(`${path} to hold ${content}`, async () => ((await text(path)) === content ? true : undefined));
}

const edit = (kind: string, name: string, patch: object): Promise<string> =>
  lab.kubectl('patch', kind, name, '--type=merge', '-p', JSON.stringify(patch));

const changes: readonly [string, string, string, string, string, (value: string) => object][] = [
  ['a ConfigMap', '/cm/color', 'green', 'configmap', 'settings', (color) => ({ data: { color } })],
  ['a Secret', '/secret/key', 'K2', 'secret', 'keys', (key) => ({ stringData: { key } })],
  ['a projected ConfigMap', '/all/deep/colour', 'blue', 'configmap', 'settings', (color) => ({ data: { color } })],
  ['the pod’s labels', '/self/labels', 'x', 'pod', 'live', (tier) => ({ metadata: { labels: { tier } } })],
  ['the pod’s annotations', '/self/note', 'hello', 'pod', 'live', (note) => ({ metadata: { annotations: { note } } })],
];
test.each(changes)('a change of %s comes into the file', async (_, path, word, kind, name, patch) => {
  await shows(path, path === '/self/labels' ? `tier="${word}"` : word, () => edit(kind, name, patch(word)));
});

test('an optional Secret that comes later is there, and gone again when it is deleted', async () => {
  await shows('/all/late', 'L', () => apply(lab, object('Secret', 'later', { late: 'L' })));
  await lab.kubectl('delete', 'secret', 'later');
  await eventually('the file to be gone', async () =>
    (await text('/all/late').catch(() => undefined)) === undefined ? true : undefined,
  );
});

test('a subPath and the environment stay what they were at the container’s start', async () => {
  expect(await text('/cm/color')).not.toBe('red');
  expect(await text('/one/color')).toBe('red');
  expect(await lab.kubectl('exec', 'live', '--', 'sh', '-c', 'echo -n $COLOR')).toBe('red');
});

test('one connection per object that can change, and none for an immutable one', async () => {
  await eventuallyWatched(WITH_PODS);
  // With the immutable one. A watch may have ended in its time and begun again, which takes no list.
  const lists = (await spans(lab)).filter(
    ({ kind, name }) => kind === 'api' && /^LIST (configmaps|secrets)/.test(name),
  );
  expect(lists).toHaveLength(5);
});

test('a second pod of the namespace sends no request for what the first one watches', async () => {
  const before = Date.now();
  await apply(lab, shellPod('second', FOREVER, LIVE, MOUNTS));
  const pod = await ready(lab, 'second');
  const since = await eventually('the spans of its whole start', async () => {
    const found = (await spans(lab)).filter(({ start }) => start >= before);
    return found.some((span) => span.name === 'StartContainer' && span.pod?.name === 'second') ? found : undefined;
  });
  expect(since.filter(({ name }) => /^(GET|LIST) (configmaps|secrets)/.test(name))).toEqual([]);
  // As many as before.
  await eventuallyWatched(WITH_PODS);
  const pid = await mainProcess(lab, pod);
  expect(await readFile(`/proc/${pid}/root/cm/color`, 'utf8')).toBe(await text('/cm/color'));
  // One change reaches both.
  await edit('configmap', 'settings', { data: { color: 'white' } });
  for (const at of [root, `/proc/${pid}/root`]) {
    await eventually('both to be white', async () =>
      (await readFile(join(at, 'cm/color'), 'utf8')) === 'white' ? true : undefined,
    );
  }
  await deletePods(lab, ['second']);
});

test('a ConfigMap that is deleted leaves the files, and an event names what is missing; created again it is mounted', async () => {
  await lab.kubectl('delete', 'configmap', 'settings');
  await eventWhen(
    lab,
    'live',
    'FailedMount',
    /MountVolume.SetUp failed for volume "cm" : configmap "settings" not found/,
  );
  expect(await text('/cm/color')).toBe('white');
  await shows('/cm/color', 'black', () => apply(lab, object('ConfigMap', 'settings', { color: 'black' })));
});

test('changes are seen after the API server was away', async () => {
  const [server] = (await labProcesses(lab.root)).filter(({ argv }) => argv.includes('apiserver'));
  if (server === undefined) throw new Error('no API server among the lab’s processes');
  process.kill(server.pid, 'SIGKILL');
  await eventually('the API server to be back', async () =>
    (await lab.tryKubectl(['get', '--raw', '/readyz'])).code === 0 ? true : undefined,
  );
  await edit('configmap', 'settings', { data: { color: 'orange' } });
  // The watch comes back with the reflector's own pauses.
  await eventually('the file', async () => ((await text('/cm/color')) === 'orange' ? true : undefined), 120_000);
});

test('with the last pod the watches go', async () => {
  // After the server's absence each comes back by itself.
  await eventuallyWatched(WITH_PODS);
  await deletePods(lab, ['live'], { wait: false });
  await gone(lab, 'live');
  await eventuallyWatched(ALWAYS);
});

/** As many and as large as the API server takes: five pods with 22 ConfigMaps each, 104 MB in all. */
const LARGE = { pods: 5, each: 22, bytes: 950_000 };

test('pods with a hundred megabytes of ConfigMaps start, with a restart of the agent in between, and it lives', async () => {
  const agentPid = () => eventually('the agent to run', async () => lab.lab.pid('agent'));
  const content = (name: string): string => `${name} `.padEnd(LARGE.bytes, 'x');
  const names = Array.from({ length: LARGE.pods * LARGE.each }, (_, index) => `large-${index}`);
  for (const name of names) {
    await lab.lab.client.create('/api/v1/namespaces/default/configmaps', {
      ...object('ConfigMap', name, { content: content(name) }),
    });
  }
  const pods = Array.from({ length: LARGE.pods }, (_, index) => {
    const own = names.slice(index * LARGE.each, (index + 1) * LARGE.each);
    return shellPod(
      `large-${index}`,
      FOREVER,
      { volumes: own.map((name) => ({ name, configMap: { name } })) },
      { volumeMounts: own.map((name) => ({ name, mountPath: `/${name}` })) },
    );
  });
  await apply(lab, ...pods.slice(0, 2));
  await Promise.all([ready(lab, 'large-0'), ready(lab, 'large-1')]);
  const old = await agentPid();
  process.kill(old, 'SIGKILL');
  const survivor = await eventually('another agent', () => {
    const pid = lab.lab.pid('agent');
    return pid === old ? undefined : pid;
  });
  await apply(lab, ...pods.slice(2));
  const found = await Promise.all(pods.map((_, index) => ready(lab, `large-${index}`, 600_000)));
  expect(await agentPid()).toBe(survivor);
  expect(await agentLog(lab)).not.toContain('heap out of memory');
  for (const [index, pod] of found.entries()) {
    const at = `/proc/${await mainProcess(lab, pod)}/root`;
    for (const name of names.slice(index * LARGE.each, (index + 1) * LARGE.each)) {
      expect((await readFile(join(at, name, 'content'), 'utf8')) === content(name)).toBe(true);
    }
  }
}, 1_200_000);
