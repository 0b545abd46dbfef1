// The queries that a lab's name server answers, as samples: its Corefile has a log whose lines are read here. A line has the address of who asked; its
// pod is known as soon as the pod's status has that address.

import { open } from 'node:fs/promises';
import type { ApiClient } from '../../../client/api.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Clock, MonotonicMs } from '../../../lib/clock.ts';
import { UserError } from '../../../lib/errors.ts';
import { poll } from '../../../lib/retry.ts';

const COREFILE_PATH = resourcePath('v1', 'configmaps', { namespace: 'kube-system', name: 'coredns' });
const MARK = 'experiment-query';
/**
 * The cluster's names, the two of other domains that the simulated world knows, a line for each answer, and no other name: the
 * root zone is a cluster's without a service.
 */
const COREFILE = `.:53 {
    errors
    ready
    log . "${MARK} {remote} {type} {name} {rcode} {duration}"
    hosts {
       203.0.113.10 example.com
       203.0.113.11 www.example.com
       fallthrough
    }
    kubernetes cluster.local . {
       pods insecure
    }
    reload
}
`;
/** What the server logs then (dns/main.ts). */
const RELOADED = 'the new Corefile is loaded';
const LOADED_MS = 20_000;
const LOOK_MS = 100;

/** One query. */
export interface LabQuery {
  readonly address: string;
  /** The address that was asked. */
  readonly server: string;
  readonly type: string;
  /** Without the dot at its end. */
  readonly name: string;
  readonly answer: string;
  readonly durationMs: number;
}

/** Undefined for a line of another kind. Pure. */
export function parseQuery(line: string, server: string): LabQuery | undefined {
  const [, address, type, name, answer, seconds] =
    new RegExp(`${MARK} (\\S+) (\\S+) (\\S+) (\\S+) ([\\d.]+)s`).exec(line) ?? [];
  if (address === undefined || type === undefined || name === undefined || answer === undefined) return undefined;
  return { address, server, type, name: name.replace(/\.$/, ''), answer, durationMs: Number(seconds) * 1000 };
}

/** Pods by address, and queries whose pod is not known yet. */
export class DnsQueries {
  readonly #pods = new Map<string, string>();
  readonly #waiting: { readonly at: MonotonicMs; readonly query: LabQuery }[] = [];
  readonly #onQuery: (at: MonotonicMs, pod: string, query: LabQuery) => void;

  constructor(onQuery: (at: MonotonicMs, pod: string, query: LabQuery) => void) {
    this.#onQuery = onQuery;
  }

  /** `pod`: "namespace/name" */
  podHas(pod: string, address: string): void {
    if (this.#pods.get(address) === pod) return;
    this.#pods.set(address, pod);
    for (const { at, query } of this.#waiting.splice(0)) this.add(at, query);
  }

  add(at: MonotonicMs, query: LabQuery): void {
    const pod = this.#pods.get(query.address);
    if (pod === undefined) this.#waiting.push({ at, query });
    else this.#onQuery(at, pod, query);
  }
}

/** Gives the lab's name server the Corefile of experiments, and waits until it is at work. `log`: the file of its log. */
export async function logQueries(
  client: ApiClient,
  log: string,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  await client.patch(COREFILE_PATH, { data: { Corefile: COREFILE } }, 'merge', { signal });
  const isLoaded = async (): Promise<boolean> =>
    (await linesFrom(log, 0)).lines.some((line) => line.includes(RELOADED));
  if (!(await poll(isLoaded, { clock, everyMs: LOOK_MS, limitMs: LOADED_MS, signal })))
    throw new UserError(`the name server has not taken its Corefile within ${LOADED_MS / 1000} s: see ${log}`);
}

/** The whole lines of a file from a byte on, and where the next ones begin. */
export async function linesFrom(path: string, from: number): Promise<{ lines: readonly string[]; next: number }> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    const data = Buffer.alloc(Math.max(0, size - from));
    const { bytesRead } = await file.read(data, 0, data.length, from);
    const end = data.subarray(0, bytesRead).lastIndexOf(0x0a) + 1;
    return { lines: data.subarray(0, end).toString('utf8').split('\n').slice(0, -1), next: from + end };
  } finally {
    await file.close();
  }
}
