// A running lab: a private containerd, the embedded API server, the control plane and the agent, each its own process,
// supervised from here. `startLab` is what `nodelet up`, the demo and the tests use; it either returns a lab whose node
// is Ready or leaves nothing behind.

import { systemdRuns } from '../../agent/node/systemd-slices.ts';
import type { Pki } from '../../apiserver/pki/types.ts';
import { restoreStore } from '../../apiserver/storage/restore.ts';
import { ApiClient } from '../../client/api.ts';
import { loadKubeconfig } from '../../client/kubeconfig.ts';
import { resourcePath } from '../../client/paths.ts';
import { dockerVersion, writeDaemonConfig } from '../../labs/docker/dockerd.ts';
import type { BuiltImage } from '../../labs/images/build.ts';
import { importImages } from '../../labs/images/import.ts';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { errorMessage, UserError } from '../../lib/errors.ts';
import { Tracer } from '../../lib/trace.ts';
import { Announcer, type AnnouncingNode } from './announcer.ts';
import { cleanLab, labContainerdPaths } from './clean.ts';
import { topCgroup } from './clean-cgroups.ts';
import { containerdReady, containerdVersion, criReady, type Snapshotter, spawnContainerd } from './containerd.ts';
import { applyCsiObjects, STORAGE_CLASSES } from './csi.ts';
import { answersAt, applyDnsObjects, makeBridge } from './dns.ts';
import { dockerdProgram, loadIntoDocker } from './docker.ts';
import { clearEarlierDemo, leftoverLines } from './earlier.ts';
import { type ServerAddress, serverAddress, serverUrl, writeIdentities } from './identities.ts';
import { Launcher } from './launcher.ts';
import { loadBalancerRange } from './load-balancers.ts';
import { writeMachineFiles } from './machine-files.ts';
import { type MirrorPlan, writeMirrors } from './mirrors.ts';
import { netpolObjects } from './netpol.ts';
import type { NodeActions } from './node/actions.ts';
import { LabWithNodes } from './node/lab-nodes.ts';
import { planRange } from './node/plan.ts';
import type { LabOptions, RunningLab } from './options.ts';
import type { LabPaths, LabProcess } from './paths.ts';
import { prepareLab } from './prepare.ts';
import { labEnvironment } from './processes.ts';
import {
  agentProgram,
  apiserverProgram,
  controlplaneProgram,
  csiDriverProgram,
  dnsProgram,
  dockershimProgram,
  hasControlplane,
  netpolProgram,
  proxyProgram,
  registryProgram,
} from './programs.ts';
import { deletePods, nodeReady } from './ready.ts';
import { refuseCombinations } from './refusals.ts';
import { planMirrors, registryServes } from './registry.ts';
import { type LabState, runtimeSocket } from './state.ts';
import { makeObjects, whenServed } from './system-objects.ts';
import { labAt, type TakenRoot, takeRoot } from './take-root.ts';

export type { LabOptions, RunningLab } from './options.ts';

/** For giving up only: an emulated machine is twenty times slower than a real one. */
const READY_MS = 300_000;
/** How long pods may take to end by themselves when the lab goes down, and how long we wait for it. */
const POD_GRACE_SECONDS = 3;
const PODS_GONE_MS = 15_000;

/** Starts a lab. Rejects with UserError: not root, no containerd or systemd, root in use, port taken. */
export async function startLab(options: LabOptions = {}): Promise<RunningLab> {
  if (process.getuid?.() !== 0) throw new UserError('must be root: a lab makes namespaces, mounts and network links');
  refuseCombinations(options);
  if (options.cgroupDriver === 'systemd' && !systemdRuns()) {
    throw new UserError('--cgroup-driver systemd needs systemd as PID 1, and something else is: leave it at cgroupfs');
  }
  const paths = await labAt(options.root);
  await containerdVersion();
  if (options.runtime === 'docker') await dockerVersion();
  await clearEarlierDemo(paths, options.say ?? (() => undefined), options.purpose ?? 'lab');
  const lab = new Lab(paths, await takeRoot(paths, options.purpose), options);
  try {
    await lab.start();
    return lab;
  } catch (error) {
    const problems = await lab.giveUp();
    if (problems.length > 0) options.say?.(`not everything could be cleaned: ${problems.join('; ')}`);
    options.signal?.throwIfAborted();
    throw error;
  }
}

class Lab implements RunningLab {
  readonly paths: LabPaths;
  readonly #options: LabOptions;
  readonly #clock: Clock;
  readonly #say: (line: string) => void;
  readonly #launcher: Launcher;
  #state: LabState | undefined;
  #client: ApiClient | undefined;
  #stopped: Promise<readonly string[]> | undefined;
  /** Ends the start when one of the processes cannot live. */
  readonly #hopeless = new AbortController();
  /** Ends what is still being prepared when the lab stops. */
  readonly #over = new AbortController();
  #importing: Promise<void> = Promise.resolve();
  #mirrors: Promise<MirrorPlan | undefined> = Promise.resolve(undefined);

  #nodes: LabWithNodes | undefined;
  #announcer: Announcer | undefined;
  #announcing: Promise<void> = Promise.resolve();
  readonly #root: TakenRoot;

  constructor(paths: LabPaths, root: TakenRoot, options: LabOptions) {
    this.paths = paths;
    this.#root = root;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#say = options.say ?? (() => undefined);
    this.#launcher = new Launcher({
      paths,
      env: labEnvironment(paths.root),
      clock: this.#clock,
      say: this.#say,
      restart: options.restart,
      onHopeless: (error) => this.#hopeless.abort(error),
    });
  }

  get state(): LabState {
    if (this.#state === undefined) throw new Error('the lab has not started');
    return this.#state;
  }

  get client(): ApiClient {
    if (this.#client === undefined) throw new Error('the lab has not started');
    return this.#client;
  }

  get nodes(): NodeActions | undefined {
    return this.#nodes?.actions;
  }

  pid(name: LabProcess): number | undefined {
    return this.#launcher.pid(name);
  }

  halt(name: LabProcess): Promise<void> {
    return this.#launcher.halt(name);
  }

  resume(name: LabProcess): Promise<void> {
    return this.#launcher.resume(name);
  }

  async start(): Promise<void> {
    const signal = AbortSignal.any([this.#hopeless.signal, ...(this.#options.signal ? [this.#options.signal] : [])]);
    const state = await this.#prepare();
    this.#state = state;
    signal.throwIfAborted();
    this.#mirrors = planMirrors(state, this.#options);
    // Who needs the plan gets the error.
    this.#mirrors.catch(() => undefined);
    const { restore } = this.#options;
    if (restore !== undefined) this.#say(restoreStore(this.paths.storeFile, restore, this.#clock.now()));
    const gateway = state.nodes === undefined ? undefined : planRange(state.nodes.range).gateway;
    const address = serverAddress(this.#options.bindAddress, gateway);
    const agent = { path: this.#agentPaths().kubeconfigs.agent, server: this.#options.agentServer };
    const pki = await writeIdentities(this.paths, state, address, this.#clock.now(), agent);
    await (state.nodes === undefined
      ? this.#startOnMachine(state, address, pki, signal)
      : this.#startNodes({ ...state, nodes: state.nodes }, address, pki, signal));
    await this.#podsAdmitted(signal);
    this.#announce(state);
    signal.throwIfAborted();
  }

  /** Admission refuses a namespace's pods until a controller has made its default ServiceAccount. */
  async #podsAdmitted(signal: AbortSignal): Promise<void> {
    if (this.#options.without?.includes('controllers') === true) return;
    const account = resourcePath('v1', 'serviceaccounts', { namespace: 'default', name: 'default' });
    const limits = { clock: this.#clock, limitMs: READY_MS, signal };
    await whenServed(this.paths.kubeconfig, (client) => client.get(account), limits);
  }

  /** The addresses that service-lb-controller gives away. */
  #announce(state: LabState): void {
    const { bridge } = this.paths;
    if (this.#options.without?.includes('controllers') === true) return;
    const machine = { name: state.nodeName, netns: undefined, device: bridge };
    this.#announcer = new Announcer({
      range: loadBalancerRange(state),
      bridge,
      client: this.client,
      clock: this.#clock,
      say: this.#say,
      nodes: () => (this.#nodes === undefined ? [machine] : runningNodes(this.#nodes.actions)),
      // Of a lab with one node CNI makes it for the first pod.
      prepare: async () => {
        if (state.nodes === undefined) await makeBridge(bridge, state.subnet);
      },
    });
    this.#announcing = this.#announcer.run(this.#over.signal);
  }

  /** The machine is the node. */
  async #startOnMachine(state: LabState, address: ServerAddress, pki: Pki, signal: AbortSignal): Promise<void> {
    const launcher = this.#launcher;
    const snapshotter = await writeMachineFiles(this.paths, state, pki, this.#options);
    signal.throwIfAborted();
    const containerd = labContainerdPaths(this.paths);
    // The servers start while containerd does; each waits for what it needs by itself.
    const started = await Promise.all([
      launcher.launch('containerd', () => spawnContainerd(containerd, labEnvironment(this.paths.root), true)),
      this.#startServer(state, address),
    ]);
    await containerdReady(containerd, started[0], this.#clock);
    this.#say(`containerd serves on ${this.paths.containerd.socket}`);
    if (state.runtime === 'docker') await this.#startDocker(state, snapshotter);
    signal.throwIfAborted();
    const { agentFlags, agentProgram: program = agentProgram } = this.#options;
    // Another kubelet does not know what standard input means here; its lab's end finds it by its environment.
    await launcher.launchProgram('agent', program(this.#agentPaths(), state, agentFlags), program === agentProgram);
    await this.#startControlplane(state);
    if (state.proxy !== undefined) {
      await launcher.launchProgram('proxy', proxyProgram(this.paths, state, this.#options.proxyFlags));
    }
    if (state.csi !== undefined) await launcher.launchProgram('csi-driver', csiDriverProgram(this.paths, state));
    this.#importing = this.#importImages(snapshotter, AbortSignal.any([signal, this.#over.signal]));
    if (state.dns !== undefined) await makeBridge(this.paths.bridge, state.subnet);
    await Promise.all([
      this.#importing,
      this.#nodeReady(state, signal),
      this.#startDns(state, signal),
      this.#startNetpol(state, signal),
      this.#startRegistry(state, signal),
    ]);
  }

  /** The machine has the control plane, and each node a network namespace. */
  async #startNodes(
    state: LabState & Required<Pick<LabState, 'nodes'>>,
    address: ServerAddress,
    pki: Pki,
    signal: AbortSignal,
  ): Promise<void> {
    const nodes = new LabWithNodes({
      paths: this.paths,
      marker: this.#root.marker,
      state,
      server: serverUrl(address.gateway ?? address.host, state),
      pki,
      client: await this.#connect(),
      clock: this.#clock,
      say: this.#say,
      options: this.#options,
      mirrors: this.#mirrors,
      onChange: () => this.#announcer?.wake(),
      over: this.#over.signal,
    });
    this.#nodes = nodes;
    await nodes.makeBridge();
    await this.#startServer(state, address);
    await this.#startControlplane(state);
    const starting = AbortSignal.any([signal, this.#over.signal]);
    await Promise.all([
      nodes.start(starting),
      this.#startDns(state, starting),
      this.#startNetpol(state, starting),
      this.#startRegistry(state, starting),
    ]);
  }

  /** What it may read, for every node's; and the machine's own, where it is the node. */
  async #startNetpol(state: LabState, signal: AbortSignal): Promise<void> {
    if (state.netpol !== true) return;
    const limits = { clock: this.#clock, limitMs: READY_MS, signal };
    await whenServed(this.paths.kubeconfig, (client) => makeObjects(client, netpolObjects()), limits);
    if (state.nodes !== undefined) return;
    await this.#launcher.launchProgram('netpol', netpolProgram(this.paths, state.nodeName, state.netpolMetricsPort));
  }

  async #startDns(state: LabState, signal: AbortSignal): Promise<void> {
    if (state.dns === undefined) return;
    const { dns } = state;
    const limits = { clock: this.#clock, limitMs: READY_MS, signal };
    await whenServed(this.paths.kubeconfig, (client) => applyDnsObjects(client, dns), limits);
    await this.#launcher.launchProgram('dns', dnsProgram(this.paths, state));
    if (await answersAt(state.dns.address, { clock: this.#clock, signal })) {
      this.#say(`DNS answers at ${state.dns.server}`);
    } else this.#say(`DNS does not answer yet: see ${this.paths.logFile('dns')}`);
  }

  async #startRegistry(state: LabState, signal: AbortSignal): Promise<void> {
    const { registry } = state;
    if (registry?.own === undefined) return;
    const plan = await this.#mirrors;
    const program = registryProgram(state, plan?.reachable ?? new Set(), this.#options.registryFlags);
    await this.#launcher.launchProgram('registry', program);
    if (await registryServes(registry.url, { clock: this.#clock, signal })) {
      this.#say(`images are pulled from ${registry.url}`);
    } else this.#say(`the registry does not answer yet: see ${this.paths.logFile('registry')}`);
  }

  async #startServer(state: LabState, address: ServerAddress): Promise<void> {
    await this.#launcher.launchProgram(
      'apiserver',
      apiserverProgram(this.paths, state, address, this.#options.apiserverFlags),
    );
  }

  async #startControlplane(state: LabState): Promise<void> {
    const { without, controlplaneFlags } = this.#options;
    if (!hasControlplane(state, without)) return;
    const program = controlplaneProgram(this.paths, state, without, controlplaneFlags);
    await this.#launcher.launchProgram('controlplane', program);
  }

  /** On the lab's containerd, which serves Docker's containers beside CRI's own. */
  async #startDocker(state: LabState, snapshotter: Snapshotter): Promise<void> {
    const { paths } = this;
    await writeDaemonConfig(paths.docker, state.registry?.url);
    const cgroup = topCgroup({ root: paths.cgroupRoot, driver: state.cgroupDriver ?? 'cgroupfs' });
    const dockerd = dockerdProgram(paths, state, snapshotter, cgroup);
    await this.#launcher.launchProgram('dockerd', dockerd, false);
    const shim = await this.#launcher.launchProgram('dockershim', dockershimProgram(paths, state));
    const served = { socket: paths.docker.shimSocket, logFile: paths.logFile('dockershim') };
    await criReady('dockershim', served, shim, this.#clock);
    this.#say(`dockershim serves on ${paths.docker.shimSocket}`);
  }

  async #prepare(): Promise<LabState> {
    if (this.#root.earlier) await this.#clearEarlier();
    return prepareLab({ paths: this.paths, marker: this.#root.marker, options: this.#options, say: this.#say });
  }

  /** Removes what a killed lab left, except for its persistent data. */
  async #clearEarlier(): Promise<void> {
    const { paths } = this;
    for (const line of await leftoverLines(paths)) this.#say(line);
    const problems = await cleanLab({ paths, keep: true, clock: this.#clock });
    if (problems.length > 0) throw new UserError(`leftovers of an earlier lab are in the way: ${problems.join('; ')}`);
    await this.#root.marker.reload();
    await this.#root.lock.renew();
  }

  #agentPaths(): LabPaths {
    const { kubeconfigs } = this.paths;
    if (this.#options.agentServer === undefined) return this.paths;
    return { ...this.paths, kubeconfigs: { ...kubeconfigs, agent: kubeconfigs.agentByProxy } };
  }

  async #importImages(snapshotter: Snapshotter, signal: AbortSignal): Promise<void> {
    await writeMirrors(this.paths.containerd.registryConfigDir, await this.#mirrors);
    const source = this.#options.images ?? 'auto';
    if (source === 'none') return;
    const docker = this.#options.runtime === 'docker';
    await importImages({
      socket: runtimeSocket(this.paths, this.#options),
      snapshotter,
      source,
      say: this.#say,
      clock: this.#clock,
      signal,
      ...(docker ? { load: (image: BuiltImage) => loadIntoDocker(this.paths, image) } : {}),
    });
  }

  async #connect(): Promise<ApiClient> {
    const access = await loadKubeconfig(this.paths.kubeconfig);
    this.#client = new ApiClient(access, { tracer: new Tracer(), clock: this.#clock, userAgent: 'nodelet-up' });
    return this.#client;
  }

  async #nodeReady(state: LabState, signal: AbortSignal): Promise<void> {
    const client = await this.#connect();
    try {
      await nodeReady(client, state.nodeName, { clock: this.#clock, timeoutMs: READY_MS, signal });
    } catch (error) {
      signal.throwIfAborted();
      throw new UserError(`the node ${state.nodeName} is ${errorMessage(error)}; the logs are in ${this.paths.logDir}`);
    }
    this.#say(`node ${state.nodeName} is Ready`);
    if (state.csi === undefined) return;
    await applyCsiObjects(client, state.csi);
    this.#say(`storage classes: ${STORAGE_CLASSES.join(', ')}`);
  }

  stop(): Promise<readonly string[]> {
    this.#stopped ??= this.#stop(this.#options.keep === true);
    return this.#stopped;
  }

  /** For a start that fails: what an earlier lab kept stays kept. */
  giveUp(): Promise<readonly string[]> {
    this.#stopped ??= this.#stop(this.#options.keep === true || this.#root.earlier);
    return this.#stopped;
  }

  /** Pods first, through the API, while what takes them down still works; then the processes, last first. */
  async #stop(keep: boolean): Promise<readonly string[]> {
    const clock = this.#clock;
    this.#over.abort(new Error('the lab stops'));
    // The caller of the start gets its error; here only its end matters.
    await this.#importing.catch(() => undefined);
    await this.#announcing;
    await this.#nodes?.refuseRequests();
    if (this.#client !== undefined && !keep) {
      // Controllers would make the pods again.
      await this.#launcher.stop('controlplane');
      const nodes = this.#nodes?.reachable();
      const options = { clock, graceSeconds: POD_GRACE_SECONDS, timeoutMs: PODS_GONE_MS, ...(nodes && { nodes }) };
      if (!(await deletePods(this.#client, options))) this.#say('some pods did not end in time: they are killed');
    }
    await this.#launcher.release();
    await this.#nodes?.leave();
    await this.#launcher.stop('agent', 'proxy', 'netpol', 'dns', 'registry', 'csi-driver', 'controlplane', 'apiserver');
    this.#client?.close();
    const problems = await cleanLab({ paths: this.paths, clock, keep });
    await this.#root.lock.release();
    return problems;
  }
}

function runningNodes(actions: NodeActions): readonly AnnouncingNode[] {
  return actions
    .list()
    .filter(({ condition }) => condition === 'running')
    .map(({ name, netns }) => ({ name, netns, device: 'eth0' }));
}
