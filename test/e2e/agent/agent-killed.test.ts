// What a killed agent leaves is taken up by the next one: wherever it was in a pod's start or end, nothing is doubled,
// nothing leaked, and nothing restarted. The agent calls containerd through `nodelet tap fault`, which stops it at named
// points: before a call reaches containerd, or after containerd has done it and before the agent knows. What containerd
// does with a call whose client goes away in the middle is not the agent's, and is in the simulator.

import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { FaultProxy } from '../../../cli/tap/fault-proxy.ts';
import type { FaultRule } from '../../../cli/tap/fault-rules.ts';
import type { Pod } from '../../../client/types.ts';
import { removeTree } from '../../../lib/remove-tree.ts';
import { criEndpoint, type PrivateLab, startLab } from '../support/lab.ts';
import {
  apply,
  container,
  deletePods,
  eventually,
  FOREVER,
  getPod,
  gone,
  nothingLeft,
  podResources,
  ready,
  shellPod,
} from './harness.ts';

type Call =
  | 'RunPodSandbox'
  | 'CreateContainer'
  | 'StartContainer'
  | 'StopContainer'
  | 'StopPodSandbox'
  | 'RemovePodSandbox';
/** Where the agent is: the call was made and has not arrived, or has been carried out and its answer has not arrived. */
type Side = 'before' | 'after';

/** One kill: a pod that starts and, from the second on, the pod before it, which ends, are each at a point of theirs. */
const KILLS: readonly { readonly side: Side; readonly starting: Call; readonly ending: Call }[] = [
  { side: 'before', starting: 'RunPodSandbox', ending: 'StopContainer' },
  { side: 'after', starting: 'RunPodSandbox', ending: 'StopContainer' },
  { side: 'before', starting: 'CreateContainer', ending: 'StopPodSandbox' },
  { side: 'after', starting: 'CreateContainer', ending: 'StopPodSandbox' },
  { side: 'before', starting: 'StartContainer', ending: 'RemovePodSandbox' },
  { side: 'after', starting: 'StartContainer', ending: 'RemovePodSandbox' },
];

let lab: PrivateLab;
let directory: string;
let proxy: FaultProxy;
const lines: string[] = [];
let steady: Pod;
let steadyThings: readonly string[];

function pointOf(side: Side, call: Call): string {
  return `${side} ${call}`;
}

/** One call of each point's pod, once. */
function rule(side: Side, call: Call, pod: string): FaultRule {
  const effect = { kind: side === 'before' ? 'hang' : 'drop' } as const;
  const name = pointOf(side, call);
  return {
    name,
    method: call,
    pod,
    container: undefined,
    nth: undefined,
    count: 1,
    probability: 1,
    delayMs: 0,
    effect,
  };
}

const podOf = (index: number): string => `pod-${index}`;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-killed-'));
  lab = await startLab({ kills: true, restart: { initialMs: 100, maxMs: 100, factor: 1, resetMs: 0 } });
  await apply(lab, shellPod('steady', FOREVER));
  steady = await ready(lab, 'steady');
  steadyThings = await podResources(lab);
  const socket = join(directory, 'fault.sock');
  const rules = KILLS.flatMap(({ side, starting, ending }, index) => [
    rule(side, starting, podOf(index)),
    rule(side, ending, podOf(index - 1)),
  ]);
  proxy = new FaultProxy({
    listen: socket,
    to: criEndpoint(lab).replace('unix://', ''),
    faults: { seed: 1, rules },
    log: (line) => lines.push(line),
  });
  await proxy.listen();
  // From the next agent on.
  const config: object = parse(await readFile(lab.paths.kubeletConfig, 'utf8'));
  await writeFile(lab.paths.kubeletConfig, stringify({ ...config, containerRuntimeEndpoint: `unix://${socket}` }));
});
afterAll(async () => {
  await lab?.stop();
  await proxy?.close();
  await removeTree(directory);
});

async function killAgent(): Promise<void> {
  const old = await eventually('the agent to run', () => lab.lab.pid('agent'));
  process.kill(old, 'SIGKILL');
  await eventually('another agent', () => {
    const next = lab.lab.pid('agent');
    return next !== undefined && next !== old ? true : undefined;
  });
}

/** Waits until the agent is there. */
async function reached(side: Side, call: Call, pod: string): Promise<void> {
  const about = `${call} default/${pod}`;
  const isThere = (line: string): boolean =>
    line.startsWith(about) &&
    (side === 'before' ? line.includes(`(${pointOf(side, call)})`) : line.endsWith(': the runtime has answered'));
  await eventually(`the agent to be ${pointOf(side, call)} of ${pod}`, () => (lines.some(isThere) ? true : undefined));
}

test('agent killed while a pod runs: the next one takes it as it is', async () => {
  await killAgent();
  const serves = async (): Promise<true | undefined> =>
    (await lab.tryKubectl(['exec', 'steady', '--', 'true'])).code === 0 ? true : undefined;
  await eventually('the agent to serve', serves);
  const now = await getPod(lab, 'steady');
  expect(container(now)).toMatchObject({ restartCount: 0, containerID: container(steady).containerID });
  let things: readonly string[] = [];
  await eventually('the same resources as before', async () => {
    things = await podResources(lab);
    return things.join('\n') === steadyThings.join('\n') ? true : undefined;
  }).catch(() => expect(things).toEqual(steadyThings));
});

for (const [index, { side, starting, ending }] of KILLS.entries()) {
  const leaving = index === 0 ? undefined : podOf(index - 1);
  const endingToo = leaving === undefined ? '' : `, and ${side} ${ending} of another that ends`;
  test(`agent killed ${side} ${starting} of a pod that starts${endingToo}`, async () => {
    const name = podOf(index);
    await apply(lab, shellPod(name, FOREVER));
    if (leaving !== undefined) await deletePods(lab, [leaving], { wait: false });
    await reached(side, starting, name);
    if (leaving !== undefined) await reached(side, ending, leaving);
    await killAgent();
    expect(container(await ready(lab, name))).toMatchObject({ restartCount: 0, lastState: {} });
    if (leaving !== undefined) await gone(lab, leaving);
    await eventually(`one of everything for ${name}`, async () => {
      const things = (await podResources(lab)).filter((thing) => !steadyThings.includes(thing));
      const counts = ['lease ', 'link ', 'process '].map((kind) => things.filter((one) => one.startsWith(kind)).length);
      if (counts.some((each) => each !== 1)) throw new Error(`leases, links, shims: ${counts.join(', ')}`);
      return true;
    });
  });
}

test('nothing of them is left, and the pod that ran is as it was', async () => {
  await lab.kubectl('delete', 'pod', podOf(KILLS.length - 1));
  await nothingLeft(lab, steadyThings);
  const now = await getPod(lab, 'steady');
  expect(container(now)).toMatchObject({ restartCount: 0, containerID: container(steady).containerID });
});
