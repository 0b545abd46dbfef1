// An embedded API server with the control plane beside it, in this process: what the tests of the control plane and of
// the node part run against. Each is an ordinary client over TLS.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chooseNodeIPs } from '../../../agent/node/addresses.ts';
import { gatherFacts } from '../../../agent/node/facts.ts';
import { NodeAgent } from '../../../agent/node/node-agent.ts';
import type { NodeConfig } from '../../../agent/node/options.ts';
import type { RuntimeConditionSnapshot } from '../../../agent/ports/runtime.ts';
import { type RunningApiServer, startLabApiServer } from '../../../apiserver/main.ts';
import { ApiClient } from '../../../client/api.ts';
import { loadKubeconfig } from '../../../client/kubeconfig.ts';
import { Recorder } from '../../../client/recorder.ts';
import type { DriverEndpoint } from '../../../controlplane/csi/shared/drivers.ts';
import { type ControlPlaneOptions, runControlPlane } from '../../../controlplane/main.ts';
import { systemClock } from '../../../lib/clock.ts';
import { Tracer } from '../../../lib/trace.ts';
import { freePort } from '../support/ports.ts';

const GOOD: RuntimeConditionSnapshot = { ok: true, reason: '', message: '' };
export const NODE = 'node-1';

/** Calls `check` until it returns something, and fails with the last error. */
export async function eventually<T>(
  what: string,
  check: () => Promise<T | undefined>,
  timeoutMs = 120_000,
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const found = await check();
    if (found !== undefined) return found;
    if (Date.now() > deadline) throw new Error(`not within ${timeoutMs / 1000} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** What the node's runtime and network say; a test changes it. */
export class NodeHealthSwitch {
  network = GOOD;
  runtimeFailure: Error | undefined;
  readonly runtime = {
    status: async () => {
      if (this.runtimeFailure !== undefined) throw this.runtimeFailure;
      return { runtimeReady: GOOD, networkReady: GOOD, handlers: [], features: { supplementalGroupsPolicy: false } };
    },
    version: async () => ({ name: 'containerd', version: '1.6.20', apiVersion: 'v1' }),
    listImages: async () => [],
  };
  readonly podNetwork = { status: async () => this.network };
}

export class Cluster implements AsyncDisposable {
  readonly root: string;
  readonly #stop = new AbortController();
  readonly #running: Promise<unknown>[] = [];
  readonly #clients: ApiClient[] = [];
  #server: RunningApiServer | undefined;
  /** None of those that the kernel lends: it is to be free as well when the server is started again. */
  #port: number | undefined;
  readonly logs: string[] = [];
  readonly tracer = new Tracer();

  private constructor(root: string) {
    this.root = root;
  }

  static async start(): Promise<Cluster> {
    const cluster = new Cluster(await mkdtemp(join(tmpdir(), 'nodelet-controlplane-')));
    await cluster.startServer();
    return cluster;
  }

  /** Starts the API server, again on the port and data it had. */
  async startServer(): Promise<void> {
    this.#port ??= await freePort();
    this.#server = await startLabApiServer({
      root: this.root,
      bindAddress: '127.0.0.1',
      port: this.#port,
      nodeName: NODE,
      tracer: this.tracer,
      clock: systemClock,
    });
  }
  async stopServer(): Promise<void> {
    await this.#server?.close();
  }

  get kubeconfig(): string {
    return join(this.root, 'kubeconfig');
  }

  /** A client by one of the lab's kubeconfigs; the admin's by default. */
  async client(kubeconfig = 'kubeconfig'): Promise<ApiClient> {
    const access = await loadKubeconfig(join(this.root, kubeconfig));
    const client = new ApiClient(access, { tracer: this.tracer, clock: systemClock, userAgent: 'test' });
    this.#clients.push(client);
    return client;
  }

  /**
   * Runs scheduler and controllers; resolves when they work, or with leader election wait for their turn. The returned
   * function stops them.
   */
  async startControlPlane(
    csiDrivers: readonly DriverEndpoint[] = [],
    leaderElection?: ControlPlaneOptions['leaderElection'],
    controllers: readonly string[] = ['*'],
    schedulerSettings?: ControlPlaneOptions['schedulerSettings'],
    loadBalancerRange?: string,
  ): Promise<() => Promise<void>> {
    const stop = new AbortController();
    const access = (name: string) => loadKubeconfig(join(this.root, 'kubeconfigs', `${name}.kubeconfig`));
    const [scheduler, controllerManager] = await Promise.all([access('scheduler'), access('controller-manager')]);
    const [cert, key] = await Promise.all(
      ['crt', 'key'].map((end) => readFile(join(this.root, 'pki', `ca.${end}`), 'utf8')),
    );
    if (cert === undefined || key === undefined) throw new Error('the server has no CA');
    const serviceAccountKey = await readFile(join(this.root, 'pki', 'sa.key'), 'utf8');
    let ended: Promise<void> = Promise.resolve();
    await new Promise<void>((resolve, reject) => {
      const running = runControlPlane({
        scheduler,
        controllerManager,
        csiDrivers,
        controllers,
        signing: { cert, key, durationMs: 365 * 24 * 3_600_000 },
        ...(leaderElection === undefined ? {} : { leaderElection }),
        ...(schedulerSettings === undefined ? {} : { schedulerSettings }),
        controllerSettings: { serviceAccountKey, ...(loadBalancerRange === undefined ? {} : { loadBalancerRange }) },
        tracer: this.tracer,
        clock: systemClock,
        log: (line) => this.logs.push(line),
        signal: AbortSignal.any([this.#stop.signal, stop.signal]),
        onReady: resolve,
      });
      running.catch(reject);
      this.#running.push(running);
      ended = running;
    });
    return async () => {
      stop.abort(new Error('the test stops this control plane'));
      await ended;
    };
  }

  /** Runs the node part of an agent on this machine's own facts, with a runtime that the test controls. */
  async startNode(
    config: Partial<NodeConfig> = {},
  ): Promise<{ readonly agent: NodeAgent; readonly health: NodeHealthSwitch }> {
    const client = await this.client('kubeconfigs/agent.kubeconfig');
    const health = new NodeHealthSwitch();
    const facts = await gatherFacts(this.root, NODE);
    const agent = new NodeAgent({
      nodeName: NODE,
      nodeIPs: chooseNodeIPs([], NODE, facts.addresses),
      nodeLabels: { 'example.com/disk': 'ssd' },
      kubeletPort: 10250,
      kubeletVersion: 'v1.34.0',
      config: {
        registerNode: true,
        registerWithTaints: [],
        providerID: '',
        nodeStatusUpdateFrequency: 10_000,
        nodeStatusReportFrequency: 300_000,
        nodeLeaseDurationSeconds: 40,
        nodeStatusMaxImages: 50,
        maxPods: 110,
        podsPerCore: 0,
        kubeReserved: { memory: '64Mi' },
        systemReserved: {},
        evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '10%' },
        ...config,
      },
      client,
      runtime: health.runtime,
      network: health.podNetwork,
      recorder: new Recorder({ client, clock: systemClock, tracer: this.tracer, component: 'kubelet', host: NODE }),
      clock: systemClock,
      log: (_level, message) => this.logs.push(message),
      facts,
    });
    this.#running.push(agent.run(this.#stop.signal));
    return { agent, health };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Error('the test has ended'));
    await Promise.all(this.#running);
    for (const client of this.#clients) client.close();
    await this.#server?.close();
    await rm(this.root, { recursive: true, force: true });
  }
}
