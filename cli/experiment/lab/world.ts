// The world of an experiment on a real node: a lab of its own, with what can be cut or made to fail standing between the agent
// and what it calls. Observes through watches, the agent's trace, the runtime and the kernel.

import type { Socket } from 'node:dgram';
import { join } from 'node:path';
import { resourcePath } from '../../../client/paths.ts';
import { sleepUnlessAborted } from '../../../lib/abort.ts';
import {
  type Clock,
  type EpochMs,
  elapsedMs,
  type MonotonicMs,
  monotonicMs,
  systemClock,
  ZERO_TIME,
} from '../../../lib/clock.ts';
import { errorMessage, UserError } from '../../../lib/errors.ts';
import { removeTree } from '../../../lib/remove-tree.ts';
import { repeat } from '../../../lib/retry.ts';
import { rfc3339Milli } from '../../../lib/rfc3339.ts';
import type { Span } from '../../../lib/trace.ts';
import { type RunningLab, startLab } from '../../lab/lab.ts';
import { Recorder } from '../../tap/recorder.ts';
import { RecordingReader } from '../../tap/recording.ts';
import { TapSpans } from '../../timeline/tap-evidence.ts';
import type { WorldSpec } from '../model.ts';
import type { Observation } from '../observation.ts';
import type { World, WorldStep } from '../world.ts';
import { labCannot } from './cannot.ts';
import type { ContainerChange } from './container-lives.ts';
import { ContainerWatch } from './containers.ts';
import { DnsQueries, type LabQuery, linesFrom, logQueries, parseQuery } from './dns-queries.ts';
import { closeInterposed, heal, type Interposed, interpose } from './interposed.ts';
import { FOREIGN_CONFIGURATION, type LabAgent, parseAgent, programOf } from './lab-agent.ts';
import { Kinds, type ObjectChange, WATCHED, watchObjects } from './objects.ts';
import { newSampler, PodSamples } from './pod-samples.ts';
import { checkRuntime, needsOf, serviceAccountReady } from './prepare.ts';
import { clearLeftRuns, labRootOf, makeRunDirectory, RUNS_DIRECTORY } from './run-directory.ts';
import { listenSilently, silentServers } from './silent-servers.ts';
import { deleteAndWait, LabSteps } from './steps.ts';
import { followTrace } from './trace-follower.ts';

export interface LabWorldOptions {
  /** "nodelet", or "kubelet=/path". */
  readonly agent: string;
  /** The lab's root; by default one below RUNS_DIRECTORY. */
  readonly root?: string;
  readonly say: (line: string) => void;
  readonly clock?: Clock;
  /**
   * A lab that is there, instead of one of the experiment's own: for those that configure nothing and need nothing between the
   * agent and what it calls. It has to be without pods; what the experiment has made goes when it is closed.
   */
  readonly lab?: RunningLab;
  /**
   * Of objects whose namespace is not given; made for the experiment and removed after it. Nothing of other namespaces is
   * observed then: experiments run side by side in one lab. Default "default".
   */
  readonly namespace?: string;
  /** Default `auto`. */
  readonly images?: 'auto' | 'build';
  /** Where directories of runs are made. Default RUNS_DIRECTORY. */
  readonly parent?: string;
}

const SAMPLES_MS = 1000;
const FLUSH_MS = 200;
const TOGETHER_MS = 20;
const NAMESPACES = resourcePath('v1', 'namespaces');

/** Throws UserError for an agent that is none. Nothing is started yet. */
export function createLabWorld(options: LabWorldOptions): World {
  return new LabWorld(options, parseAgent(options.agent));
}

class LabWorld implements World {
  readonly kind = 'lab';
  readonly #options: LabWorldOptions;
  readonly #agent: LabAgent;
  readonly #clock: Clock;
  readonly #observations: Observation[] = [];
  readonly #over = new AbortController();
  #steps: readonly WorldStep[] = [];
  #directory: string | undefined;
  #interposed: Interposed | undefined;
  #lab: RunningLab | undefined;
  #containers: ContainerWatch | undefined;
  #performer: LabSteps | undefined;
  #readyMono: MonotonicMs = monotonicMs(0);
  #readyAt = ZERO_TIME;
  #isReady = false;
  #starting: Promise<void> = Promise.resolve();
  #closed: Promise<void> | undefined;
  /** What runs beside the steps; its failure is the next step's. */
  readonly #work: Promise<void>[] = [];
  #failure: Error | undefined;
  #wake: (() => void)[] = [];
  /** What the tap has recorded, and the agent's spans, line by line. */
  readonly #calls: string[] = [];
  readonly #spans: string[] = [];
  #recorder: Recorder | undefined;
  #queries: DnsQueries | undefined;
  #silent: readonly Socket[] = [];

  constructor(options: LabWorldOptions, agent: LabAgent) {
    this.#options = options;
    this.#agent = agent;
    this.#clock = options.clock ?? systemClock;
  }

  get observations(): readonly Observation[] {
    return this.#observations;
  }

  now(): MonotonicMs {
    return monotonicMs(this.#isReady ? elapsedMs(this.#readyMono, this.#clock.monotonic()) : 0);
  }

  cannot(spec: WorldSpec, steps: readonly WorldStep[]): readonly string[] {
    // What has to stand in between is decided before the lab starts.
    this.#steps = steps;
    return [
      ...labCannot(spec, steps, this.#agent),
      ...(this.#options.lab === undefined ? [] : this.#sharedCannot(spec)),
    ];
  }

  #sharedCannot(spec: WorldSpec): readonly string[] {
    const there = this.#options.lab?.state.registry?.own === undefined ? [] : ['registry'];
    const between = Object.entries(needsOf(this.#steps, this.#agent)).flatMap(([name, needed]) =>
      needed && !there.includes(name) ? [name] : [],
    );
    const configured = Object.keys(spec).filter((key) => key !== 'images' && key !== 'nodes');
    return [...between, ...configured].map((what) => `${what}: needs a lab of the experiment's own`);
  }

  start(spec: WorldSpec, signal: AbortSignal): Promise<void> {
    // An interrupted experiment waits for nothing any more, whatever step it is in.
    const stop = (): void => this.#over.abort(signal.reason);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    this.#starting = this.#start(spec, this.#over.signal);
    return this.#starting;
  }

  async #start(spec: WorldSpec, signal: AbortSignal): Promise<void> {
    const { lab, parent = RUNS_DIRECTORY } = this.#options;
    if (lab !== undefined) {
      await this.#observe(lab, spec);
      return;
    }
    await clearLeftRuns(parent, this.#clock, this.#options.say);
    const directory = await makeRunDirectory(parent);
    this.#directory = directory;
    const root = this.#options.root ?? labRootOf(directory);
    const interposed = await interpose({
      ...{ directory, root, needs: needsOf(this.#steps, this.#agent), clock: this.#clock, say: this.#options.say },
      sink: (runtimeSocket) => (this.#agent.kind === 'foreign' ? this.#record(runtimeSocket) : undefined),
      made: (now) => {
        this.#interposed = now;
      },
    });
    this.#interposed = interposed;
    signal.throwIfAborted();
    this.#lab = await startLab(this.#labOptions(spec, root, interposed, signal));
    await this.#observe(this.#lab, spec);
  }

  #labOptions(
    spec: WorldSpec,
    root: string,
    interposed: Interposed,
    signal: AbortSignal,
  ): Parameters<typeof startLab>[0] {
    const foreign = this.#agent.kind === 'foreign';
    const { cniDirectory, runtimeSocket, apiserver, csiFaultFile, staticPodDirectory } = interposed;
    const endpoint = runtimeSocket === undefined ? {} : { containerRuntimeEndpoint: `unix://${runtimeSocket}` };
    const { pods, addresses } = spec.capacity ?? {};
    const places = {
      certDir: join(interposed.directory, 'certificates'),
      ...(cniDirectory === undefined ? {} : { cniBinDir: cniDirectory }),
    };
    const csiFlags = csiFaultFile === undefined ? true : ['--faults', csiFaultFile];
    return {
      root,
      nodeName: 'node-1',
      images: this.#options.images ?? 'auto',
      network: foreign ? 'runtime' : 'agent',
      kubeletConfiguration: {
        ...(foreign ? FOREIGN_CONFIGURATION : {}),
        ...(pods === undefined ? {} : { maxPods: pods }),
        ...spec.kubelet,
        ...endpoint,
        ...(staticPodDirectory === undefined ? {} : { staticPodPath: staticPodDirectory }),
      },
      agentProgram: programOf(this.#agent, places),
      ...(apiserver === undefined ? {} : { agentServer: apiserver.server }),
      ...(spec.csi === true ? { csi: csiFlags } : {}),
      ...(addresses === undefined ? {} : { podAddresses: addresses }),
      ...(spec.dns === true ? { dns: true } : {}),
      registry: needsOf(this.#steps, this.#agent).registry,
      say: this.#options.say,
      signal,
      clock: this.#clock,
    };
  }

  /** Every call that passes becomes a line of the recording and a span. */
  #record(to: string): Recorder {
    const tap = new TapSpans();
    const begin = this.#clock.monotonic();
    const startedAt = this.#clock.now();
    const reader = new RecordingReader((call) => {
      for (const span of tap.spans(tap.decode(call), startedAt)) this.#observeSpan(span);
    });
    const recorder = new Recorder({
      start: rfc3339Milli(startedAt),
      to,
      redact: true,
      at: () => elapsedMs(begin, this.#clock.monotonic()),
      write: (line) => {
        const text = line.trimEnd();
        this.#calls.push(text);
        reader.push(text);
      },
    });
    this.#recorder = recorder;
    return recorder;
  }

  async #observe(lab: RunningLab, spec: WorldSpec): Promise<void> {
    const { signal } = this.#over;
    const containers = ContainerWatch.at(lab.paths.containerd.socket);
    this.#containers = containers;
    await checkRuntime(spec, containers);
    const { namespace } = this.#options;
    if (namespace !== undefined)
      await lab.client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    await serviceAccountReady(lab.client, this.#clock, signal, namespace);
    if (spec.dns === true) await this.#followQueries(lab, signal);
    this.#readyMono = this.#clock.monotonic();
    this.#readyAt = this.#clock.now();
    this.#isReady = true;
    for (const watched of WATCHED) {
      this.#run(
        watchObjects(lab.client, this.#clock, watched, (change) => this.#observeObject(this.now(), change), signal),
      );
    }
    this.#run(
      containers.follow({
        clock: this.#clock,
        onChanges: (changes) => this.#addContainers(changes),
        onUnknown: () => this.#run(this.#lookAtContainers()),
        look: () => this.#lookAtContainers(),
        signal,
      }),
    );
    const samples = new PodSamples({ sampler: await newSampler(), lab, containers, observations: this.#observations });
    this.#run(this.#every(SAMPLES_MS, async () => this.#sample(samples)));
    if (this.#agent.kind === 'nodelet') {
      const onSpan = (span: Span): void => this.#observeSpan(span);
      this.#run(followTrace(lab.paths.traceSocket, onSpan, this.#clock, this.#over.signal));
    } else this.#run(this.#every(FLUSH_MS, async () => this.#recorder?.flush()));
    const interposed = this.#interposed;
    this.#performer = new LabSteps({
      lab,
      kinds: new Kinds(lab.client, namespace),
      namespace,
      containers,
      clock: this.#clock,
      signal,
      links: { apiserver: interposed?.apiserver?.link, runtime: interposed?.runtime },
      criFaults: interposed?.proxy,
      apiFaults: interposed?.apiFaults,
      cniDirectory: interposed?.cniDirectory,
      csiFaultFile: interposed?.csiFaultFile,
      staticPodDirectory: interposed?.staticPodDirectory,
      onFailure: (error) => this.#fail(error),
    });
  }

  /** From the name server's log, which has lines of its own start already. */
  async #followQueries(lab: RunningLab, signal: AbortSignal): Promise<void> {
    const log = lab.paths.logFile('dns');
    await logQueries(lab.client, log, { clock: this.#clock, signal });
    this.#queries = new DnsQueries((at, pod, { durationMs: value, type, name, server, answer }) =>
      this.#add({ type: 'sample', at, series: 'dnsQuery', labels: { pod, type, name, server, answer }, value }),
    );
    const { bridge } = lab.paths;
    const onSilence = (query: LabQuery): void => this.#queries?.add(this.now(), query);
    this.#silent = await listenSilently(silentServers(this.#steps), bridge, onSilence);
    const server = lab.state.dns?.server ?? '';
    let { next } = await linesFrom(log, 0);
    this.#run(
      this.#every(FLUSH_MS, async () => {
        const found = await linesFrom(log, next);
        ({ next } = found);
        for (const line of found.lines) {
          const query = parseQuery(line, server);
          if (query !== undefined) this.#queries?.add(this.now(), query);
        }
      }),
    );
  }

  #run(work: Promise<void>): void {
    this.#work.push(
      work.catch((error: unknown) => {
        if (!this.#over.signal.aborted) this.#fail(error instanceof Error ? error : new Error(errorMessage(error)));
      }),
    );
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#notify();
  }

  #every(ms: number, look: () => Promise<void>): Promise<void> {
    const work = async (): Promise<undefined> => {
      await look();
      return undefined;
    };
    return repeat(work, { clock: this.#clock, everyMs: ms, signal: this.#over.signal });
  }

  #at(moment: EpochMs): MonotonicMs {
    return monotonicMs(moment - this.#readyAt);
  }

  #add(observation: Observation): void {
    this.#observations.push(observation);
    this.#notify();
  }

  #notify(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }

  #looking: Promise<void> = Promise.resolve();

  #nextLook: Promise<void> | undefined;

  /** One after the other: each compares with what the one before has seen. It begins after this call. */
  #lookAtContainers(): Promise<void> {
    this.#nextLook ??= this.#looking.then(() => {
      this.#nextLook = undefined;
      return this.#look();
    });
    this.#looking = this.#nextLook;
    return this.#nextLook;
  }

  /** Whether what is in a namespace, or in none, is observed. */
  #isMine(namespace: string | undefined): boolean {
    const { namespace: own } = this.#options;
    return own === undefined || namespace === undefined || namespace === own;
  }

  /** What a pod's status says of its containers has been seen in the runtime before the status is. */
  #observeObject(at: MonotonicMs, change: ObjectChange): void {
    if (!this.#isMine(change.object.metadata.namespace)) return;
    const add = (): void => {
      this.#add({ type: 'object', at, ...change });
      const { kind, metadata, status } = change.object;
      const address = kind === 'Pod' ? podIPOf(status) : undefined;
      if (address !== undefined) this.#queries?.podHas(`${metadata.namespace}/${metadata.name}`, address);
    };
    if (change.object.kind === 'Pod') this.#run(this.#lookAtContainers().then(add));
    else add();
  }

  async #look(): Promise<void> {
    this.#addContainers((await this.#containers?.look(this.#clock)) ?? []);
  }

  #addContainers(changes: readonly ContainerChange[]): void {
    for (const { at, ...change } of changes) {
      if (this.#isMine(change.pod.slice(0, change.pod.indexOf('/')))) this.#add({ ...change, at: this.#at(at) });
    }
  }

  #observeSpan(span: Span): void {
    if (!this.#isMine(span.pod?.namespace)) return;
    this.#spans.push(JSON.stringify(span));
    this.#addContainers(this.#containers?.named(span) ?? []);
    // No event of the runtime tells of one that was made, or of a start that failed.
    if (span.name === 'CreateContainer' || span.name === 'StartContainer') this.#run(this.#lookAtContainers());
    // What the agent did for its own start is in the recording alone.
    if (this.#isReady && span.start >= this.#readyAt) this.#add({ type: 'span', at: this.#at(span.start), span });
  }

  #sample(samples: PodSamples): void {
    const at = this.now();
    for (const reading of samples.read(at)) this.#add({ type: 'sample', at, ...reading });
  }

  async perform(step: WorldStep): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#performer === undefined) throw new Error('the lab has not started');
    await this.#performer.perform(step);
  }

  sleep(ms: number): Promise<void> {
    return this.#clock.sleep(ms, this.#over.signal);
  }

  async changed(limitMs: number): Promise<boolean> {
    if (this.#failure !== undefined) throw this.#failure;
    this.#over.signal.throwIfAborted();
    const before = this.#observations.length;
    const waited = new AbortController();
    const woken = new Promise<void>((resolve) => this.#wake.push(resolve));
    const signal = AbortSignal.any([waited.signal, this.#over.signal]);
    // Ends when something has come.
    const limit = this.#clock.sleep(Math.max(0, limitMs), signal).catch(() => undefined);
    await Promise.race([woken, limit]);
    waited.abort();
    if (this.#observations.length > before) {
      // Changes come together: a condition is evaluated once for them.
      await sleepUnlessAborted(this.#clock, TOGETHER_MS, this.#over.signal);
    }
    if (this.#failure !== undefined) throw this.#failure;
    return this.#observations.length > before;
  }

  async recordings(): Promise<ReadonlyMap<string, string>> {
    this.#recorder?.flush();
    const files: [string, string][] = [];
    if (this.#spans.length > 0) files.push(['spans.jsonl', `${this.#spans.join('\n')}\n`]);
    if (this.#calls.length > 0) files.push(['calls.crirec', `${this.#calls.join('\n')}\n`]);
    const seen = this.#observations.filter(({ type }) => type !== 'span');
    files.push(['observations.jsonl', seen.map((each) => `${JSON.stringify(each)}\n`).join('')]);
    return new Map(files);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#over.abort(new UserError('the experiment is over'));
    this.#notify();
    // Its caller has the error; here only its end matters: a start that fails leaves no lab.
    await this.#starting.catch(() => undefined);
    await Promise.all(this.#work);
    this.#containers?.close();
    for (const socket of this.#silent) socket.close();
    const interposed = this.#interposed;
    if (interposed !== undefined) await heal(interposed);
    if (this.#options.lab !== undefined) await this.#undo(this.#options.lab);
    const problems = (await this.#lab?.stop()) ?? [];
    if (interposed !== undefined) await closeInterposed(interposed);
    if (problems.length > 0) throw new UserError(`not everything could be cleaned: ${problems.join('; ')}`);
    if (this.#directory !== undefined) await removeTree(this.#directory);
  }

  /** In a lab that is not the experiment's own. */
  async #undo(lab: RunningLab): Promise<void> {
    await this.#performer?.undo();
    const { namespace } = this.#options;
    if (namespace === undefined) return;
    const path = resourcePath('v1', 'namespaces', { name: namespace });
    await deleteAndWait(lab.client, path, this.#clock);
  }
}

function podIPOf(status: unknown): string | undefined {
  if (typeof status !== 'object' || status === null || !('podIP' in status)) return undefined;
  return typeof status.podIP === 'string' && status.podIP !== '' ? status.podIP : undefined;
}
