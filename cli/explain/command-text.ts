// The commands that an answer ends with work as they are printed: on this machine's runtime, and for the cluster that was asked
// about. Pure.

import type { RuntimeFacts } from './facts.ts';
import type { Explanation, NamedFinding } from './finding.ts';

/** "nodelet crictl …" for the runtime of this machine's node; without one, to be typed on the node itself. */
export function crictlCommand(runtime: Pick<RuntimeFacts, 'endpoint'> | undefined, rest: string): string {
  return `nodelet crictl${runtime === undefined ? '' : ` --runtime-endpoint ${runtime.endpoint}`} ${rest}`;
}

const EXPLAIN = /^nodelet explain\b/;

/** `flags`: those of `nodelet explain` that chose the cluster, such as "--root DIR"; '' for none. */
export function withFlags(explanation: Explanation, flags: string): Explanation {
  if (flags === '') return explanation;
  const complete = (finding: NamedFinding): NamedFinding => ({
    ...finding,
    commands: finding.commands.map((each) => ({
      ...each,
      command: each.command.replace(EXPLAIN, (start) => `${start} ${flags}`),
    })),
  });
  return { ...explanation, finding: complete(explanation.finding), others: explanation.others.map(complete) };
}
