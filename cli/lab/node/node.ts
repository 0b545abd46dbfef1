// One of several nodes of a lab: its network, its containerd, its agent and its proxy, on a disk (a directory) of its own. Starts and ends it
// in each way in which a machine does.

import { mkdir } from 'node:fs/promises';
import { ensureNodeClient } from '../../../apiserver/pki/ensure.ts';
import { writeKubeconfig } from '../../../apiserver/pki/kubeconfig.ts';
import type { Credential, Pki } from '../../../apiserver/pki/types.ts';
import type { ApiClient } from '../../../client/api.ts';
import { isNotFound, isTransient } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Lease, Node } from '../../../client/types.ts';
import { importImages } from '../../../labs/images/import.ts';
import { writeFileAtomic } from '../../../lib/atomic.ts';
import type { Clock } from '../../../lib/clock.ts';
import { errorMessage, UserError } from '../../../lib/errors.ts';
import { unmountWhere } from '../../../lib/mounts.ts';
import { poll } from '../../../lib/retry.ts';
import { labContainerdPaths } from '../clean.ts';
import { removeCgroups } from '../clean-cgroups.ts';
import { renderConflist, renderKubeletConfiguration } from '../config.ts';
import {
  clearContainerd,
  containerdReady,
  type Snapshotter,
  spawnContainerd,
  writeContainerdConfig,
} from '../containerd.ts';
import { Launcher } from '../launcher.ts';
import { type MirrorPlan, writeMirrors } from '../mirrors.ts';
import type { LabOptions } from '../options.ts';
import { inArea } from '../ownership.ts';
import type { LabPaths } from '../paths.ts';
import { netpolProgram } from '../programs.ts';
import { nodeReady } from '../ready.ts';
import { mountAreas } from '../root.ts';
import type { NodeCondition, NodeView } from './actions.ts';
import {
  connectNode,
  disconnectNode,
  inNetns,
  nodeBridgesAreFiltered,
  removeLink,
  setLink,
  withHostName,
} from './network.ts';
import type { NodePlan, RangePlan } from './plan.ts';
import { endPodProcesses, killNodeProcesses, nodeEnvironment } from './processes.ts';
import { nodeAgentProgram, nodeProxyProgram } from './programs.ts';

/** For giving up only: an emulated machine is twenty times slower than a real one. */
const READY_MS = 300_000;
/** What runs in pods has this long to end when the node is stopped. */
const STOP_GRACE_MS = 5_000;
const KUBELET_PORT = 10250;
const LOOK_MS = 30;

/** What the nodes of a lab share. */
export interface NodeContext {
  readonly lab: LabPaths;
  readonly range: string;
  readonly rangePlan: RangePlan;
  /** The API server's URL on the bridge. */
  readonly server: string;
  readonly pki: Pki;
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly say: (line: string) => void;
  /** Puts a node's directories on the list of what the lab made. */
  readonly list: (node: LabPaths) => Promise<void>;
  /** One import of images after the other: the first one fills the cache for the rest. */
  readonly inTurn: (work: () => Promise<void>) => Promise<void>;
  /** The server in pods' resolv.conf; undefined: the machine's. */
  readonly clusterDNS: string | undefined;
  /** Where images are pulled from. */
  readonly mirrors: Promise<MirrorPlan | undefined>;
  readonly options: Pick<
    LabOptions,
    'proxy' | 'proxyFlags' | 'netpol' | 'agentFlags' | 'kubeletConfiguration' | 'images' | 'restart'
  >;
}

export class LabNode {
  readonly plan: NodePlan;
  readonly #context: NodeContext;
  #condition: NodeCondition = 'stopped';
  #launcher: Launcher | undefined;
  /** The action in progress. */
  #work: Promise<void> = Promise.resolve();

  constructor(context: NodeContext, plan: NodePlan) {
    this.#context = context;
    this.plan = plan;
  }

  get view(): NodeView {
    const { name, zone, address, podCIDR, paths, netns } = this.plan;
    return {
      name,
      condition: this.#condition,
      ...(zone === undefined ? {} : { zone }),
      address,
      podCIDR,
      root: paths.root,
      netns,
      runtimeSocket: paths.containerd.socket,
      traceSocket: paths.traceSocket,
    };
  }

  /** Its processes may run. */
  get isUp(): boolean {
    return this.#condition === 'running' || this.#condition === 'partitioned';
  }

  get launcher(): Launcher | undefined {
    return this.#launcher;
  }

  /**
   * Performs an action. Rejects with UserError when the node is in none of the conditions `from`. After a failure the node is in the
   * condition `otherwise`.
   */
  async #change(
    what: string,
    from: readonly NodeCondition[],
    [to, otherwise]: readonly [NodeCondition, NodeCondition],
    work: () => Promise<void>,
  ): Promise<void> {
    const { name } = this.plan;
    if (!from.includes(this.#condition)) throw new UserError(refusal(name, this.#condition, what, to));
    this.#condition = 'changing';
    try {
      this.#work = work();
      await this.#work;
      this.#condition = to;
      this.#context.say(`${name} is ${to}`);
    } catch (error) {
      this.#condition = otherwise;
      throw error;
    }
  }

  /** Resolves when the node is Ready, and its images are there. */
  start(others: readonly NodePlan[], signal: AbortSignal): Promise<void> {
    return this.#change('started', ['stopped', 'killed'], ['running', 'killed'], async () => {
      try {
        await this.#start(others, signal);
      } catch (error) {
        await this.#end();
        throw error;
      }
    });
  }

  stop(): Promise<void> {
    return this.#change('stopped', ['running', 'partitioned'], ['stopped', 'killed'], async () => {
      await this.#launcher?.release();
      await this.#launcher?.stop('agent', 'proxy', 'netpol');
      await endPodProcesses(this.plan.paths, this.#context.clock, STOP_GRACE_MS);
      await this.#launcher?.stop('containerd');
      await this.#end();
    });
  }

  kill(): Promise<void> {
    return this.#change('killed', ['running', 'partitioned'], ['killed', 'killed'], () => this.#end());
  }

  partition(): Promise<void> {
    return this.#change('partitioned', ['running'], ['partitioned', 'running'], () => setLink(this.plan, false));
  }

  heal(): Promise<void> {
    return this.#change('healed', ['partitioned'], ['running', 'partitioned'], () => setLink(this.plan, true));
  }

  /** With the lab: the rest is taken down with it. */
  async leave(): Promise<void> {
    // The caller of that action gets its error.
    await this.#work.catch(() => undefined);
    await this.#launcher?.release();
    await this.#launcher?.stop('agent', 'proxy', 'netpol');
  }

  async #start(others: readonly NodePlan[], signal: AbortSignal): Promise<void> {
    const { plan } = this;
    const { lab, range, rangePlan, clock, options } = this.#context;
    const { name, paths, netns } = plan;
    // Of a node that comes back the cluster still shows what it last heard.
    const renewed = await leaseRenewal(this.#context.client, name);
    await connectNode(lab, range, rangePlan, plan, others);
    const snapshotter = await this.#writeFiles();
    signal.throwIfAborted();
    const env = nodeEnvironment(lab, paths);
    const hopeless = new AbortController();
    const launcher = new Launcher({
      paths,
      env,
      clock,
      say: this.#context.say,
      restart: options.restart,
      of: ` of ${plan.name}`,
      onHopeless: (error) => hopeless.abort(error),
    });
    this.#launcher = launcher;
    const containerd = labContainerdPaths(paths);
    const child = await launcher.launch('containerd', () =>
      spawnContainerd(containerd, env, true, (program) => withHostName(name, inNetns(netns, program))),
    );
    await containerdReady(containerd, child, clock);
    signal.throwIfAborted();
    await launcher.launchProgram('agent', inNetns(netns, nodeAgentProgram(plan, options.agentFlags)));
    if (options.proxy !== undefined) {
      const choice = {
        mode: options.proxy,
        pods: rangePlan.pods,
        masqueradeAll: !(await nodeBridgesAreFiltered(plan)),
      };
      await launcher.launchProgram('proxy', inNetns(netns, nodeProxyProgram(plan, choice, options.proxyFlags)));
    }
    if (options.netpol === true && (await nodeBridgesAreFiltered(plan))) {
      await launcher.launchProgram('netpol', inNetns(netns, netpolProgram(paths, plan.name)));
    }
    const stop = AbortSignal.any([signal, hopeless.signal]);
    await Promise.all([this.#ready(renewed, stop), this.#importImages(snapshotter, stop)]);
  }

  async #writeFiles(): Promise<Snapshotter> {
    const { plan } = this;
    const { lab, server, pki, clock, options, list, clusterDNS } = this.#context;
    const { paths } = plan;
    const directories: readonly (readonly [string, number])[] = [
      [paths.root, 0o755],
      [paths.kubeletDir, 0o750],
      [paths.logDir, 0o755],
      [paths.cni.shimConfDir, 0o755],
      [paths.cni.shimBinDir, 0o755],
      [paths.runDir, 0o711],
    ];
    for (const [path, mode] of directories) await mkdir(path, { recursive: true, mode });
    await list(paths);
    const agent = await ensureNodeClient(lab.pkiDir, pki.ca, plan.name, clock.now());
    const kubeconfig = (path: string, user: string, client: Credential): Promise<void> =>
      writeKubeconfig(path, { server, ca: pki.ca.cert, user, client });
    await kubeconfig(paths.kubeconfigs.agent, 'agent', agent);
    await kubeconfig(paths.kubeconfigs.proxy, 'proxy', pki.clients.proxy);
    await kubeconfig(paths.kubeconfigs.netpol, 'netpol', pki.clients.netpol);
    const network = { subnet: plan.podCIDR, forwardDrops: false, routed: true };
    await writeFileAtomic(paths.cni.conflist, renderConflist(paths, network));
    const { kubeletConfiguration: more = {} } = options;
    const kubelet = { port: KUBELET_PORT, clientCAFile: pki.ca.certPath, clusterDNS, more };
    await writeFileAtomic(paths.kubeletConfig, renderKubeletConfiguration(paths, kubelet));
    return writeContainerdConfig({
      paths: labContainerdPaths(paths),
      cniConfDir: paths.cni.shimConfDir,
      cniBinDir: paths.cni.shimBinDir,
    });
  }

  async #importImages(snapshotter: Snapshotter, signal: AbortSignal): Promise<void> {
    const { clock, options, inTurn, mirrors } = this.#context;
    const { socket, registryConfigDir } = this.plan.paths.containerd;
    await writeMirrors(registryConfigDir, await mirrors);
    const source = options.images ?? 'auto';
    if (source === 'none') return;
    await inTurn(async () => {
      await importImages({ socket, snapshotter, source, clock, signal });
    });
  }

  /** The lab is what assigns podCIDRs: its routes follow them. */
  async #ready(renewed: string | undefined, signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#context;
    const { name, podCIDR, paths } = this.plan;
    try {
      const limits = { clock, everyMs: LOOK_MS, limitMs: READY_MS, signal };
      const isBack = async (): Promise<boolean> => (await leaseRenewal(client, name)) !== renewed;
      if (!(await poll(isBack, limits))) throw new Error(`not heard of after ${READY_MS / 1000} s`);
      await nodeReady(client, name, { clock, timeoutMs: READY_MS, signal });
    } catch (error) {
      signal.throwIfAborted();
      throw new UserError(`the node ${name} is ${errorMessage(error)}; its logs are in ${paths.logDir}`);
    }
    const path = resourcePath('v1', 'nodes', { name });
    const { spec } = await client.get<Node>(path);
    if (spec?.podCIDR === podCIDR) return;
    if (spec?.podCIDR !== undefined && spec.podCIDR !== '') {
      throw new UserError(
        `the node ${name} has the addresses ${spec.podCIDR} of an earlier lab, and ${podCIDR} in this one: ` +
          `kubectl delete node ${name}, and start it again`,
      );
    }
    await client.patch(path, { spec: { podCIDR, podCIDRs: [podCIDR] } }, 'merge');
  }

  /** The link first, so that no process sends anything while it dies. Then all that a machine without power does not have any more. */
  async #end(): Promise<void> {
    const { plan } = this;
    const { clock } = this.#context;
    const { paths } = plan;
    await removeLink(plan);
    await Promise.all([this.#launcher?.kill(), killNodeProcesses(paths, clock)]);
    await clearContainerd(labContainerdPaths(paths), clock);
    const areas = mountAreas(paths).map(({ path }) => path);
    await unmountWhere((mount) => mount === paths.kubeletDir || areas.some((area) => inArea(mount, area)));
    await removeCgroups(paths.cgroupRoot, clock);
    await disconnectNode(plan);
    this.#launcher = undefined;
  }
}

/** Why an action is refused. Pure. */
export function refusal(name: string, condition: NodeCondition, what: string, to: NodeCondition): string {
  if (condition === 'changing') return `${name} is not ${what}: another action is in progress`;
  return condition === to ? `${name} is ${condition} already` : `${name} is ${condition}: it cannot be ${what}`;
}

/** When the node's agent was last heard of; undefined for one that never was, and while the API server does not answer. */
async function leaseRenewal(client: ApiClient, node: string): Promise<string | undefined> {
  const path = resourcePath('coordination.k8s.io/v1', 'leases', { namespace: 'kube-node-lease', name: node });
  try {
    return (await client.get<Lease>(path)).spec?.renewTime;
  } catch (error) {
    if (isNotFound(error) || isTransient(error)) return undefined;
    throw error;
  }
}
