// The agent's health: the text of /healthz and of /metrics. Invariants that were violated are shown in both and
// fail neither: the agent counts and logs them and continues. Pure.

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

/** The value of a label in Prometheus' text format. */
function labelValue(text: string): string {
  return text.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n');
}

export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** /metrics, in Prometheus' text format 0.0.4. None of the kubelet's own metrics is in it. */
export function metrics(violations: Violations): string {
  const name = 'nodelet_invariant_violations_total';
  const samples = [...violations].map(
    ([invariant, count]) => `${name}{invariant="${labelValue(invariant)}"} ${count}\n`,
  );
  return [
    `# HELP ${name} Statements about the program that did not hold since it started, by statement.\n`,
    `# TYPE ${name} counter\n`,
    ...samples,
  ].join('');
}
