// What a source of static pods hands on, and how it complains: each complaint once, until it changes or is over.

import type { Pod } from '../../client/types.ts';
import type { Log } from '../../lib/log.ts';

/** The current problems by their object; logs each problem once, and its end. */
export class Complaints {
  readonly #log: Log;
  #standing = new Map<string, string>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** The whole of what is wrong at this moment. */
  are(now: ReadonlyMap<string, string>): void {
    for (const [subject, message] of now) {
      if (this.#standing.get(subject) !== message) this.#log('error', `${subject}: ${message}`);
    }
    for (const subject of this.#standing.keys()) {
      if (!now.has(subject)) this.#log('info', `${subject}: is valid again`);
    }
    this.#standing = new Map(now);
  }
}

export interface FoundPod {
  readonly pod: Pod;
  /** The file or the URL, for complaints. */
  readonly from: string;
}

/** Pods by uid. Of two with one name or one uid the first is taken, the other is complained about. Pure. */
export function podSet(found: readonly FoundPod[], complain: (from: string, what: string) => void): Map<string, Pod> {
  const pods = new Map<string, Pod>();
  const taken = new Map<string, string>();
  for (const { pod, from } of found) {
    const { namespace, name, uid } = pod.metadata;
    const key = `${namespace}/${name}`;
    const other = taken.get(key) ?? taken.get(uid);
    if (other !== undefined) {
      complain(from, `pod ${key} is left out: ${other} has a pod of the same name or uid`);
      continue;
    }
    taken.set(key, from).set(uid, from);
    pods.set(uid, pod);
  }
  return pods;
}

/** Whether two sets hold the very same objects. */
export function samePods(a: ReadonlyMap<string, Pod>, b: ReadonlyMap<string, Pod>): boolean {
  return a.size === b.size && [...a].every(([uid, pod]) => b.get(uid) === pod);
}
