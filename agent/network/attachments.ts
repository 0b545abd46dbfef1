// The network of each sandbox: attaches it with the current configuration, detaches it with the one it was attached with,
// keeps its addresses, and removes unused attachments. Knows neither socket nor netlink.

import type { CachedAttachment } from '../../cni/cache.ts';
import type { CniOperations } from '../../cni/invocations.ts';
import { podOf } from '../../cni/request.ts';
import { parseResult } from '../../cni/result.ts';
import { type CniRuntime, usableNetns } from '../../cni/runtime.ts';
import { type Attachment, CniError, CniErrorCode, type CniResult, type NetworkConfigList } from '../../cni/types.ts';
import type { Clock, MonotonicMs } from '../../lib/clock.ts';
import type { SandboxId } from '../ports/runtime.ts';
import type { NetworkConfig } from './conf-watcher.ts';
import { isForgotten, type SandboxList } from './forgotten.ts';
import { podAddresses } from './interfaces.ts';
import type { PodLinks } from './pod-links.ts';

export interface AttachmentsOptions {
  readonly cni: CniRuntime;
  /** The network in force. */
  readonly conf: { current(): Promise<NetworkConfig> };
  readonly confDir: string;
  readonly links: Pick<PodLinks, 'attached' | 'released'>;
  readonly clock: Clock;
}

/** Why there is no network to attach to. */
export function networkProblem(config: Exclude<NetworkConfig, { kind: 'loaded' }>, confDir: string): string {
  return config.kind === 'missing' ? `no network config found in ${confDir}` : config.error.message;
}

/** The result of an attachment that was completed. */
export function resultOf(entry: CachedAttachment): CniResult | undefined {
  if (entry.state !== 'added' || entry.result === undefined) return undefined;
  return parseResult(entry.result, entry.list.cniVersion, 'cached result');
}

export class Attachments implements CniOperations {
  readonly #options: AttachmentsOptions;
  /** By sandbox, of what was attached since the start. */
  readonly #addresses = new Map<string, readonly string[]>();
  /** When the ADD of a sandbox began that is under way or has succeeded, since the start. */
  readonly #addedAt = new Map<string, MonotonicMs>();
  readonly #startedAt: MonotonicMs;

  constructor(options: AttachmentsOptions) {
    this.#options = options;
    this.#startedAt = options.clock.monotonic();
  }

  async add(attachment: Attachment): Promise<CniResult> {
    const { cni, clock, links } = this.#options;
    this.#addedAt.set(attachment.containerId, clock.monotonic());
    let result: CniResult;
    try {
      result = await cni.add(await this.#requireNetwork(), attachment);
    } catch (error) {
      // What could not be undone belongs to no sandbox that is being made.
      this.#addedAt.delete(attachment.containerId);
      throw error;
    }
    this.#addresses.set(attachment.containerId, podAddresses(result, attachment.ifName));
    // The runtime has its answer first.
    clock.after(0, () => links.attached(attachment, result, podOf(attachment.args), true));
    return result;
  }

  async del(attachment: Attachment): Promise<void> {
    const { cni, conf, links } = this.#options;
    this.#forget(attachment.containerId);
    const config = await conf.current();
    await cni.del(attachment, config.kind === 'loaded' ? config.network.list : undefined);
    links.released(attachment.containerId);
  }

  check(attachment: Attachment): Promise<void> {
    return this.#options.cni.check(attachment);
  }

  async status(): Promise<void> {
    await this.#options.cni.status(await this.#requireNetwork());
  }

  /** Of a sandbox that was attached since the start, primary first. */
  addresses(sandboxId: SandboxId): readonly string[] | undefined {
    return this.#addresses.get(sandboxId);
  }

  /** The network in force. Rejects with CniError: 11 (try again later) when there is none, 7 when it is broken. */
  async #requireNetwork(): Promise<NetworkConfigList> {
    const { conf, confDir } = this.#options;
    const config = await conf.current();
    if (config.kind === 'loaded') return config.network.list;
    const code = config.kind === 'missing' ? CniErrorCode.tryAgainLater : CniErrorCode.invalidNetworkConfig;
    throw new CniError({ code, msg: `cni plugin not initialized: ${networkProblem(config, confDir)}` });
  }

  #forget(sandboxId: string): void {
    this.#addresses.delete(sandboxId);
    this.#addedAt.delete(sandboxId);
  }

  /** Whether nothing is attached. */
  isEmpty(): boolean {
    return this.#options.cni.hasNoAttachments();
  }

  /**
   * Undoes the attachments that the runtime has forgotten; with `plugins` also has each plugin drop what is not attached
   * (CNI GC). Rejects with AggregateError for what would not go.
   */
  async collectGarbage(list: SandboxList, { plugins }: { readonly plugins: boolean }): Promise<void> {
    const { cni, conf, links } = this.#options;
    const config = plugins ? await conf.current() : undefined;
    const report = await cni.collectGarbage(
      config?.kind === 'loaded' ? config.network.list : undefined,
      async ({ containerId: sandboxId, netns }) => {
        const since = this.#addedAt.get(sandboxId) ?? this.#startedAt;
        return isForgotten({ sandboxId, since, hasNamespace: (await usableNetns(netns)) !== '' }, list);
      },
      {
        inUse: (sandboxId) => list.ids.has(sandboxId),
        alsoValid: [...list.ids].map((containerID) => ({ containerID, ifname: 'eth0' })),
      },
    );
    for (const { containerID } of report.removed) {
      this.#forget(containerID);
      links.released(containerID);
    }
    if (report.failures.length > 0) {
      const failures = report.failures.map((failure) => failure.message).join('; ');
      throw new AggregateError(report.failures, `CNI garbage collection could not free everything: ${failures}`);
    }
  }
}
