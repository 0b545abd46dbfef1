// A node that becomes Unknown, because its agent is stopped by a signal: the process is there, and does nothing.

import { join } from 'node:path';
import { resourcePath } from '../../../client/paths.ts';
import type { Lease, Node } from '../../../client/types.ts';
import { readFileIfExists } from '../../../lib/atomic.ts';
import { elapsedMs, systemClock } from '../../../lib/clock.ts';
import { type ProcessEntry, type ProcessId, readProcess, signalProcess } from '../../../lib/processes.ts';
import { poll } from '../../../lib/retry.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import { type Exercise, type Finding, finding, type Ground } from '../model.ts';
import { nodeFinding } from '../node.ts';

/** After how long without renewal the controller gives a node up, s. */
const GRACE_SECONDS = 40;

/** For giving up only. ms */
const STOPPED_MS = 120_000;

const STATES: ReadonlyMap<string, string> = new Map([
  ['R', 'runs'],
  ['S', 'sleeps, as a server does between requests'],
  ['D', 'waits for a device'],
  ['T', 'stopped by a signal'],
  ['t', 'stopped by a debugger'],
  ['Z', 'dead'],
]);

export interface Facts {
  readonly agent: Pick<ProcessEntry, 'pid' | 'state'> | undefined;
  /** Since the lease was renewed; undefined when it never was. */
  readonly leaseSeconds: number | undefined;
  readonly node: Node;
}

/** Pure. */
export function evaluate({ agent, leaseSeconds, node }: Facts): readonly Finding[] {
  const state =
    agent === undefined ? 'there is none' : `pid ${agent.pid}: ${agent.state}, ${STATES.get(agent.state) ?? 'unknown'}`;
  return [
    finding(
      'process of the agent (/proc/PID/stat)',
      state,
      agent !== undefined && 'RSD'.includes(agent.state),
      'it is to go on',
    ),
    finding(
      'lease of the node',
      leaseSeconds === undefined ? 'never renewed' : `renewed ${Math.round(leaseSeconds)} s ago`,
      leaseSeconds !== undefined && leaseSeconds < GRACE_SECONDS,
      `it is to be renewed within ${GRACE_SECONDS} s`,
    ),
    nodeFinding(node),
  ];
}

async function agentOf({ runDir }: Ground): Promise<ProcessId | undefined> {
  const text = await readFileIfExists(join(runDir, 'pids', 'agent.json'));
  return text === undefined ? undefined : JSON.parse(text);
}

async function signalAgent(ground: Ground, signal: NodeJS.Signals): Promise<void> {
  const agent = await agentOf(ground);
  if (agent !== undefined) await signalProcess(agent, signal);
}

export const nodeSilent: Exercise = {
  name: 'node-silent',
  title: 'A node that has gone silent: Unknown',
  lesson:
    'False is what a kubelet says of itself, Unknown what a controller says of a kubelet whose lease has run out.',
  minutes: 10,
  changesNode: true,
  hints: [
    'Who sets the condition when the kubelet itself cannot? Look at the lease: when was it renewed last?',
    'The process is there. What is its state, in the column STAT of ps?',
    'A process in state T goes on with `kill -CONT PID`.',
  ],
  setUp: async (machine) => {
    await signalAgent(machine, 'SIGSTOP');
    // A thread that is in a system call stops a moment later.
    const stopped = async (): Promise<boolean> => {
      const agent = await agentOf(machine);
      return agent !== undefined && (await readProcess(agent.pid))?.state === 'T';
    };
    if (!(await poll(stopped, { clock: systemClock, everyMs: 20, limitMs: STOPPED_MS })))
      throw new Error('the agent does not stop');
  },
  restore: (machine) => signalAgent(machine, 'SIGCONT'),
  check: async (machine) => {
    const { client, nodeName } = machine;
    const agent = await agentOf(machine);
    const lease = await client.get<Lease>(
      resourcePath('coordination.k8s.io/v1', 'leases', { namespace: 'kube-node-lease', name: nodeName }),
    );
    const renewed = parseRfc3339(lease.spec?.renewTime);
    return evaluate({
      agent: agent === undefined ? undefined : await readProcess(agent.pid),
      leaseSeconds: renewed === undefined ? undefined : elapsedMs(renewed, systemClock.now()) / 1000,
      node: await client.get<Node>(resourcePath('v1', 'nodes', { name: nodeName })),
    });
  },
};
