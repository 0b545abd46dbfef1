// PodNetwork with CNI run by the agent: the container runtime's calls come in through the shim's socket, the chain of
// the conf dir is run, and what became of it is kept, shown and collected. --network=agent.

import { podOf } from '../../cni/request.ts';
import { CniRuntime } from '../../cni/runtime.ts';
import { CniServer } from '../../cni/server.ts';
import { installShim, writeShimConf } from '../../cni/shim/install.ts';
import type { CniResult } from '../../cni/types.ts';
import { errorMessage } from '../../lib/errors.ts';
import { singleFlight } from '../../lib/single-flight.ts';
import type { PodInterface } from '../ports/node.ts';
import type { RuntimeConditionSnapshot, SandboxId } from '../ports/runtime.ts';
import { Attachments, networkProblem, resultOf } from './attachments.ts';
import { collectPeriodically } from './collector.ts';
import { ConfWatcher } from './conf-watcher.ts';
import { podInterfaces } from './interfaces.ts';
import { NetlinkWatcher } from './netlink.ts';
import type { AgentNetwork, AgentNetworkOptions } from './options.ts';
import { PodLinks } from './pod-links.ts';

export function createAgentNetwork(options: AgentNetworkOptions): AgentNetwork {
  return new CniAgentNetwork(options);
}

/** The kubelet's and containerd's message for a broken or missing network. */
const NOT_INITIALIZED = 'Network plugin returns error: cni plugin not initialized';

class CniAgentNetwork implements AgentNetwork {
  readonly #options: AgentNetworkOptions;
  readonly #cni: CniRuntime;
  readonly #conf: ConfWatcher;
  readonly #netlink: NetlinkWatcher;
  readonly #links: PodLinks;
  readonly #server: CniServer;
  readonly #attachments: Attachments;
  readonly #closing = new AbortController();
  /** One STATUS at a time: concurrent callers share the result. */
  readonly status = singleFlight(() => this.#status());

  constructor(options: AgentNetworkOptions) {
    this.#options = options;
    const { binDirs, cacheDir, tracer, clock, exec, pluginTimeoutMs, onError } = options;
    this.#cni = new CniRuntime({ binDirs, cacheDir, tracer, clock, exec, pluginTimeoutMs });
    this.#conf = new ConfWatcher(options.confDir, () => options.onStatusChange?.(), onError, options.clock);
    this.#netlink = new NetlinkWatcher(onError);
    this.#links = new PodLinks(this.#netlink.tables, tracer);
    this.#attachments = new Attachments({
      cni: this.#cni,
      conf: this.#conf,
      confDir: options.confDir,
      links: this.#links,
      clock,
    });
    this.#server = new CniServer({
      clock,
      socketPath: options.socketPath,
      tracer,
      onError,
      operations: this.#attachments,
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
      await installShim(shim.binDir, {
        socketPath,
        pluginDirs: binDirs,
        ...(shim.node === undefined ? {} : { node: shim.node }),
      });
      // Last: from the moment the conflist is there, the runtime takes pods.
      await writeShimConf(shim.confDir);
    }
    if (listSandboxes === undefined) return;
    const { tracer, clock, onError } = this.#options;
    const collector = { attachments: this.#attachments, listSandboxes, clock, tracer, onError };
    void collectPeriodically(collector, this.#closing.signal);
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('the agent stops'));
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

  async #status(): Promise<RuntimeConditionSnapshot> {
    const notReady = (message: string): RuntimeConditionSnapshot => ({
      ok: false,
      reason: 'NetworkPluginNotReady',
      message,
    });
    const config = await this.#conf.current();
    if (config.kind !== 'loaded')
      return notReady(`${NOT_INITIALIZED}: ${networkProblem(config, this.#options.confDir)}`);
    if (!this.#server.listening) {
      return notReady(`Network plugin returns error: nothing listens on the CNI socket ${this.#options.socketPath}`);
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
    return this.#attachments.addresses(sandboxId);
  }

  async interfaces(sandboxId: SandboxId): Promise<readonly PodInterface[]> {
    const entries = this.#cni.attachments(sandboxId);
    return entries.flatMap((entry) => {
      const result = resultOf(entry);
      return result === undefined ? [] : podInterfaces(result, entry.ifName, this.#netlink.tables);
    });
  }
}
