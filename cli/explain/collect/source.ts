// What the collectors read from, and the list of what could not be had. A failure of a server, of the runtime or of the
// kernel becomes a gap with its reason; anything else is a mistake of this program and is thrown.

import { RuntimeError } from '../../../agent/ports/runtime.ts';
import type { CriClient } from '../../../agent/runtime/cri-client.ts';
import type { ApiClient } from '../../../client/api.ts';
import { ApiError, isForbidden, isNotFound, UnreachableError } from '../../../client/errors.ts';
import type { EpochMs } from '../../../lib/clock.ts';
import { errnoOf, errorMessage } from '../../../lib/errors.ts';
import type { Gap, Lookup } from '../facts.ts';

/** This machine, where it is a node of the cluster; or one of a lab's nodes on it. */
export interface LocalNode {
  /** Name of its Node. */
  readonly name: string;
  /** "unix:///run/containerd/containerd.sock" */
  readonly endpoint: string;
  readonly cri: CriClient;
  /** The agent's trace; a kubelet has none. */
  readonly traceSocket: string;
  /** KubeletConfiguration.cgroupRoot */
  readonly cgroupRoot: string;
  /** Of the node's agent; undefined: what its process or kubeadm's place for it shows. */
  readonly agentKubeconfig: string | undefined;
  /** Its KubeletConfiguration, for an agent that does not run. */
  readonly agentConfig: string | undefined;
  /** Where the node's addresses and proxy rules are: a file such as /run/netns/n1; undefined: as this process. */
  readonly networkNamespace: string | undefined;
}

export interface Sources {
  readonly client: ApiClient;
  readonly now: () => EpochMs;
  /** The nodes that this machine is: one, or those of a lab with several; none where they may not be read. */
  readonly locals: readonly LocalNode[];
  /** Why there are none. */
  readonly notLocal: string;
  /** The pod from which a Service is looked for; undefined: any of its namespace on this machine. */
  readonly from?: string | undefined;
}

/** The node of that name, where it is on this machine. */
export function localNode({ locals }: Pick<Sources, 'locals'>, name: string | undefined): LocalNode | undefined {
  return locals.find((local) => local.name === name);
}

/** Why a node is not among the local ones: "this machine is n1". */
export function elsewhere({ locals, notLocal }: Pick<Sources, 'locals' | 'notLocal'>): string {
  if (locals.length === 0) return notLocal;
  return `this machine is ${locals.map(({ name }) => name).join(', ')}`;
}

function isOutside(error: unknown): boolean {
  if (error instanceof ApiError || error instanceof UnreachableError || error instanceof RuntimeError) return true;
  return errnoOf(error) !== undefined;
}

export class Gaps {
  readonly #list: Gap[] = [];

  add(what: string, why: string): void {
    if (!this.#list.some((gap) => gap.what === what && gap.why === why)) this.#list.push({ what, why });
  }

  get list(): readonly Gap[] {
    return this.#list;
  }

  /** What `work` resolves to; `otherwise`, and a gap, where it fails. */
  async attempt<T>(what: string, otherwise: T, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!isOutside(error)) throw error;
      this.add(what, isForbidden(error) ? `not allowed: ${errorMessage(error)}` : errorMessage(error));
      return otherwise;
    }
  }

  /** An object that may be absent. */
  async lookup<T>(what: string, work: () => Promise<T>): Promise<Lookup<T>> {
    try {
      return { state: 'found', value: await work() };
    } catch (error) {
      if (isNotFound(error)) return { state: 'absent' };
      if (!isOutside(error)) throw error;
      this.add(what, errorMessage(error));
      return { state: 'unknown', why: errorMessage(error) };
    }
  }
}

export function found<T>(lookup: Lookup<T> | undefined): T | undefined {
  return lookup?.state === 'found' ? lookup.value : undefined;
}
