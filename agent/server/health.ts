// The agent's health: the text of /healthz. Invariants that were violated are shown, and fail nothing: the agent counts and logs
// them and continues. Pure.

/** How often each invariant was violated since the process started, by name (lib/invariant.ts). */
export type Violations = ReadonlyMap<string, number>;

/** One line for /healthz, in the form of the checks' lines, but of no check. */
function invariantsLine(violations: Violations): string {
  const all = [...violations];
  if (all.length === 0) return '[i]invariants: none violated\n';
  const total = all.reduce((sum, [, count]) => sum + count, 0);
  const each = all.map(([name, count]) => `"${name}" ${count}`).join(', ');
  return `[i]invariants: violated ${total} times since the agent started: ${each}\n`;
}

export interface Health {
  /** 200 or 500. */
  readonly status: number;
  readonly body: string;
}

/**
 * /healthz, in the format of k8s.io/apiserver's healthz with the kubelet's three checks; each of them is listed with
 * `verbose`, and when one fails. The sync loop is the only one that can fail, and the reason is withheld, as upstream.
 */
export function healthz(syncLoopMoves: boolean, verbose: boolean, violations: Violations): Health {
  if (syncLoopMoves && !verbose) return { status: 200, body: 'ok' };
  const syncLoop = syncLoopMoves ? '[+]syncloop ok\n' : '[-]syncloop failed: reason withheld\n';
  const list = `[+]ping ok\n[+]log ok\n${syncLoop}${verbose ? invariantsLine(violations) : ''}`;
  return syncLoopMoves
    ? { status: 200, body: `${list}healthz check passed\n` }
    : { status: 500, body: `${list}healthz check failed\n` };
}
