// /healthz, /livez and /readyz, with each check by its path, ?verbose and ?exclude, in kube-apiserver's form. What is checked
// is server.ts's.

import type { HealthPath, HealthSlis } from './health-slis.ts';

export interface HealthCheck {
  /** "etcd", "poststarthook/rbac/bootstrap-roles" */
  readonly name: string;
  /** Only a server that does not pass it yet, or any more, is not ready; it is alive all the same. */
  readonly readinessOnly?: boolean;
  /** Throws or rejects where it fails. */
  readonly check: () => void | Promise<void>;
}

export interface HealthAnswer {
  readonly code: number;
  readonly body: string;
  /** Names of the checks that failed, and why: for the log. */
  readonly failures: readonly string[];
}

const PATH = /^\/(healthz|livez|readyz)(?:\/(.*))?$/;

export function isHealthPath(path: string): boolean {
  return PATH.test(path);
}

/** The answer to a health path; undefined where it names no check. What the checks of a whole path say is counted in `slis`. */
export async function answerHealth(
  path: string,
  query: URLSearchParams,
  all: readonly HealthCheck[],
  slis?: HealthSlis,
): Promise<HealthAnswer | undefined> {
  const [, found, one = ''] = PATH.exec(path) ?? [];
  const root = found === 'livez' || found === 'readyz' ? found : 'healthz';
  const checks = all.filter(({ readinessOnly }) => readinessOnly !== true || root === 'readyz');
  if (one === '') return answerAll(root, query, checks, slis);
  const named = checks.find(({ name }) => name === one);
  if (named === undefined) return undefined;
  const why = await failure(named);
  if (why === undefined) return { code: 200, body: 'ok', failures: [] };
  return { code: 500, body: `internal server error: ${why}\n`, failures: [`${one}: ${why}`] };
}

async function answerAll(
  root: HealthPath,
  query: URLSearchParams,
  checks: readonly HealthCheck[],
  slis: HealthSlis | undefined,
): Promise<HealthAnswer> {
  const excluded = new Set(query.getAll('exclude').filter((name) => name !== ''));
  const failures: string[] = [];
  const lines: string[] = [];
  for (const one of checks) {
    if (excluded.delete(one.name)) {
      lines.push(`[+]${one.name} excluded: ok`);
      continue;
    }
    const why = await failure(one);
    slis?.observe(one.name, root, why === undefined);
    if (why !== undefined) failures.push(`${one.name}: ${why}`);
    // The health is open to all, the reasons are for the log.
    lines.push(why === undefined ? `[+]${one.name} ok` : `[-]${one.name} failed: reason withheld`);
  }
  if (excluded.size > 0) {
    const names = [...excluded].map((name) => JSON.stringify(name)).join(',');
    lines.push(`warn: some health checks cannot be excluded: no matches for ${names}`);
  }
  const text = lines.map((line) => `${line}\n`).join('');
  if (failures.length > 0) return { code: 500, body: `${text}${root} check failed\n`, failures };
  return { code: 200, body: query.has('verbose') ? `${text}${root} check passed\n` : 'ok', failures };
}

async function failure({ check }: HealthCheck): Promise<string | undefined> {
  try {
    await check();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
