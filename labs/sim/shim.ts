// How the simulated runtime calls CNI: by a shim that hands its invocation to the agent that runs, over a line that may be
// bad. With no agent there is no network; an agent that dies leaves its callers without an answer.

import { podAddresses } from '../../agent/network/interfaces.ts';
import type { CniInvocations } from '../../cni/invocations.ts';
import { isJsonObject, tryParseJson } from '../../cni/json.ts';
import type { ShimAnswer } from '../../cni/request.ts';
import { parseResult } from '../../cni/result.ts';
import type { Sandbox } from './cri/state.ts';
import type { Line } from './line.ts';
import type { SimNetwork } from './network.ts';

/** How long the runtime waits for a plugin, ms. */
const DEADLINE_MS = 120_000;
const VERSION = '1.0.0';
const IF_NAME = 'eth0';

interface Server {
  readonly invocations: CniInvocations;
  /** Rejects when the agent dies. */
  readonly death: PromiseWithResolvers<never>;
}

export class SimShim {
  readonly #line: Line;
  readonly #network: SimNetwork;
  #server: Server | undefined;

  constructor(line: Line, network: SimNetwork) {
    this.#line = line;
    this.#network = network;
  }

  /** An agent listens. */
  listen(invocations: CniInvocations): void {
    const death = Promise.withResolvers<never>();
    death.promise.catch(() => undefined);
    this.#server = { invocations, death };
  }

  /** There is no listener any more. */
  hangUp(): void {
    this.#server?.death.reject(new Error('read unix @->cni.sock: connection reset by peer'));
    this.#server = undefined;
  }

  makeNamespace(sandboxId: string): string {
    return this.#network.makeNamespace(sandboxId);
  }

  /** The namespace goes. Idempotent. */
  removeNamespace(sandbox: Sandbox): void {
    this.#network.removeNamespace(sandbox.id);
    sandbox.netns = '';
  }

  /** The runtime has forgotten a sandbox whose network it could not give back. */
  abandon({ id }: Sandbox): void {
    this.#network.abandoned.add(id);
  }

  /** CNI ADD. Returns the addresses, the primary one first. */
  async add(sandbox: Sandbox): Promise<readonly string[]> {
    const result = tryParseJson((await this.#call('ADD', sandbox)).stdout);
    return podAddresses(parseResult(result, VERSION, 'result'), IF_NAME);
  }

  /** CNI DEL. */
  async del(sandbox: Sandbox): Promise<void> {
    await this.#call('DEL', sandbox);
  }

  async #call(command: 'ADD' | 'DEL', { id, pod, netns }: Sandbox): Promise<ShimAnswer> {
    const env = {
      CNI_COMMAND: command,
      CNI_CONTAINERID: id,
      CNI_NETNS: netns,
      CNI_IFNAME: IF_NAME,
      CNI_ARGS: `IgnoreUnknown=1;K8S_POD_NAMESPACE=${pod.namespace};K8S_POD_NAME=${pod.name};K8S_POD_UID=${pod.uid}`,
    };
    const stdin = JSON.stringify({ cniVersion: VERSION, name: 'nodelet', type: 'nodelet-cni' });
    let over = false;
    const effect = (): Promise<ShimAnswer> => {
      if (this.#server === undefined) throw new Error('dial unix cni.sock: connect: connection refused');
      const { invocations, death } = this.#server;
      return Promise.race([invocations.answer({ env, stdin }, () => over), death.promise]);
    };
    try {
      const answer = await this.#line.perform(command, id, DEADLINE_MS, effect);
      if (answer.code === 0) return answer;
      const fault = tryParseJson(answer.stdout);
      const message = isJsonObject(fault) ? `${fault['msg']} ${fault['details'] ?? ''}` : answer.stdout;
      throw new Error(`plugin type="nodelet-cni" failed (${command.toLowerCase()}): ${message}`);
    } finally {
      over = true;
    }
  }
}
