// The API server has forgotten the pod (--force), and its containers still run on this machine.

import { elapsedMs } from '../../../lib/clock.ts';
import { crictlCommand } from '../command-text.ts';
import type { GonePodFacts } from '../facts.ts';
import type { Cause, Finding, Rule } from '../finding.ts';
import { processText } from '../process-text.ts';
import { duration, list, plural } from '../words.ts';

/** Calls that end a container or sandbox. */
const STOPS = ['StopContainer', 'StopPodSandbox', 'RemovePodSandbox', 'KillContainer', 'preStop'];

export function forceDeletedFinding(facts: GonePodFacts): Finding {
  const { runtime, processes, open, node, now, namespace, name } = facts;
  const running = runtime.containers.filter(({ state }) => state === 'RUNNING').map((container) => container.name);
  const sandbox = runtime.sandboxes.find(({ ready }) => ready);
  const stop = open.findLast((call) => STOPS.includes(call.name));
  const what =
    running.length === 0
      ? 'its sandbox is'
      : `${plural(running.length, 'container').replace(/^1 /, '')} ${list(running)} ${running.length === 1 ? 'runs' : 'run'}`;
  const ending: Cause =
    stop === undefined
      ? { text: `the agent of node ${node} ends it as soon as it learns that the pod is gone` }
      : {
          text: `the agent of node ${node} is ending it`,
          call: {
            name: stop.name,
            to: 'the container runtime',
            answer: `none yet, after ${duration(elapsedMs(stop.start, now))}`,
          },
          since: stop.start,
        };
  return {
    state: 'broken',
    verdict: `the API server has forgotten it (it was deleted by force), and ${what} still on node ${node}`,
    chain: [
      {
        text: 'a pod that is deleted with --force is gone from the API server at once, whatever its node does',
        call: { name: `GET pods/${name}`, to: 'the API server', with: `namespace ${namespace}`, answer: 'not found' },
      },
      {
        text: 'the runtime still has its sandbox',
        ...(sandbox === undefined ? {} : { since: sandbox.created }),
      },
      ending,
      ...processes.slice(0, 3).map((each) => ({ text: processText(each) })),
    ],
    commands: [
      ...(sandbox === undefined
        ? []
        : [
            {
              command: crictlCommand(runtime, `stopp ${sandbox.id.slice(0, 13)}`),
              why: 'on the node: ends it by hand',
            },
          ]),
      { command: crictlCommand(runtime, 'pods'), why: 'on the node: the sandboxes that the runtime has' },
    ],
  };
}

export const forceDeleted: Rule<GonePodFacts> = { name: 'force-deleted', find: forceDeletedFinding };
