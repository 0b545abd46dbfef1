// `nodelet explain` on a real node: pods that are broken in all sorts of ways at the same time, in one lab, and the answer for
// each. The command's own code is called in this process; test/e2e/docs runs the program.

import { spawn } from 'node:child_process';
import { mkdtemp, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runExplain } from '../../../cli/explain/main.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Node, Pod } from '../../../client/types.ts';
import { amountsOf } from '../../../controlplane/scheduler/requests.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { execOk } from '../../../lib/exec.ts';
import { apply, condition, eventually, FOREVER, gone, nodeWhen, podWhen, ready, shellPod } from '../agent/harness.ts';
import type { TestLab } from '../support/lab.ts';
import { shareLab } from '../support/shared-lab.ts';
import { type Answer, answerFor, answerWhen, chainText, runText, verdictFor } from './answers.ts';
import * as broken from './broken.ts';
import { cases } from './cases.ts';

let lab: TestLab;
let privateMount: string | undefined;

const here = (name: string): string => `${lab.namespace}/${name}`;
const run = (kind: string, name: string): Promise<{ code: number; text: string }> => runText(lab, kind, name);
const explained = (kind: string, name: string, more = {}): Promise<Answer> => answerFor(lab, kind, name, more);
const verdictOf = (name: string, rule: string, verdict?: RegExp, check?: (answer: Answer) => void): Promise<Answer> =>
  verdictFor(lab, name, rule, verdict, check);
/** Its controller removes the taints of a node that was not Ready, or cordoned, a moment after the cause has gone. */
const untainted = (): Promise<true> =>
  eventually('the node to be Ready without taints', async () => {
    const node = await lab.client.get<Node>(resourcePath('v1', 'nodes', { name: lab.nodeName }));
    return condition(node, 'Ready')?.status === 'True' && (node.spec?.taints ?? []).length === 0 ? true : undefined;
  });

const remove = (name: string, gracePeriodSeconds?: number): Promise<unknown> =>
  lab.client.delete(
    resourcePath('v1', 'pods', { namespace: lab.namespace, name }),
    gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds },
  );

beforeAll(async () => {
  lab = await shareLab();
  await lab.client.create('/apis/node.k8s.io/v1/runtimeclasses', broken.oddClass);
  await apply(lab, broken.settings, broken.classless, broken.healthy, broken.hung, broken.forced, ...broken.stubborn);
  await apply(lab, ...broken.pending, ...broken.creating, ...broken.starting, ...broken.unready);
  privateMount = await mkdtemp(join(tmpdir(), 'nodelet-explain-'));
  await execOk('mount', ['-t', 'tmpfs', 'nodelet-explain', privateMount]);
  await execOk('mount', ['--make-private', privateMount]);
  await apply(lab, broken.unshared(privateMount));
  const { status } = await lab.client.get<Node>(resourcePath('v1', 'nodes', { name: lab.nodeName }));
  const most = Math.floor(amountsOf(status?.allocatable).get('cpu') ?? 0) - 100;
  await apply(lab, broken.victim(lab.nodeName, `${most}m`));
  await podWhen(lab, 'preempted', 'running', (pod) => pod.status?.phase === 'Running');
  await apply(lab, broken.critical(lab.nodeName, `${most}m`));
  await apply(lab, ...broken.ended(lab.nodeName), ...broken.crashing, broken.web, ...broken.services);
});

afterAll(async () => {
  await lab?.stop();
  if (privateMount === undefined) return;
  await execOk('umount', [privateMount]);
  await rmdir(privateMount);
});

describe.each(cases)('$pod', ({ pod, rule, verdict, call, details, text }) => {
  test(`is explained by ${rule}`, async () => {
    // Between two starts of a container its log, or the call that failed, may not be there yet.
    await verdictOf(pod, rule, verdict, (answer) => {
      const calls = answer.chain.flatMap((link) => link.call ?? []);
      const words = calls.map(({ name, to, answer: got }) => `${name} → ${to}: ${got}`).join('\n');
      if (call !== undefined) expect(words).toMatch(call);
      if (text !== undefined) expect(answer.chain.map((link) => link.text).join('\n')).toMatch(text);
      if (details !== undefined) expect(answer.details.flatMap(({ lines }) => lines).join('\n')).toMatch(details);
      expect(answer.notLookedAt).toEqual([]);
    });
  });
});

test('a container that ends again and again comes with the time of its next start', async () => {
  const crash = await eventually('a pause before the next start', async () =>
    (await explained('pod', here('exits'))).chain.find(({ nextTry }) => nextTry !== undefined),
  );
  expect(crash.text).toMatch(/waits for its next start \(CrashLoopBackOff\)/);
});

test('a pod that is deleted: a hook, a process that ignores TERM, a finalizer', async () => {
  for (const name of ['pre-stop', 'ignores-term', 'finalized']) {
    await podWhen(lab, name, 'running', (pod) => pod.status?.phase === 'Running');
    await remove(name);
  }
  const hooked = /preStop hook of container main has not ended \(it is killed in 5\d min/;
  await verdictOf('pre-stop', 'terminating', hooked, ({ chain }) =>
    expect(chain.at(-1)?.call).toMatchObject({ name: 'preStop', with: 'the command sleep 3000' }),
  );
  await verdictOf('ignores-term', 'terminating', /process \d+ ignores SIGTERM/, (answer) =>
    expect(chainText(answer)).toMatch(/process \d+ \(sh -c .*\) is sleeping/),
  );
  const kept = await verdictOf('finalized', 'finalizer');
  expect(kept.verdict).toBe('it is deleted and has ended, and finalizer example.com/backup keeps it');
  const path = resourcePath('v1', 'pods', { namespace: lab.namespace, name: 'finalized' });
  await lab.client.patch(path, { metadata: { finalizers: null } }, 'merge');
  await Promise.all([remove('pre-stop', 1), remove('ignores-term', 1), remove('hook-ends-late', 1)]);
});

test('a pod that the scheduler preempts, and the pod that it makes room for', async () => {
  await podWhen(lab, 'outranked', 'running', (pod) => pod.status?.phase === 'Running');
  const classes = resourcePath('scheduling.k8s.io/v1', 'priorityclasses');
  await lab.client.create(classes, broken.highClass);
  try {
    await apply(lab, broken.outranker);
    const answer = await verdictOf('outranked', 'terminating', /process \d+ ignores SIGTERM/);
    expect(answer.chain).toContainEqual({
      text: 'the scheduler needs its room for a pod of higher priority (preempted): default-scheduler: preempting to accommodate a higher priority pod',
      at: expect.any(String),
    });
    // The port is taken until the other has ended.
    await verdictOf('outranker', 'no-node-fits', /no node .* takes it: .*port/);
    await remove('outranked', 1);
    await podWhen(lab, 'outranker', 'running', (pod) => pod.status?.phase === 'Running');
  } finally {
    await remove('outranker', 1);
    await lab.client.delete(`${classes}/${broken.highClass.metadata.name}`);
  }
});

test('a RuntimeClass that goes while a pod waits for its handler', async () => {
  await verdictOf('no-handler', 'runtime-class');
  await lab.client.delete('/apis/node.k8s.io/v1/runtimeclasses/explain-odd');
  const answer = await verdictOf('no-handler', 'runtime-class', /which does not exist/);
  expect(answer.verdict).toBe('it names RuntimeClass explain-odd, which does not exist');
});

test('a pod that is deleted by force is forgotten by the API server, and named while it runs on', async () => {
  await ready(lab, 'forced');
  await remove('forced', 0);
  const stubborn = /process (\d+) \(sh -c .*\) is sleeping.* and ignores SIGTERM/;
  const answer = await answerWhen(lab, 'pod', here('forced'), (seen) => {
    expect(seen).toMatchObject({
      rule: 'force-deleted',
      state: 'broken',
      verdict: `the API server has forgotten it (it was deleted by force), and container main runs still on node ${lab.nodeName}`,
    });
    expect(chainText(seen)).toMatch(stubborn);
  });
  const [, pid] = stubborn.exec(chainText(answer)) ?? [];
  // Its grace period is an hour.
  process.kill(Number(pid), 'SIGKILL');
  await eventually('the command to know nothing of it', () =>
    explained('pod', here('forced')).then(
      () => undefined,
      (error: unknown) => (/there is no pod forced/.test(errorMessage(error)) ? true : undefined),
    ),
  );
});

test('a pod, and one that is deleted, while the runtime does not answer', async () => {
  await ready(lab, 'healthy');
  await ready(lab, 'hung');
  const pid = await eventually('containerd to run', () => lab.lab.pid('containerd'));
  process.kill(pid, 'SIGSTOP');
  try {
    await remove('hung', 1);
    // First: a node whose runtime is away for long is NotReady, and its pods are then, too.
    const words = 'the container runtime of its node does not answer; the pod itself is reported as Ready';
    await eventually('the answer for the healthy pod', async () =>
      (await explained('pod', here('healthy'))).verdict === words ? true : undefined,
    );
    await verdictOf('hung', 'runtime-away', /^it is being deleted, and the container runtime/, ({ chain }) => {
      expect(chain[0]?.call?.answer).toMatch(/^\w+: .*(deadline|no answer)/i);
      expect(chain.at(-1)).toMatchObject({
        text: 'the agent waits for StopContainer',
        call: { name: 'StopContainer' },
      });
    });
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  await gone(lab, 'hung');
});

test('a pod that is deleted, and a process of the node that uses its volume', async () => {
  await ready(lab, 'busy-volume');
  const { metadata } = await lab.client.get<Pod>(
    resourcePath('v1', 'pods', { namespace: lab.namespace, name: 'busy-volume' }),
  );
  const volume = join(lab.paths.kubeletDir, 'pods', metadata.uid, 'volumes/kubernetes.io~empty-dir/cache');
  const user = spawn('sleep', ['1000'], { cwd: volume, stdio: 'ignore' });
  try {
    await remove('busy-volume', 1);
    const busy = /volume cache cannot be unmounted: process \d+ \(sleep 1000\) uses it/;
    // Before the first try to unmount it there is no failed call, and the container's own processes may be there.
    await verdictOf('busy-volume', 'volume-busy', busy, ({ chain }) => {
      expect(chain.flatMap(({ call }) => call ?? [])).toMatchObject([
        { name: 'umount', to: 'the kernel', with: volume, answer: expect.stringMatching(/busy/) },
      ]);
      expect(chain.at(-1)?.text).toContain(`process ${user.pid} (sleep 1000) uses its working directory`);
    });
  } finally {
    user.kill('SIGKILL');
  }
  await gone(lab, 'busy-volume');
});

test.each([
  ['good', 'service-ready', /1 ready pod can answer, and they listen on its ports/],
  ['misspelt', 'service-no-pods', /its selector app=web,tier=font matches none of the \d+ pods/],
  ['wrong-name', 'service-port', /the port named https, and no container of pod web has a port of that name/],
  ['wrong-port', 'service-port', /leads to TCP 9090, and nothing listens there in pod web/],
  ['wrong-protocol', 'service-port', /leads to UDP 8080, and nothing listens there in pod web/],
  ['loopback', 'service-port', /leads to TCP 8081, where pod web listens only on its loopback address/],
  ['elsewhere', 'service-external-name', /^it is only a DNS name for web\.example\.com: there are no endpoints$/],
  ['unready', 'service-not-ready', /selects 1 pod \(unready\), and none is Ready/],
])('service %s is explained by %s', async (name, rule, verdict) => {
  await ready(lab, 'web');
  await answerWhen(lab, 'service', here(name), (answer) => {
    expect(answer.rule).toBe(rule);
    expect(answer.verdict).toMatch(verdict);
    if (name !== 'misspelt') return;
    expect(chainText(answer)).toMatch(/pod web nearly matches: it has tier=front, the selector wants tier=font/);
  });
});

test('a claim without a class, one of a class that is missing, and none', async () => {
  await answerWhen(lab, 'pvc', here('classless'), (answer) => {
    expect(answer).toMatchObject({ rule: 'claim-pending', state: 'broken' });
    expect(answer.verdict).toMatch(/waits for a PersistentVolume that fits/);
    expect(answer.fine).toContain('used by unbound');
  });
  await apply(lab, {
    ...broken.classless,
    metadata: { name: 'fast' },
    spec: { ...broken.classless.spec, storageClassName: 'fast' },
  });
  await answerWhen(lab, 'pvc', here('fast'), ({ verdict }) =>
    expect(verdict).toMatch(/names StorageClass fast, which does not exist/),
  );
  await expect(explained('pvc', here('clasless'))).rejects.toThrow(/there is one called classless/);
});

test('a tainted and a cordoned node; what keeps a pod from it is named', async () => {
  const path = resourcePath('v1', 'nodes', { name: lab.nodeName });
  const taints = [{ key: 'explain', value: 'yes', effect: 'NoSchedule' }];
  // These take the place of all that it has.
  await untainted();
  await lab.client.patch(path, { spec: { taints } }, 'merge');
  try {
    await verdictOf('too-big', 'no-node-fits', /taint explain=yes:NoSchedule/, ({ commands }) =>
      expect(commands[0]?.command).toBe(`kubectl taint node ${lab.nodeName} explain:NoSchedule-`),
    );
    await lab.client.patch(path, { spec: { taints: null, unschedulable: true } }, 'merge');
    await answerWhen(lab, 'node', lab.nodeName, (answer) =>
      expect(answer).toMatchObject({ rule: 'node-cordoned', state: 'broken' }),
    );
    await verdictOf('too-big', 'no-node-fits', /cordoned/);
  } finally {
    await lab.client.patch(path, { spec: { taints: null, unschedulable: null } }, 'merge');
  }
  await untainted();
  await verdictOf('too-big', 'no-node-fits', /too little cpu/);
});

test('a CNI plugin that is not there, and a range without a free address, in the runtime’s and the plugin’s words', async () => {
  const file = join(lab.paths.cni.confDir, '00-explain.conflist');
  const write = (ipam: object): Promise<void> =>
    writeFile(file, JSON.stringify({ cniVersion: '1.0.0', name: 'explain', plugins: [{ type: 'ptp', ipam }] }));
  await write({ type: 'no-such-plugin' });
  try {
    // The agent sees that the plugin is missing: the node is NotReady, and a pod gets there past the scheduler alone.
    const there = { nodeName: lab.nodeName, tolerations: [{ operator: 'Exists' }] };
    await apply(lab, shellPod('netless', FOREVER, there));
    await verdictOf('netless', 'sandbox-failed', /CNI plugin no-such-plugin, whose program is not there/);
    // The only address of the range is the gateway's.
    const range = { subnet: '10.254.0.0/30', rangeStart: '10.254.0.1', rangeEnd: '10.254.0.1', gateway: '10.254.0.1' };
    await write({ type: 'host-local', dataDir: lab.paths.cni.leaseDir, ranges: [[range]] });
    await apply(lab, shellPod('addressless', FOREVER));
    await verdictOf('addressless', 'sandbox-failed', /the network has no free address left for it/, ({ chain }) =>
      expect(chain.at(-1)?.call?.answer).toMatch(/no IP addresses available/),
    );
  } finally {
    await rm(file);
  }
  // Not before the next try: it is ended instead.
  await Promise.all([remove('netless', 0), remove('addressless', 0)]);
});

test('the node: Ready; without a network; with a runtime that does not answer', async () => {
  await nodeWhen(lab, 'Ready', ({ status }) => status === 'True');
  // The taint of a node that was not Ready goes a moment later.
  await answerWhen(lab, 'node', lab.nodeName, ({ rule, state, fine }) => {
    expect({ rule, state }).toEqual({ rule: 'node-ready', state: 'ready' });
    expect(fine.join('\n')).toMatch(/no memory, disk, pid pressure\nits container runtime answers \(containerd/);
  });
  const conflist = lab.paths.cni.conflist;
  await rename(conflist, `${conflist}.away`);
  try {
    await answerWhen(lab, 'node', lab.nodeName, (answer) => {
      expect(answer).toMatchObject({
        rule: 'node-not-ready',
        state: 'broken',
        verdict: expect.stringMatching(/network/),
      });
      expect(answer.chain.length).toBeGreaterThan(1);
    });
    await apply(lab, shellPod('early', FOREVER, { nodeName: lab.nodeName }));
    const unready = { rule: 'node-unready', verdict: expect.stringMatching(/^its node .* is not Ready: /) };
    await verdictOf('early', 'sandbox-failed', /there is no network configuration on the node/, ({ alsoFound }) =>
      expect(alsoFound).toContainEqual(expect.objectContaining(unready)),
    );
  } finally {
    await rename(`${conflist}.away`, conflist);
  }
  await nodeWhen(lab, 'Ready again', ({ status }) => status === 'True');
  await remove('early', 0);
  const noRuntime = { runtimeEndpoint: 'unix:///run/no-such-runtime.sock' };
  const expectAway = (away: Answer): void => {
    expect(away).toMatchObject({ rule: 'node-runtime', verdict: 'its container runtime does not answer' });
    expect(away.chain[1]?.call?.answer).toMatch(/ENOENT/);
  };
  await answerWhen(lab, 'node', lab.nodeName, expectAway, noRuntime);
});

test('a node whose agent is away and that is full; a pod on it, which is then deleted, and one that wants there', async () => {
  const leases = resourcePath('coordination.k8s.io/v1', 'leases', { namespace: 'kube-node-lease' });
  await lab.client.create('/api/v1/nodes', {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'ghost', labels: { explain: 'ghost' } },
    status: { allocatable: { cpu: '1', memory: '1Gi', pods: '1' } },
  });
  try {
    await lab.client.create(leases, {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'ghost' },
      spec: { holderIdentity: 'ghost', leaseDurationSeconds: 40, renewTime: '2026-01-01T00:00:00.000000Z' },
    });
    await answerWhen(lab, 'node', 'ghost', ({ verdict, notLookedAt }) => {
      expect(verdict).toMatch(/^its agent is away: it last renewed its lease \d+ days/);
      expect(notLookedAt[0]?.what).toMatch(/^the container runtime/);
    });
    await apply(lab, shellPod('abandoned', FOREVER, { nodeName: 'ghost' }));
    await verdictOf('abandoned', 'node-away', /its node ghost is not Ready/, ({ notLookedAt }) =>
      expect(notLookedAt[0]?.why).toMatch(/the pod is on node ghost, this machine is/),
    );
    const tolerations = [{ operator: 'Exists' as const }];
    await apply(lab, shellPod('crowded', FOREVER, { nodeSelector: { explain: 'ghost' }, tolerations }));
    await verdictOf('crowded', 'no-node-fits', /too many pods/, ({ chain }) =>
      expect(chain.map(({ text }) => text)).toContainEqual('node ghost: it has 1 pod, and takes 1 at most'),
    );
    await remove('abandoned', 60);
    const deleted = /^it is being deleted, and no agent ends it: its node ghost/;
    await verdictOf('abandoned', 'node-away', deleted, ({ commands }) =>
      expect(commands.at(-1)?.command).toMatch(/--grace-period=0 --force$/),
    );
  } finally {
    // First: pods of a node that is gone are removed by the garbage collector, too.
    await Promise.all([remove('abandoned', 0), remove('crowded', 0)]);
    await lab.client.delete('/api/v1/nodes/ghost');
    await lab.client.delete(`${leases}/ghost`);
  }
});

test('--watch prints each new answer, and ends when the pod is Ready', async () => {
  let text = '';
  const options = { root: lab.root, output: 'json', watch: true } as const;
  const write = (part: string): void => {
    text += part;
  };
  const watching = runExplain('pod', here('no-configmap'), options, write, new AbortController().signal);
  await eventually('the first answer', () => (text === '' ? undefined : true));
  await apply(lab, { ...broken.settings, metadata: { name: 'setings' } });
  expect(await watching).toBe(0);
  const answers: readonly Answer[] = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(answers.map(({ rule }) => rule)).toEqual(expect.arrayContaining(['volume-object-missing', 'ready']));
  expect(answers.at(-1)?.state).toBe('ready');
});

test('the text is one screen, and the exit code tells a Ready pod from others', async () => {
  // Each look has short deadlines of its own, of which a busy machine may miss one.
  await eventually('the answer for a pod that waits', async () => {
    const { code, text } = await run('pod', here('no-secret'));
    expect(code).toBe(1);
    expect(text.split('\n').length).toBeLessThan(40);
    expect(text).toMatch(/^pod .*\/no-secret: volume data cannot be mounted/);
    return true;
  });
  await ready(lab, 'healthy');
  for (const name of ['healthy', 'finished']) {
    await eventually(`the answer for ${name}`, async () =>
      (await run('pod', here(name))).code === 0 ? true : undefined,
    );
  }
  await expect(run('pod', `${lab.namespace}/helthy`)).rejects.toThrow(/there is no pod helthy .* called healthy/);
});
