// What an exercise is: data, and small code that sets it up, reads the machine, and decides from what was read. The frame
// around it (commands, text, state, solution) is cli/exercises. Interfaces and their two helpers only.

import type { CriClient } from '../../agent/runtime/cri-client.ts';
import type { ApiClient } from '../../client/api.ts';

/** One thing that `check` has read. */
export interface Finding {
  /** What was read: a file, a mount, a cgroup, an object of the API. */
  readonly subject: string;
  readonly found: string;
  /** What is still to be done; absent where all is as it should be. */
  readonly missing?: string;
}

/** `missing` counts only where `ok` is false. Pure. */
export function finding(subject: string, found: string, ok: boolean, missing: string): Finding {
  return ok ? { subject, found } : { subject, found, missing };
}

/** Where things of the lab are. Needs no component of the lab to run. */
export interface Ground {
  readonly root: string;
  /** Eight hex digits: part of every name that must differ between labs. */
  readonly hash: string;
  /** The exercise's own directory: manifests, what the user makes, the environment file. */
  readonly directory: string;
  readonly runDir: string;
  readonly runtimeSocket: string;
  /** The agent's root: pods/<uid>/volumes. */
  readonly kubeletDir: string;
  readonly kubeletConfig: string;
  readonly podLogsDir: string;
  /** The parent of `kubepods`. */
  readonly cgroupRoot: string;
  readonly cgroupDriver: 'cgroupfs' | 'systemd';
  readonly cniConfDir: string;
  readonly cniBinDir: string;
  /** Whole, for programs that are part of the lab while the exercise is under way: by it `nodelet down` knows them. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** A lab that runs. */
export interface Machine extends Ground {
  readonly client: ApiClient;
  /** The exercise's own, and the default one of its kubeconfig. */
  readonly namespace: string;
  readonly nodeName: string;
  readonly cri: CriClient;
}

export interface Exercise {
  /** Its directory below labs/exercises. */
  readonly name: string;
  /** For the list: one line. */
  readonly title: string;
  /** What one knows afterwards: printed when it is solved. One or two sentences. */
  readonly lesson: string;
  readonly minutes: number;
  /**
   * It changes what all pods of the node share: the Node, its CNI configuration, the agent's configuration. They are put back
   * at its end.
   */
  readonly changesNode?: true;
  /** It needs a lab on this runtime. */
  readonly runtime?: 'containerd';
  /** From a nudge to nearly the answer. */
  readonly hints: readonly string[];
  /** More variables of its shell. */
  readonly variables?: (ground: Ground) => Readonly<Record<string, string>>;
  /** Cgroups below the lab's cgroupRoot that the user's commands make. */
  readonly cgroups?: readonly string[];
  /** What world.yaml cannot do. */
  readonly setUp?: (machine: Machine) => Promise<void>;
  /** Takes away what its commands leave at the lab's runtime. Idempotent. */
  readonly restore?: (machine: Machine) => Promise<void>;
  /** Takes away what its commands leave outside its directory and the lab. Idempotent; the lab need not run. */
  readonly remove?: (ground: Ground) => Promise<void>;
  /** Reads the machine and the API, and decides. Solved when no finding misses anything. */
  readonly check: (machine: Machine) => Promise<readonly Finding[]>;
}

/** Nothing is missing. Pure. */
export function isSolved(findings: readonly Finding[]): boolean {
  return findings.length > 0 && findings.every(({ missing }) => missing === undefined);
}
