// The network of each sandbox: attaches it with the current configuration, detaches it with the one it was attached with,
// keeps its addresses, and removes unused attachments. Knows neither socket nor netlink.

import type { CachedAttachment } from '../../cni/cache.ts';
import type { CniOperations } from '../../cni/invocations.ts';
import { podOf } from '../../cni/request.ts';
import { parseResult } from '../../cni/result.ts';
import { type CniRuntime, usableNetns } from '../../cni/runtime.ts';
import { type Attachment, CniError, CniErrorCode, type CniResult, type NetworkConfigList } from '../../cni/types.ts';
import type { Clock } from '../../lib/clock.ts';
import type { SandboxId } from '../ports/runtime.ts';
import type { NetworkConfig } from './conf-watcher.ts';
import { podAddresses } from './interfaces.ts';
import type { PodLinks } from './pod-links.ts';

/**
 * A sandbox that is being made is in no listing yet, but has its network. An attachment without a listed sandbox
 * is left alone this long, in ms, while its network namespace exists: the kubelet's own limit for RunPodSandbox.
 */
const SANDBOX_CREATION_MS = 240_000;

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

  constructor(options: AttachmentsOptions) {
    this.#options = options;
  }

  async add(attachment: Attachment): Promise<CniResult> {
    const { cni, clock, links } = this.#options;
    const result = await cni.add(await this.#requireNetwork(), attachment);
    this.#addresses.set(attachment.containerId, podAddresses(result, attachment.ifName));
    // The runtime has its answer first.
    clock.after(0, () => links.attached(attachment, result, podOf(attachment.args), true));
    return result;
  }

  async del(attachment: Attachment): Promise<void> {
    const { cni, conf, links } = this.#options;
    this.#addresses.delete(attachment.containerId);
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

  /** Undoes the attachments of sandboxes that are not among `valid`. Rejects with AggregateError for what would not go. */
  async collectGarbage(valid: readonly SandboxId[]): Promise<void> {
    const { cni, conf, clock, links } = this.#options;
    const config = await conf.current();
    const alive = new Set<string>(valid);
    const now = clock.now();
    const report = await cni.collectGarbage(
      config.kind === 'loaded' ? config.network.list : undefined,
      async (entry) =>
        !alive.has(entry.containerId) &&
        (now - entry.createdAt > SANDBOX_CREATION_MS || (await usableNetns(entry.netns)) === ''),
      valid.map((containerID) => ({ containerID, ifname: 'eth0' })),
    );
    for (const { containerID } of report.removed) {
      this.#addresses.delete(containerID);
      links.released(containerID);
    }
    if (report.failures.length > 0) {
      const failures = report.failures.map((failure) => failure.message).join('; ');
      throw new AggregateError(report.failures, `CNI garbage collection could not free everything: ${failures}`);
    }
  }
}
