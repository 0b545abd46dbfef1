// `nodelet explain` on a real node: pods that are broken in all sorts of ways at the same time, in one lab, and the answer for
// each. The command's own code is called in this process; test/e2e/docs runs the program.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runExplain } from '../../../cli/explain/main.ts';
import { resourcePath } from '../../../client/paths.ts';
import { apply, eventually, podWhen } from '../agent/harness.ts';
import type { TestLab } from '../support/lab.ts';
import { shareLab } from '../support/shared-lab.ts';
import * as broken from './broken.ts';

let lab: TestLab;

interface Link {
  readonly text: string;
  readonly call?: { readonly name: string; readonly to: string; readonly with?: string; readonly answer?: string };
  readonly since?: string;
  readonly at?: string;
  readonly count?: number;
  readonly nextTry?: string;
}

interface Answer {
  readonly rule: string;
  readonly state: string;
  readonly verdict: string;
  readonly chain: readonly Link[];
  readonly commands: readonly { readonly command: string }[];
  readonly details: readonly { readonly lines: readonly string[] }[];
  readonly alsoFound: readonly { readonly rule: string; readonly verdict: string }[];
  readonly fine: readonly string[];
  readonly notLookedAt: readonly { readonly what: string; readonly why: string }[];
}

async function run(kind: string, name: string, output: 'text' | 'json'): Promise<{ code: number; text: string }> {
  let text = '';
  const options = { root: lab.root, output, watch: false };
  const write = (more: string): void => {
    text += more;
  };
  const code = await runExplain(kind, name, options, write, new AbortController().signal);
  return { code, text };
}

async function explained(kind: string, name: string): Promise<Answer> {
  return JSON.parse((await run(kind, name, 'json')).text);
}

/** Waits until this rule gives the verdict: what comes before it (starting, being pulled) is right in its time. */
async function verdictOf(name: string, rule: string, verdict: RegExp = /./): Promise<Answer> {
  let last: Answer | undefined;
  const look = async (): Promise<Answer | undefined> => {
    last = await explained('pod', `${lab.namespace}/${name}`);
    return last.rule === rule && verdict.test(last.verdict) ? last : undefined;
  };
  return await eventually(`the rule ${rule} with ${verdict} for pod ${name}`, look, 120_000).catch((error: unknown) => {
    throw new Error(`${error}; the answer is ${JSON.stringify(last, undefined, 1)}`);
  });
}

const remove = (name: string, gracePeriodSeconds?: number): Promise<unknown> =>
  lab.client.delete(
    resourcePath('v1', 'pods', { namespace: lab.namespace, name }),
    gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds },
  );

beforeAll(async () => {
  lab = await shareLab();
  await apply(lab, broken.settings, broken.classless, broken.healthy, ...broken.stubborn);
  await apply(lab, ...broken.pending, ...broken.creating, ...broken.images, ...broken.starting, ...broken.unready);
  await apply(lab, ...broken.ended(lab.nodeName), ...broken.crashing);
});

afterAll(async () => {
  await lab?.stop();
});

interface Case {
  readonly pod: string;
  readonly rule: string;
  readonly verdict: RegExp;
  /** A call that is in the chain, as "NAME → TO: ANSWER". */
  readonly call?: RegExp;
  readonly details?: RegExp;
  readonly text?: RegExp;
}

const cases: readonly Case[] = [
  // Pending
  {
    pod: 'too-big',
    rule: 'no-node-fits',
    verdict: /^no node .*takes it: too little cpu$/,
    text: /cpu: 1000 requested, .* free \(\d+ allocatable, .* requested by \d+ pods?\)/,
  },
  {
    pod: 'selective',
    rule: 'no-node-fits',
    verdict: /its labels do not match/,
    text: /nodeSelector wants disk=ssd, the node has no label disk/,
  },
  { pod: 'gated', rule: 'scheduling-gate', verdict: /waits for scheduling gate example\.com\/approval to be removed/ },
  { pod: 'unscheduled', rule: 'no-scheduler', verdict: /no scheduler named absent has considered it/ },
  {
    pod: 'port-second',
    rule: 'no-node-fits',
    verdict: /host port \d+ is taken/,
    text: /belongs to pod .*\/port-first/,
  },
  {
    pod: 'claimless',
    rule: 'claim-not-bound',
    verdict: /uses claim nowhere, which does not exist/,
    call: /GET persistentvolumeclaims\/nowhere → the API server: not found/,
  },
  { pod: 'unbound', rule: 'claim-not-bound', verdict: /claim classless waits for a PersistentVolume that fits/ },
  // ContainerCreating
  {
    pod: 'no-configmap',
    rule: 'volume-object-missing',
    verdict: /volume data cannot be mounted: ConfigMap setings does not exist \(there is one called settings\)/,
    call: /GET configmaps\/setings → the API server: configmaps "setings" not found/,
  },
  { pod: 'no-secret', rule: 'volume-object-missing', verdict: /volume data .*Secret password does not exist/ },
  { pod: 'no-key', rule: 'volume-object-missing', verdict: /ConfigMap settings has no key color \(it has colour\)/ },
  {
    pod: 'no-driver',
    rule: 'csi-driver-missing',
    verdict: /volume data needs CSI driver none\.example\.com, which is not registered on node/,
    call: /none\.example\.com: .*none\.example\.com/,
  },
  // Images
  { pod: 'bad-name', rule: 'image-name', verdict: /"Busybox:Stable!" – / },
  { pod: 'never', rule: 'image-never', verdict: /example\.com\/none:1 .* imagePullPolicy Never forbids to pull it/ },
  {
    pod: 'no-dns',
    rule: 'image-pull',
    verdict: /registry registry\.invalid cannot be resolved \(DNS\)/,
    call: /PullImage → the container runtime: .*lookup registry\.invalid/,
  },
  { pod: 'no-tcp', rule: 'image-pull', verdict: /registry 127\.0\.0\.1:1 refuses connections \(TCP\)/ },
  // Config and start
  { pod: 'env-configmap', rule: 'environment-missing', verdict: /variable WANTED .*ConfigMap setings does not exist/ },
  { pod: 'env-key', rule: 'environment-missing', verdict: /ConfigMap settings has no key color \(it has colour\)/ },
  { pod: 'env-secret', rule: 'environment-missing', verdict: /Secret password does not exist/ },
  { pod: 'root-user', rule: 'run-as-non-root', verdict: /may not run as root .*would run as root/ },
  {
    pod: 'no-command',
    rule: 'container-start',
    verdict: /its command no-such-program is not in the image/,
    call: /StartContainer → the container runtime: .*executable file not found/,
  },
  { pod: 'no-permission', rule: 'container-start', verdict: /\/etc\/passwd cannot be executed \(permission denied\)/ },
  {
    pod: 'no-seccomp',
    rule: 'container-start',
    verdict: /seccomp profile .*none\.json cannot be loaded/,
    call: /CreateContainer → the container runtime: .*none\.json/,
  },
  // CrashLoopBackOff
  {
    pod: 'exits',
    rule: 'crash-loop',
    verdict: /ends again and again with exit code 3$/,
    details: /cannot open the database/,
  },
  { pod: 'completes', rule: 'crash-loop', verdict: /exit code 0, and restartPolicy Always starts it again/ },
  { pod: 'segfaults', rule: 'crash-loop', verdict: /exit code 139: SIGSEGV, it used memory that is not its own/ },
  {
    pod: 'oom',
    rule: 'out-of-memory',
    verdict: /needs more memory than its limit of 16 MiB/,
    call: /oom-kill → the kernel: SIGKILL/,
    text: /the most that the pod has used is/,
  },
  { pod: 'unhealthy', rule: 'probe-kills', verdict: /because its liveness probe fails: the cache is cold/ },
  { pod: 'hook', rule: 'hook-failed', verdict: /postStart hook fails: .*exited with 7/ },
  {
    pod: 'init-fails',
    rule: 'crash-loop',
    verdict: /init container prepare ends .* exit code 4/,
    details: /no schema/,
  },
  // Running, not Ready
  {
    pod: 'refused',
    rule: 'probe-fails',
    verdict: /its readiness probe fails: .*connection refused/,
    call: /readiness probe → container main: .*connection refused, .* after its start/,
  },
  { pod: 'unready', rule: 'probe-fails', verdict: /its readiness probe fails: the cache is cold/ },
  { pod: 'starts-long', rule: 'probe-fails', verdict: /its startup probe fails: the cache is cold/ },
  { pod: 'readiness-gate', rule: 'readiness-gate', verdict: /readiness gate example\.com\/balancer is not set/ },
  // Ended
  {
    pod: 'out-of-cpu',
    rule: 'rejected',
    verdict: /refused it: it has too little cpu left/,
    text: /the pod requested 1000 cpu; of the node’s \d+ cpu, .* were in use, .* free/,
  },
  { pod: 'wrong-node', rule: 'rejected', verdict: /labels do not match/, text: /disk=ssd \(it has no such label\)/ },
  { pod: 'late', rule: 'deadline-exceeded', verdict: /it was ended after 1 s, as its activeDeadlineSeconds demands/ },
  {
    pod: 'gives-up',
    rule: 'failed',
    verdict: /container main failed with exit code 5, and restartPolicy Never/,
    details: /no licence/,
  },
  { pod: 'finished', rule: 'succeeded', verdict: /it has finished/ },
  // Nothing wrong
  { pod: 'healthy', rule: 'ready', verdict: /^it is Ready/ },
  // The eviction manager measures at intervals
  { pod: 'over-limit', rule: 'evicted', verdict: /emptyDir volume data grew beyond its sizeLimit of 1Mi/ },
];

describe.each(cases)('$pod', ({ pod, rule, verdict, call, details, text }) => {
  test(`is explained by ${rule}`, async () => {
    const answer = await verdictOf(pod, rule, verdict);
    const calls = answer.chain.flatMap((link) => link.call ?? []);
    const words = calls.map(({ name, to, answer: got }) => `${name} → ${to}: ${got}`).join('\n');
    if (call !== undefined) expect(words).toMatch(call);
    if (text !== undefined) expect(answer.chain.map((link) => link.text).join('\n')).toMatch(text);
    if (details !== undefined) expect(answer.details.flatMap(({ lines }) => lines).join('\n')).toMatch(details);
    expect(answer.notLookedAt).toEqual([]);
  });
});

test('a failed call comes with its count, and with the time of its next try', async () => {
  const link = await eventually('a link with a count', async () => {
    const answer = await verdictOf('no-dns', 'image-pull');
    return answer.chain.find(({ call, nextTry }) => call?.name === 'PullImage' && nextTry !== undefined);
  });
  expect(link.nextTry).toMatch(/^\d{4}-/);
  expect(link.at ?? link.since).toMatch(/^\d{4}-/);
  const crash = await eventually('a pause before the next start', async () =>
    (await explained('pod', `${lab.namespace}/exits`)).chain.find(({ nextTry }) => nextTry !== undefined),
  );
  expect(crash.text).toMatch(/waits for its next start \(CrashLoopBackOff\)/);
});

test('a pod that is deleted: a hook, a process that ignores TERM, a finalizer', async () => {
  for (const name of ['pre-stop', 'ignores-term', 'finalized']) {
    await podWhen(lab, name, 'running', (pod) => pod.status?.phase === 'Running');
    await remove(name);
  }
  const hook = await verdictOf(
    'pre-stop',
    'terminating',
    /preStop hook of container main has not ended \(it is killed in 59 min/,
  );
  expect(hook.chain.at(-1)?.call).toMatchObject({ name: 'preStop', with: 'the command sleep 3000' });
  const stubborn = await verdictOf('ignores-term', 'terminating', /process \d+ ignores SIGTERM/);
  expect(stubborn.chain.map((link) => link.text).join('\n')).toMatch(/process \d+ \(sh -c .*\) is sleeping/);
  const kept = await verdictOf('finalized', 'finalizer');
  expect(kept.verdict).toBe('it is deleted and has ended, and finalizer example.com/backup keeps it');
  const path = resourcePath('v1', 'pods', { namespace: lab.namespace, name: 'finalized' });
  await lab.client.patch(path, { metadata: { finalizers: null } }, 'merge');
  await Promise.all([remove('pre-stop', 1), remove('ignores-term', 1)]);
});

test('the text is one screen, and the exit code tells a Ready pod from others', async () => {
  const { code, text } = await run('pod', `${lab.namespace}/no-configmap`, 'text');
  expect(code).toBe(1);
  expect(text.split('\n').length).toBeLessThan(40);
  expect(text).toMatch(/^pod .*\/no-configmap: volume data cannot be mounted/);
  expect((await run('pod', `${lab.namespace}/healthy`, 'text')).code).toBe(0);
  expect((await run('pod', `${lab.namespace}/finished`, 'text')).code).toBe(0);
  await expect(run('pod', `${lab.namespace}/helthy`, 'text')).rejects.toThrow(
    /there is no pod helthy .* called healthy/,
  );
});
