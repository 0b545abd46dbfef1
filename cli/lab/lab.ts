// A running lab: a private containerd, the embedded API server, the control plane and the agent, each its own process,
// supervised from here. `startLab` is what `nodelet up`, the demo and the tests use; it either returns a lab whose node
// is Ready or leaves nothing behind.

import { mkdir } from 'node:fs/promises';
import { hostname } from 'node:os';
import { systemdRuns } from '../../agent/node/systemd-slices.ts';
import { ensurePki } from '../../apiserver/pki/ensure.ts';
import { writeKubeconfig } from '../../apiserver/pki/kubeconfig.ts';
import { restoreStore } from '../../apiserver/storage/restore.ts';
import { ApiClient } from '../../client/api.ts';
import { loadKubeconfig } from '../../client/kubeconfig.ts';
import { snapshotFirewall } from '../../cni/cleanup.ts';
import { dockerVersion, writeDaemonConfig } from '../../labs/docker/dockerd.ts';
import type { BuiltImage } from '../../labs/images/build.ts';
import { importImages } from '../../labs/images/import.ts';
import { writeFileAtomic } from '../../lib/atomic.ts';
import type { BackoffPolicy } from '../../lib/backoff.ts';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { errorMessage, UserError } from '../../lib/errors.ts';
import { exec } from '../../lib/exec.ts';
import { SHARED_DIRECTORIES } from '../../lib/machine.ts';
import { Tracer } from '../../lib/trace.ts';
import { choosePort, claimSubnet, usedSubnets, usualPort } from './allocate.ts';
import { type Child, startChild } from './child.ts';
import { otherClaims, writeClaim } from './claims.ts';
import { cleanLab, labContainerdPaths } from './clean.ts';
import { cgroupDirectories, topCgroup } from './clean-cgroups.ts';
import { forwardPolicyDrops, renderConflist, renderKubeletConfiguration } from './config.ts';
import {
  containerdReady,
  containerdVersion,
  criReady,
  type Snapshotter,
  spawnContainerd,
  writeContainerdConfig,
} from './containerd.ts';
import { applyCsiObjects, STORAGE_CLASSES } from './csi.ts';
import { dockerdProgram, loadIntoDocker } from './docker.ts';
import { clearEarlierDemo, leftoverLines } from './earlier.ts';
import type { LabPurpose } from './marker.ts';
import type { LabPaths, LabProcess } from './paths.ts';
import { labEnvironment } from './processes.ts';
import {
  agentProgram,
  apiserverProgram,
  controlplaneProgram,
  csiDriverProgram,
  dockershimProgram,
  type Program,
  proxyProgram,
} from './programs.ts';
import { bridgesAreFiltered, claimProxy } from './proxy-claim.ts';
import { deletePods, nodeReady } from './ready.ts';
import { exists } from './root.ts';
import { type LabState, readLabState, runtimeSocket, writeLabState } from './state.ts';
import { Supervisor } from './supervisor.ts';
import { labAt, makeEntries, type TakenRoot, takeRoot } from './take-root.ts';

/** For giving up only: an emulated machine is twenty times slower than a real one. */
const READY_MS = 300_000;
/** A process that ends this often before the lab is ready will not get well by being started again. */
const HOPELESS_ENDS = 4;
/** How long pods may take to end by themselves when the lab goes down, and how long we wait for it. */
const POD_GRACE_SECONDS = 3;
const PODS_GONE_MS = 15_000;

export interface LabOptions {
  readonly root?: string;
  /** Default: the host name. */
  readonly nodeName?: string;
  /** Taken or UserError; by default 6443 or any free one. */
  readonly apiserverPort?: number;
  /** Taken or UserError; by default 10250 or any free one. */
  readonly kubeletPort?: number;
  /** The API server's address; 127.0.0.1 by default. */
  readonly bindAddress?: string;
  /** Who runs CNI. Default `agent`. */
  readonly network?: 'agent' | 'runtime';
  /** What runs the containers. Default `containerd`. */
  readonly runtime?: 'containerd' | 'docker';
  /** Whether pods' cgroups are plain directories or systemd's slices. Default `cgroupfs`. */
  readonly cgroupDriver?: 'cgroupfs' | 'systemd';
  /** Fields of the agent's KubeletConfiguration, over the lab's own. */
  readonly kubeletConfiguration?: Readonly<Record<string, unknown>>;
  /** More flags for `nodelet apiserver`. */
  readonly apiserverFlags?: readonly string[];
  /** More flags for `nodelet agent`. */
  readonly agentFlags?: readonly string[];
  /** What runs in place of `nodelet agent`: the lab's agent with other flags, or another kubelet. */
  readonly agentProgram?: (paths: LabPaths, state: LabState, flags?: readonly string[]) => Program;
  /** Where the agent reaches the API server: https://127.0.0.1:PORT of a proxy. Default: the server itself. */
  readonly agentServer?: string;
  /** Where images come from; `none` leaves containerd as it is. Default `auto`. */
  readonly images?: 'auto' | 'build' | 'none';
  /**
   * A CSI driver with volumes on loop devices, registered, and storage classes for it; or the same with more flags for
   * `nodelet csi-driver`. Default: none.
   */
  readonly csi?: boolean | readonly string[];
  /** How Services are forwarded; absent: they are not. Another proxy of the machine's keeps its place, and this lab goes without. */
  readonly proxy?: 'iptables' | 'nftables';
  /** More flags for `nodelet proxy`. */
  readonly proxyFlags?: readonly string[];
  /** Pauses before a process that has ended is started again. Default: 250 ms, doubling, at most 10 s. */
  readonly restart?: BackoffPolicy;
  /** A snapshot of the API server's objects that takes the place of its store before anything starts. */
  readonly restore?: string;
  /** Default `lab`. */
  readonly purpose?: LabPurpose;
  /** On stop, keep certificates, objects and images for the next start. */
  readonly keep?: boolean;
  /** Prints one line. */
  readonly say?: (line: string) => void;
  /** Aborts the start. */
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
}

export interface RunningLab {
  readonly paths: LabPaths;
  readonly state: LabState;
  /** The admin's client, for the caller. */
  readonly client: ApiClient;
  /** The process that runs now under a name; undefined while it is between two starts. */
  pid(name: LabProcess): number | undefined;
  /** Kills a process (SIGKILL), which stays dead until `resume`. Rejects with UserError where the lab has none of that name. */
  halt(name: LabProcess): Promise<void>;
  /** Starts a process that was halted. Does nothing while it runs. */
  resume(name: LabProcess): Promise<void>;
  /** Stops everything in order and cleans up. Returns what could not be cleaned. Idempotent. */
  stop(): Promise<readonly string[]>;
}

/** Starts a lab. Rejects with UserError: not root, no containerd or systemd, root in use, port taken. */
export async function startLab(options: LabOptions = {}): Promise<RunningLab> {
  if (process.getuid?.() !== 0) throw new UserError('must be root: a lab makes namespaces, mounts and network links');
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
  readonly #supervisors = new Map<LabProcess, Supervisor>();
  #state: LabState | undefined;
  #client: ApiClient | undefined;
  #stopped: Promise<readonly string[]> | undefined;
  /** Ends the start when one of the processes cannot live. */
  readonly #hopeless = new AbortController();
  /** Ends what is still being prepared when the lab stops. */
  readonly #over = new AbortController();
  #importing: Promise<void> = Promise.resolve();

  readonly #root: TakenRoot;

  constructor(paths: LabPaths, root: TakenRoot, options: LabOptions) {
    this.paths = paths;
    this.#root = root;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#say = options.say ?? (() => undefined);
  }

  get state(): LabState {
    if (this.#state === undefined) throw new Error('the lab has not started');
    return this.#state;
  }

  get client(): ApiClient {
    if (this.#client === undefined) throw new Error('the lab has not started');
    return this.#client;
  }

  pid(name: LabProcess): number | undefined {
    return this.#supervisors.get(name)?.child?.id.pid;
  }

  halt(name: LabProcess): Promise<void> {
    return this.#supervisor(name).halt();
  }

  resume(name: LabProcess): Promise<void> {
    return this.#supervisor(name).resume();
  }

  #supervisor(name: LabProcess): Supervisor {
    const supervisor = this.#supervisors.get(name);
    if (supervisor === undefined) throw new UserError(`the lab has no process ${name}`);
    return supervisor;
  }

  async start(): Promise<void> {
    const signal = AbortSignal.any([this.#hopeless.signal, ...(this.#options.signal ? [this.#options.signal] : [])]);
    const state = await this.#prepare();
    this.#state = state;
    signal.throwIfAborted();
    const { restore } = this.#options;
    if (restore !== undefined) this.#say(restoreStore(this.paths.storeFile, restore, this.#clock.now()));
    const snapshotter = await this.#writeFiles(state);
    signal.throwIfAborted();
    const containerd = labContainerdPaths(this.paths);
    // The servers start while containerd does; each waits for what it needs by itself.
    const started = await Promise.all([
      this.#launch('containerd', () => spawnContainerd(containerd, labEnvironment(this.paths.root), true)),
      this.#launchProgram(
        'apiserver',
        apiserverProgram(this.paths, state, this.#bindAddress, this.#options.apiserverFlags),
      ),
    ]);
    await containerdReady(containerd, started[0], this.#clock);
    this.#say(`containerd serves on ${this.paths.containerd.socket}`);
    if (state.runtime === 'docker') await this.#startDocker(state, snapshotter);
    signal.throwIfAborted();
    const { agentFlags, agentProgram: program = agentProgram } = this.#options;
    // Another kubelet does not know what standard input means here; its lab's end finds it by its environment.
    await this.#launchProgram('agent', program(this.#agentPaths(), state, agentFlags), program === agentProgram);
    await this.#launchProgram('controlplane', controlplaneProgram(this.paths, state));
    if (state.proxy !== undefined) {
      await this.#launchProgram('proxy', proxyProgram(this.paths, state, this.#options.proxyFlags));
    }
    if (state.csi !== undefined) await this.#launchProgram('csi-driver', csiDriverProgram(this.paths, state));
    this.#importing = this.#importImages(snapshotter, AbortSignal.any([signal, this.#over.signal]));
    await Promise.all([this.#importing, this.#nodeReady(state, signal)]);
    signal.throwIfAborted();
  }

  /** On the lab's containerd, which serves Docker's containers beside CRI's own. */
  async #startDocker(state: LabState, snapshotter: Snapshotter): Promise<void> {
    const { paths } = this;
    await writeDaemonConfig(paths.docker);
    const cgroup = topCgroup({ root: paths.cgroupRoot, driver: state.cgroupDriver ?? 'cgroupfs' });
    const dockerd = dockerdProgram(paths, state, snapshotter, cgroup);
    await this.#launchProgram('dockerd', dockerd, false);
    const shim = await this.#launchProgram('dockershim', dockershimProgram(paths, state));
    const served = { socket: paths.docker.shimSocket, logFile: paths.logFile('dockershim') };
    await criReady('dockershim', served, shim, this.#clock);
    this.#say(`dockershim serves on ${paths.docker.shimSocket}`);
  }

  get #bindAddress(): string {
    return this.#options.bindAddress ?? '127.0.0.1';
  }

  /** Decides names, ports and addresses, and writes them down before anything is taken. */
  async #prepare(): Promise<LabState> {
    const { paths } = this;
    if (this.#root.earlier) await this.#clearEarlier();
    const earlier = await readLabState(paths);
    const made = await Promise.all(SHARED_DIRECTORIES.map(async (path) => ((await exists(path)) ? [] : [path])));
    const { apiserverPort, kubeletPort } = this.#options;
    const apiserver = await choosePort(
      'the API server',
      apiserverPort,
      earlier?.apiserverPort ?? usualPort(paths, 6443),
    );
    const kubelet = await choosePort(
      'the kubelet API',
      kubeletPort,
      earlier?.kubeletPort ?? usualPort(paths, 10250),
      apiserver,
    );
    const others = await otherClaims(paths.hash);
    // With other labs up the machine is no longer as it was: how it was is theirs to say.
    const firewall = others.find((other) => other.firewall !== undefined)?.firewall ?? (await snapshotFirewall());
    const directories = [earlier, ...others].flatMap((known) => known?.madeDirectories ?? []);
    const madeDirectories = [...new Set([...directories, ...made.flat()])];
    const subnet = await claimSubnet(paths.hash, {
      used: usedSubnets,
      claimed: async () => (await otherClaims(paths.hash)).map((other) => other.subnet),
      claim: (chosen) => writeClaim(paths.runDir, { subnet: chosen, firewall, madeDirectories, root: paths.root }),
    });
    if (subnet === undefined) throw new UserError('no /24 of 10.244.0.0/16 is free for pods on this machine');
    const cgroupDriver = this.#options.cgroupDriver ?? 'cgroupfs';
    await this.#listOutside(madeDirectories, topCgroup({ root: paths.cgroupRoot, driver: cgroupDriver }));
    const csi = csiState(this.#options.csi);
    const docker = this.#options.runtime === 'docker';
    await makeEntries(paths, this.#root.marker, { csi: csi.csi !== undefined, docker });
    const proxy = await this.#proxyState(earlier?.proxy);
    const state: LabState = {
      version: 1,
      nodeName: (this.#options.nodeName ?? hostname()).toLowerCase(),
      apiserverPort: apiserver,
      kubeletPort: kubelet,
      subnet,
      network: this.#options.network ?? 'agent',
      cgroupDriver,
      ...(docker ? { runtime: 'docker' as const } : {}),
      ...csi,
      ...(proxy === undefined ? {} : { proxy }),
      firewall,
      madeDirectories,
    };
    await writeLabState(paths, state);
    return state;
  }

  /** After the claim on the subnet: by that one other labs see whether this one is still there. */
  async #proxyState(earlier: LabState['proxy']): Promise<LabState['proxy']> {
    const { paths } = this;
    const { proxy: mode } = this.#options;
    if (mode === undefined) return undefined;
    const owner = await claimProxy(paths.networkName);
    if (owner !== undefined) {
      this.#say(
        `Services are not forwarded: ${owner} does so on this machine, and there is one proxy in a network namespace`,
      );
      return undefined;
    }
    const port = (known: number | undefined, wellKnown: number, what: string, not?: number): Promise<number> =>
      choosePort(what, undefined, known ?? usualPort(paths, wellKnown), not);
    const healthzPort = await port(earlier?.healthzPort, 10256, 'the health of the proxy');
    const metricsPort = await port(earlier?.metricsPort, 10249, 'the metrics of the proxy', healthzPort);
    return { mode, healthzPort, metricsPort, masqueradeAll: !(await bridgesAreFiltered()) };
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

  /** Puts on the marker's list what the lab will make outside its root. What is there already is not the lab's. */
  async #listOutside(madeDirectories: readonly string[], cgroup: string): Promise<void> {
    const { marker } = this.#root;
    const cgroups = (await cgroupDirectories(cgroup)).length === 0 ? [{ kind: 'cgroup' as const, path: cgroup }] : [];
    const directories = madeDirectories.map((path) => ({ kind: 'shared-directory' as const, path }));
    await marker.put(...cgroups, ...directories);
  }

  #agentPaths(): LabPaths {
    const { kubeconfigs } = this.paths;
    if (this.#options.agentServer === undefined) return this.paths;
    return { ...this.paths, kubeconfigs: { ...kubeconfigs, agent: kubeconfigs.agentByProxy } };
  }

  async #writeFiles(state: LabState): Promise<Snapshotter> {
    const { paths } = this;
    const pki = await ensurePki(paths.pkiDir, { hosts: [], nodeName: state.nodeName, now: this.#clock.now() });
    const host = ['0.0.0.0', '::'].includes(this.#bindAddress) ? '127.0.0.1' : this.#bindAddress;
    const server = `https://${host.includes(':') ? `[${host}]` : host}:${state.apiserverPort}`;
    const { agentServer = server } = this.#options;
    const identities = [
      { path: paths.kubeconfig, user: 'kubernetes-admin', client: pki.clients.admin },
      { path: this.#agentPaths().kubeconfigs.agent, user: 'agent', client: pki.clients.agent },
      { path: paths.kubeconfigs.scheduler, user: 'scheduler', client: pki.clients.scheduler },
      {
        path: paths.kubeconfigs.controllerManager,
        user: 'controller-manager',
        client: pki.clients['controller-manager'],
      },
      { path: paths.kubeconfigs.proxy, user: 'proxy', client: pki.clients.proxy },
    ];
    for (const { path, user, client } of identities) {
      const own = user === 'agent' ? agentServer : server;
      await writeKubeconfig(path, { server: own, ca: pki.ca.cert, user, client });
    }
    const forward = await exec('iptables', ['-S', 'FORWARD']);
    const choice = { subnet: state.subnet, forwardDrops: forwardPolicyDrops(forward.stdout) };
    await writeFileAtomic(paths.cni.conflist, renderConflist(paths, choice));
    for (const directory of [paths.cni.shimConfDir, paths.cni.shimBinDir]) await mkdir(directory, { recursive: true });
    const kubelet = {
      port: state.kubeletPort,
      clientCAFile: pki.ca.certPath,
      cgroupDriver: state.cgroupDriver ?? 'cgroupfs',
      runtimeSocket: runtimeSocket(paths, state),
      more: this.#options.kubeletConfiguration ?? {},
    };
    await writeFileAtomic(paths.kubeletConfig, renderKubeletConfiguration(paths, kubelet));
    const agentRunsCni = state.network === 'agent';
    return writeContainerdConfig({
      paths: labContainerdPaths(paths),
      cniConfDir: agentRunsCni ? paths.cni.shimConfDir : paths.cni.confDir,
      cniBinDir: agentRunsCni ? paths.cni.shimBinDir : paths.cni.binDir,
      cgroupDriver: state.cgroupDriver ?? 'cgroupfs',
    });
  }

  async #launch(name: LabProcess, start: () => Promise<Child>): Promise<Child> {
    const supervisor = new Supervisor({
      name,
      clock: this.#clock,
      say: this.#say,
      start,
      pidFile: this.paths.pidFile(name),
      logFile: this.paths.logFile(name),
      ...(this.#options.restart === undefined ? {} : { restart: this.#options.restart }),
      onEnd: (ends, words) => {
        if (ends < HOPELESS_ENDS) return;
        const reason = `${name} ended ${ends} times while the lab started: ${words}`;
        this.#hopeless.abort(new UserError(reason));
      },
    });
    this.#supervisors.set(name, supervisor);
    return supervisor.start();
  }

  /** `lifeline`: it is one of nodelet's own programs. */
  #launchProgram(name: LabProcess, program: Program, lifeline = true): Promise<Child> {
    return this.#launch(name, () =>
      startChild({
        ...program,
        env: labEnvironment(this.paths.root),
        lifeline,
        logFile: this.paths.logFile(name),
        pidFile: this.paths.pidFile(name),
      }),
    );
  }

  async #importImages(snapshotter: Snapshotter, signal: AbortSignal): Promise<void> {
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

  async #nodeReady(state: LabState, signal: AbortSignal): Promise<void> {
    const access = await loadKubeconfig(this.paths.kubeconfig);
    this.#client = new ApiClient(access, { tracer: new Tracer(), clock: this.#clock, userAgent: 'nodelet-up' });
    try {
      await nodeReady(this.#client, state.nodeName, { clock: this.#clock, timeoutMs: READY_MS, signal });
    } catch (error) {
      signal.throwIfAborted();
      throw new UserError(`the node ${state.nodeName} is ${errorMessage(error)}; the logs are in ${this.paths.logDir}`);
    }
    this.#say(`node ${state.nodeName} is Ready`);
    if (state.csi === undefined) return;
    await applyCsiObjects(this.#client, state.csi);
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

  /** Pods first, through the API, while everything that takes them down still works; then the processes, last first. */
  async #stop(keep: boolean): Promise<readonly string[]> {
    const clock = this.#clock;
    this.#over.abort(new Error('the lab stops'));
    // The caller of the start gets its error; here only its end matters.
    await this.#importing.catch(() => undefined);
    if (this.#client !== undefined && !keep) {
      const options = { clock, graceSeconds: POD_GRACE_SECONDS, timeoutMs: PODS_GONE_MS };
      if (!(await deletePods(this.#client, options))) this.#say('some pods did not end in time: they are killed');
    }
    await Promise.all([...this.#supervisors.values()].map((supervisor) => supervisor.release()));
    for (const name of ['agent', 'proxy', 'csi-driver', 'controlplane', 'apiserver'] as const)
      await this.#supervisors.get(name)?.stop(5_000);
    this.#client?.close();
    const problems = await cleanLab({ paths: this.paths, clock, keep });
    await this.#root.lock.release();
    return problems;
  }
}

function csiState(csi: LabOptions['csi']): Pick<LabState, 'csi'> {
  if (csi === undefined || csi === false) return {};
  return { csi: { flags: csi === true ? [] : csi } };
}
