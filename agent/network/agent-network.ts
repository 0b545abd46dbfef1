// PodNetwork with CNI run by the agent: the container runtime's calls come in through the shim's socket, the chain of
// the conf dir is run, and what became of it is kept, shown and collected. --network=agent.

import type { CachedAttachment } from '../../cni/cache.ts';
import { podOf } from '../../cni/request.ts';
import { parseResult } from '../../cni/result.ts';
import { CniRuntime, usableNetns } from '../../cni/runtime.ts';
import { CniServer } from '../../cni/server.ts';
import { installShim, writeShimConf } from '../../cni/shim/install.ts';
import { type Attachment, CniError, CniErrorCode, type CniResult, type NetworkConfigList } from '../../cni/types.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { PodInterface } from '../ports/node.ts';
import type { RuntimeConditionSnapshot, SandboxId } from '../ports/runtime.ts';
import { ConfWatcher } from './conf-watcher.ts';
import { podAddresses, podInterfaces } from './interfaces.ts';
import { NetlinkWatcher } from './netlink.ts';
import type { AgentNetwork, AgentNetworkOptions } from './options.ts';
import { PodLinks } from './pod-links.ts';

/**
 * A sandbox that is being made is in no listing yet, but has its network. An attachment without a listed sandbox
 * is left alone this long, in ms, while its network namespace exists: the kubelet's own limit for RunPodSandbox.
 */
const SANDBOX_CREATION_MS = 240_000;

export function createAgentNetwork(options: AgentNetworkOptions): AgentNetwork {
  return new CniAgentNetwork(options);
}

/** What a broken or missing network is called by the kubelet and by containerd; people search for these words. */
const NOT_INITIALIZED = 'Network plugin returns error: cni plugin not initialized';

class CniAgentNetwork implements AgentNetwork {
  readonly #options: AgentNetworkOptions;
  readonly #cni: CniRuntime;
  readonly #conf: ConfWatcher;
  readonly #netlink: NetlinkWatcher;
  readonly #links: PodLinks;
  readonly #server: CniServer;
  /** By sandbox, of what was attached since the start. */
  readonly #addresses = new Map<string, readonly string[]>();
  #probe: Promise<RuntimeConditionSnapshot> | undefined;

  constructor(options: AgentNetworkOptions) {
    this.#options = options;
    const { binDirs, cacheDir, tracer, clock, exec, pluginTimeoutMs, onError } = options;
    this.#cni = new CniRuntime({ binDirs, cacheDir, tracer, clock, exec, pluginTimeoutMs });
    this.#conf = new ConfWatcher(options.confDir, () => options.onStatusChange?.(), onError, options.clock);
    this.#netlink = new NetlinkWatcher(onError);
    this.#links = new PodLinks(this.#netlink.tables, tracer);
    this.#server = new CniServer({
      clock,
      socketPath: options.socketPath,
      tracer,
      onError,
      operations: {
        add: (attachment) => this.#add(attachment),
        del: (attachment) => this.#del(attachment),
        check: (attachment) => this.#cni.check(attachment),
        status: async () => this.#cni.status(await this.#requireNetwork()),
      },
    });
  }

  async start(listSandboxes?: () => Promise<readonly SandboxId[]>): Promise<void> {
    const { shim, binDirs, socketPath } = this.#options;
    await this.#conf.start();
    this.#netlink.subscribe((change) => this.#links.changed(change));
    await this.#netlink.start();
    this.#takeInCache();
    await this.#server.start();
    if (shim !== undefined) {
      await installShim(shim.binDir, { socketPath, pluginDirs: binDirs });
      // Last: from the moment the conflist is there, the runtime takes pods.
      await writeShimConf(shim.confDir);
    }
    if (listSandboxes !== undefined) void this.#collectOnStart(listSandboxes);
  }

  async close(): Promise<void> {
    this.#conf.close();
    this.#netlink.close();
    await this.#server.close();
  }

  #takeInCache(): void {
    const { entries, broken } = this.#cni.allAttachments();
    for (const error of broken) this.#options.onError('CNI attachment cache', error);
    for (const entry of entries) {
      const result = resultOf(entry);
      if (result !== undefined) this.#links.attached(entry, result, podOf(entry.args), false);
    }
  }

  async #collectOnStart(listSandboxes: () => Promise<readonly SandboxId[]>): Promise<void> {
    try {
      await this.#options.tracer.within({ cause: 'agent start' }, async () =>
        this.collectGarbage(await listSandboxes()),
      );
    } catch (error) {
      this.#options.onError('CNI garbage collection on start', error);
    }
  }

  async #add(attachment: Attachment): Promise<CniResult> {
    const result = await this.#cni.add(await this.#requireNetwork(), attachment);
    this.#addresses.set(attachment.containerId, podAddresses(result, attachment.ifName));
    // The runtime has its answer first.
    setImmediate(() => this.#links.attached(attachment, result, podOf(attachment.args), true));
    return result;
  }

  async #del(attachment: Attachment): Promise<void> {
    this.#addresses.delete(attachment.containerId);
    const config = await this.#conf.current();
    await this.#cni.del(attachment, config.kind === 'loaded' ? config.network.list : undefined);
    this.#links.released(attachment.containerId);
  }

  /** The network in force. Rejects with CniError: 11 (try again later) when there is none, 7 when it is broken. */
  async #requireNetwork(): Promise<NetworkConfigList> {
    const config = await this.#conf.current();
    if (config.kind === 'loaded') return config.network.list;
    const code = config.kind === 'missing' ? CniErrorCode.tryAgainLater : CniErrorCode.invalidNetworkConfig;
    throw new CniError({ code, msg: `cni plugin not initialized: ${this.#problem(config)}` });
  }

  #problem(config: { kind: 'missing' } | { kind: 'broken'; error: Error }): string {
    return config.kind === 'missing' ? `no network config found in ${this.#options.confDir}` : config.error.message;
  }

  status(): Promise<RuntimeConditionSnapshot> {
    // One question at a time: callers that come while plugins are asked share the answer.
    this.#probe ??= this.#status().finally(() => {
      this.#probe = undefined;
    });
    return this.#probe;
  }

  async #status(): Promise<RuntimeConditionSnapshot> {
    const notReady = (message: string): RuntimeConditionSnapshot => ({
      ok: false,
      reason: 'NetworkPluginNotReady',
      message,
    });
    const config = await this.#conf.current();
    if (config.kind !== 'loaded') return notReady(`${NOT_INITIALIZED}: ${this.#problem(config)}`);
    if (!this.#server.listening) {
      return notReady(`Network plugin returns error: nobody listens on the CNI socket ${this.#options.socketPath}`);
    }
    try {
      await this.#cni.status(config.network.list);
    } catch (error) {
      return notReady(`Network plugin returns error: ${config.network.file}: ${errorMessage(error)}`);
    }
    return { ok: true, reason: '', message: '' };
  }

  async result(sandboxId: SandboxId): Promise<CniResult | undefined> {
    for (const entry of this.#cni.attachments(sandboxId)) {
      const result = resultOf(entry);
      if (result !== undefined) return result;
    }
    return undefined;
  }

  addresses(sandboxId: SandboxId): readonly string[] | undefined {
    return this.#addresses.get(sandboxId);
  }

  async interfaces(sandboxId: SandboxId): Promise<readonly PodInterface[]> {
    const entries = this.#cni.attachments(sandboxId);
    return entries.flatMap((entry) => {
      const result = resultOf(entry);
      return result === undefined ? [] : podInterfaces(result, entry.ifName, this.#netlink.tables);
    });
  }

  async collectGarbage(valid: readonly SandboxId[]): Promise<void> {
    const config = await this.#conf.current();
    const alive = new Set<string>(valid);
    const now = this.#options.clock.now();
    const report = await this.#cni.collectGarbage(
      config.kind === 'loaded' ? config.network.list : undefined,
      async (entry) =>
        !alive.has(entry.containerId) &&
        (now - entry.createdAt > SANDBOX_CREATION_MS || (await usableNetns(entry.netns)) === ''),
      valid.map((containerID) => ({ containerID, ifname: 'eth0' })),
    );
    for (const { containerID } of report.removed) {
      this.#addresses.delete(containerID);
      this.#links.released(containerID);
    }
    if (report.failures.length > 0) {
      const said = report.failures.map((failure) => failure.message).join('; ');
      throw new AggregateError(report.failures, `CNI garbage collection could not free everything: ${said}`);
    }
  }
}

/** The result of an attachment that was completed. */
function resultOf(entry: CachedAttachment): CniResult | undefined {
  if (entry.state !== 'added' || entry.result === undefined) return undefined;
  return parseResult(entry.result, entry.list.cniVersion, 'cached result');
}
