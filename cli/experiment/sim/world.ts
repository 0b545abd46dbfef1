// The world of an experiment in virtual time: the agent on a simulated machine and cluster. Time moves only while the runner
// waits, from one timer to the next, so that a day takes seconds. Nothing happens by chance; the seed decides how long calls
// take.

import { completeConfiguration } from '../../../agent/config/kubelet-configuration.ts';
import type { KubeletConfiguration } from '../../../agent/config/kubelet-fields.ts';
import { type RunningAgent, startSimAgent } from '../../../labs/sim/agent.ts';
import { onceIdle, VirtualClock } from '../../../labs/sim/clock.ts';
import type { Change, UserObject } from '../../../labs/sim/cluster.ts';
import type { Instance } from '../../../labs/sim/cri/state.ts';
import type { DnsQuery } from '../../../labs/sim/dns.ts';
import { elapsedMs, type MonotonicMs, monotonicMs, plusMs } from '../../../lib/clock.ts';
import { UserError } from '../../../lib/errors.ts';
import type { Log } from '../../../lib/log.ts';
import { quantityValue } from '../../../lib/quantity.ts';
import { type Span, Tracer } from '../../../lib/trace.ts';
import { milliseconds } from '../duration.ts';
import { FaultSet, podOfPath } from '../fault-set.ts';
import type { FaultRule, Manifest, ProcessName, WorldSpec } from '../model.ts';
import type { ContainerObservation, Observation } from '../observation.ts';
import { isStaticPod, staticPodFile } from '../static-pods.ts';
import type { World, WorldStep } from '../world.ts';
import { configureAgent } from './agent-options.ts';
import { tracedApi } from './agent-parts.ts';
import { simCannot } from './cannot.ts';
import { type RunningControllers, startControllers } from './controllers.ts';
import { dnsInjectionOf, injectionOf, pluginInjectionOf } from './faults.ts';
import { createMachine, type ExperimentMachine } from './machine.ts';

export interface SimWorldOptions {
  readonly seed: number;
}

/** How long the node may take to be Ready at the start, virtual ms. */
const READY_MS = 60_000;
const JOURNAL_LINES = 20_000;
/** Fields of KubeletConfiguration by which pods have the cluster's name server. */
const CLUSTER_RESOLVER = { clusterDNS: ['10.96.0.10'], clusterDomain: 'cluster.local' };
/** After so many timers the event loop has a turn. */
const TIMERS_A_TURN = 32;
/** Rules of CRI whose call begins so are about events of the runtime: "event CONTAINER_STOPPED_EVENT", "event /tasks/exit". */
const EVENT = 'event ';
/** How long a command of a step may take, seconds. */
const EXEC_LIMIT_S = 3600;

export function createSimWorld(options: SimWorldOptions): World {
  return new SimWorld(options);
}

class SimWorld implements World {
  readonly kind = 'sim';
  readonly #seed: number;
  readonly #clock = new VirtualClock();
  readonly #startedAt = this.#clock.now();
  readonly #observations: Observation[] = [];
  readonly #spans: Span[] = [];
  readonly #journal: string[] = [];
  /** Containers that were killed when their grace period was over. */
  readonly #killed = new Set<string>();
  #machine: ExperimentMachine | undefined;
  #configuration: KubeletConfiguration = completeConfiguration({}, 'defaults');
  #spec: WorldSpec = {};
  #agent: RunningAgent | undefined;
  #stopAgentParts: (() => void) | undefined;
  #controllers: RunningControllers | undefined;
  /** It was shut down, and nothing starts it again. */
  #isOff = false;
  #readyAt: MonotonicMs = monotonicMs(0);
  #signal: AbortSignal | undefined;
  /** What went wrong in the world itself: the next step reports it. */
  #failure: unknown;

  constructor({ seed }: SimWorldOptions) {
    this.#seed = seed;
  }

  get observations(): readonly Observation[] {
    return this.#observations;
  }

  now(): MonotonicMs {
    return monotonicMs(elapsedMs(this.#readyAt, this.#clock.monotonic()));
  }

  cannot(spec: WorldSpec, steps: readonly WorldStep[]): readonly string[] {
    return simCannot(spec, steps);
  }

  async start(spec: WorldSpec, signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    this.#spec = spec;
    const resolver = spec.dns === true ? CLUSTER_RESOLVER : {};
    this.#configuration = completeConfiguration({ ...resolver, ...spec.kubelet }, 'world.kubelet');
    process.on('unhandledRejection', this.#onRejection);
    this.#machine = createMachine(this.#clock, this.#seed, spec, this.#configuration, {
      container: this.#containerWitness(),
      object: (change, object) => this.#observeObject(change, object),
      memory: (instance, bytes) => this.#sampleMemory(instance, bytes),
      journal: (line) => this.#note(line),
      query: (query) => this.#observeQuery(query),
      machineOff: () => this.#machineGoesOff(),
    });
    if (spec.controllers === true)
      this.#controllers = startControllers(this.#machine, this.#clock, (line) => this.#note(line));
    this.#startAgent();
    await this.#until(() => this.#isNodeReady(), READY_MS, 'the simulated node did not become Ready');
    // What happened before is no part of the experiment; objects that are there begin with it.
    const nodes = this.#observations.filter((each) => each.type === 'object').slice(-1);
    this.#readyAt = this.#clock.monotonic();
    this.#observations.length = 0;
    for (const node of nodes) this.#observations.push({ ...node, at: monotonicMs(0), change: 'ADDED' });
  }

  readonly #onRejection = (reason: unknown): void => {
    this.#failure ??= reason;
  };

  #here(): ExperimentMachine {
    if (this.#machine === undefined) throw new Error('the simulated world was not started');
    return this.#machine;
  }

  #isNodeReady(): boolean {
    const node = this.#machine?.server.nodes.node;
    return node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
  }

  // ---------------------------------------------------------------- what is observed

  #observeObject(change: Change, object: UserObject): void {
    const { namespace, ...rest } = object.metadata;
    const metadata = { ...rest, ...(namespace === undefined ? {} : { namespace }) };
    this.#observations.push({ type: 'object', at: this.now(), change, object: { ...object, metadata } });
  }

  #containerWitness() {
    return {
      stopRequested: () => undefined,
      execRequested: () => undefined,
      created: (instance: Instance) => this.#observeContainer('created', instance),
      started: (instance: Instance) => this.#observeContainer('started', instance),
      ended: (instance: Instance) => this.#observeContainer('exited', instance),
      removed: (instance: Instance) => this.#observeContainer('removed', instance),
      killed: ({ id }: Instance) => void this.#killed.add(id),
      killedWithSandbox: ({ id }: Instance) => void this.#killed.add(id),
    };
  }

  #observeContainer(change: ContainerObservation['change'], { id, pod, name, restartCount, end }: Instance): void {
    const ended = change === 'exited' && end !== undefined ? { exitCode: end.exitCode, reason: end.reason } : {};
    this.#observations.push({
      type: 'container',
      at: this.now(),
      change,
      pod: `${pod.namespace}/${pod.name}`,
      container: name,
      attempt: restartCount,
      ...ended,
      ...(change === 'exited' && this.#killed.has(id) ? { signal: 'KILL' } : {}),
    });
  }

  #sampleMemory({ pod, name }: Instance, value: number): void {
    const labels = { pod: `${pod.namespace}/${pod.name}`, container: name };
    this.#observations.push({ type: 'sample', at: this.now(), series: 'memory', labels, value });
  }

  #observeQuery({ durationMs: value, ...labels }: DnsQuery): void {
    this.#observations.push({ type: 'sample', at: this.now(), series: 'dnsQuery', labels, value });
  }

  #observeSpan(span: Span): void {
    const sinceStart = elapsedMs(this.#startedAt, span.start);
    const began = plusMs(monotonicMs(0), sinceStart);
    this.#spans.push(span);
    this.#observations.push({ type: 'span', at: monotonicMs(elapsedMs(this.#readyAt, began)), span });
  }

  #note(line: string): void {
    this.#journal.push(line);
    if (this.#journal.length > 2 * JOURNAL_LINES) this.#journal.splice(0, JOURNAL_LINES);
  }

  // ---------------------------------------------------------------- the agent

  #startAgent(): void {
    if (this.#agent !== undefined) return;
    const machine = this.#here();
    const tracer = new Tracer(() => plusMs(this.#startedAt, this.#clock.monotonic()));
    tracer.subscribe((span) => this.#observeSpan(span));
    const log: Log = (level, message, fields) => {
      if (level !== 'debug')
        this.#note(`${this.#clock.monotonic()} agent ${level}: ${message} ${JSON.stringify(fields ?? {})}`);
    };
    const parts = { machine, config: this.#configuration, spec: this.#spec, clock: this.#clock, tracer, log };
    const { options, close } = configureAgent(parts);
    this.#agent = startSimAgent({ ...machine, api: tracedApi(machine.cluster, tracer) }, options);
    this.#stopAgentParts = close;
  }

  #killAgent(): void {
    const agent = this.#agent;
    if (agent === undefined) return;
    agent.life.over = true;
    this.#here().shim.hangUp();
    this.#stopAgentParts?.();
    agent.stop();
    this.#agent = undefined;
    this.#here().csi.forgetCallers();
    this.#here().logind.forgetClients();
  }

  /** As when the power goes: nothing that runs there hears of it. */
  #machineGoesOff(): void {
    this.#isOff = true;
    this.#killAgent();
    const { runtime } = this.#here();
    for (const instance of runtime.state.instances()) {
      if (instance.process === undefined) continue;
      this.#killed.add(instance.id);
      runtime.end(instance, 137, 'Error');
    }
    runtime.goAway();
    this.#observations.push({ type: 'sample', at: this.now(), series: 'machine', labels: {}, value: 0 });
  }

  // ---------------------------------------------------------------- steps

  async perform(step: WorldStep): Promise<void> {
    this.#check();
    const { cluster } = this.#here();
    if ('apply' in step) for (const manifest of step.apply) this.#apply(manifest);
    else if ('delete' in step) this.#delete(step.delete);
    else if ('patch' in step) {
      const { kind, name, namespace = 'default', merge } = step.patch;
      cluster.patchObject(kind, name, namespace, merge);
    } else if ('exec' in step) await this.#exec(step.exec);
    else if ('kill' in step) this.#kill(step.kill);
    else if ('start' in step) this.#start(step.start.process);
    else if ('cut' in step) this.#cut(step.cut.from, true);
    else if ('heal' in step) this.#cut(step.heal.from, false);
    else if ('fault' in step) this.#fault(step.fault.on, step.fault.rules);
    else if ('use' in step) this.#use(step.use);
    else if ('shutdown' in step) {
      const { grace } = step.shutdown;
      this.#here().logind.shutDown(grace === undefined ? undefined : milliseconds(grace));
    } else {
      const { add } = step.clock;
      this.#clock.jump(add.startsWith('-') ? -milliseconds(add.slice(1)) : milliseconds(add));
    }
  }

  #use({ memory, disk }: { readonly memory?: string; readonly disk?: string }): void {
    const { memory: all, space } = this.#here();
    if (memory !== undefined) all.otherBytes = quantityValue(memory);
    if (disk !== undefined) space.otherBytes = quantityValue(disk);
  }

  #apply(manifest: Manifest): void {
    const { cluster, manifests } = this.#here();
    if (isStaticPod(manifest)) manifests.write(`${manifest.metadata.name}.yaml`, staticPodFile(manifest));
    else cluster.apply(manifest);
  }

  #delete({
    kind,
    name,
    namespace = 'default',
    gracePeriod,
  }: {
    kind: string;
    name: string;
    namespace?: string;
    gracePeriod?: string;
  }): void {
    const { manifests, cluster } = this.#here();
    if (kind === 'Pod' && manifests.files.has(`${name}.yaml`)) manifests.remove(`${name}.yaml`);
    else cluster.remove(kind, name, namespace, gracePeriod === undefined ? undefined : milliseconds(gracePeriod));
  }

  #instance(pod: string, container: string | undefined): Instance {
    const found = [...this.#here().runtime.state.instances()].filter(
      (each) =>
        each.pod.name === pod && (container === undefined || each.name === container) && each.process !== undefined,
    );
    const [instance] = found;
    if (instance === undefined) throw new UserError(`no container ${container ?? ''} of pod ${pod} runs`);
    return instance;
  }

  /** In the world's time, which moves meanwhile. */
  async #exec({
    pod,
    container,
    command,
  }: {
    pod: string;
    container?: string;
    command: readonly string[];
  }): Promise<void> {
    const { id } = this.#instance(pod, container);
    let outcome: { exitCode: number } | undefined;
    let failure: unknown;
    this.#here()
      .runtime.execSync(id, command, EXEC_LIMIT_S)
      .then(
        (value) => {
          outcome = value;
        },
        (error: unknown) => {
          failure = error;
        },
      );
    await this.#until(
      () => outcome !== undefined || failure !== undefined,
      EXEC_LIMIT_S * 1000,
      `${command.join(' ')} did not end`,
    );
    if (failure !== undefined) throw failure;
    if (outcome !== undefined && outcome.exitCode !== 0) {
      throw new UserError(`${command.join(' ')} in pod ${pod} exited with ${outcome.exitCode}`);
    }
  }

  #kill(
    target:
      | { readonly process: ProcessName }
      | { readonly pod: string; readonly container: string; readonly signal?: string },
  ): void {
    const { runtime } = this.#here();
    if ('process' in target) {
      if (target.process === 'agent') this.#killAgent();
      else if (target.process === 'containerd') runtime.goAway();
      else this.#apiServerAnswers(false);
      return;
    }
    const instance = this.#instance(target.pod, target.container);
    if ((target.signal ?? 'KILL') === 'TERM') instance.process?.term?.();
    else runtime.end(instance, 137, 'Error');
  }

  #start(process: ProcessName): void {
    const { runtime } = this.#here();
    if (this.#isOff && process !== 'apiserver') throw new UserError('the machine is off: it was shut down');
    if (process === 'agent') this.#startAgent();
    else if (process === 'containerd') runtime.comeBack();
    else this.#apiServerAnswers(true);
  }

  /** The process itself: the agent that is cut off from it is alone in that. */
  #apiServerAnswers(answers: boolean): void {
    const { cluster } = this.#here();
    if (answers) cluster.comeBack();
    else cluster.goDown();
    this.#controllers?.reach(answers);
  }

  #cut(from: 'apiserver' | 'runtime' | 'registry', isCut: boolean): void {
    const { runtime, cluster } = this.#here();
    if (from === 'registry') runtime.images.unreachable = isCut;
    else if (from === 'apiserver') isCut ? cluster.goDown() : cluster.comeBack();
    else if (isCut) runtime.goAway();
    else runtime.comeBack();
  }

  #fault(on: 'cri' | 'cni' | 'csi' | 'api' | 'dns', rules: readonly FaultRule[]): void {
    const { runtime, network, server, dns } = this.#here();
    const isOfEvent = ({ call }: FaultRule): boolean => call.startsWith(EVENT);
    const set = new FaultSet(rules.filter((rule) => !isOfEvent(rule)));
    if (on === 'cni') {
      network.inject = (call, sandboxId) => {
        const rule = set.take(call, this.#podOfSandbox(sandboxId));
        return rule === undefined ? undefined : pluginInjectionOf(rule, call);
      };
    } else if (on === 'dns') {
      dns.inject = (name, type, pod) => {
        const rule = set.take(`${type} ${name}`, pod);
        return rule === undefined ? undefined : dnsInjectionOf(rule);
      };
    } else if (on === 'cri') {
      runtime.line.inject = (call, subject) => {
        const rule = set.take(call, this.#podOfSubject(subject));
        return rule === undefined ? undefined : injectionOf(rule, call, 'cri');
      };
      const events = new FaultSet(rules.filter(isOfEvent));
      runtime.events.lose = (topic, id) => events.take(`${EVENT}${topic}`, this.#podOfSubject(id)) !== undefined;
    } else {
      server.line.inject = (call, path) => {
        const rule = set.take(`${call} ${path}`, podOfPath(path));
        return rule === undefined ? undefined : injectionOf(rule, call, 'api');
      };
    }
  }

  /** Of a sandbox that is there, or being made. */
  #podOfSandbox(id: string): string | undefined {
    const pod = this.#here().runtime.state.sandbox(id)?.pod;
    return pod === undefined ? undefined : `${pod.namespace}/${pod.name}`;
  }

  /** The line knows a call by "pod attempt", "pod/container attempt", or an id. */
  #podOfSubject(subject: string): string | undefined {
    const [first = ''] = subject.split(' ');
    const { state } = this.#here().runtime;
    const known = state.instance(first)?.pod ?? state.sandbox(first)?.pod;
    if (known !== undefined) return `${known.namespace}/${known.name}`;
    const [name] = first.split('/');
    const pod = [...this.#here().server.pods.values()].find(({ metadata }) => metadata.name === name);
    return pod === undefined ? undefined : `${pod.metadata.namespace}/${pod.metadata.name}`;
  }

  // ---------------------------------------------------------------- time

  #check(): void {
    this.#signal?.throwIfAborted();
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
  }

  /**
   * Moves time from timer to timer until `end`, with whatever follows from each without time, for as long as `goOn` is true. True
   * where it was not any more. A loop of callbacks: a promise for each of a day's timers would be a tenth of its cost.
   */
  #run(end: MonotonicMs, goOn: () => boolean): Promise<boolean> {
    return new Promise((resolve, reject) => {
      let fired = 0;
      const next = (): void => {
        try {
          this.#check();
          const at = this.#clock.nextAt();
          if (!goOn()) resolve(true);
          else if (at === undefined || at > end) resolve(false);
          else {
            this.#clock.fireNext();
            // An interrupt, and rejections without a handler, come with turns of the event loop alone.
            if (++fired % TIMERS_A_TURN === 0) setImmediate(next);
            else onceIdle(next);
          }
        } catch (error) {
          reject(error);
        }
      };
      setImmediate(next);
    });
  }

  async #until(condition: () => boolean, limitMs: number, message: string): Promise<void> {
    const end = plusMs(this.#clock.monotonic(), limitMs);
    if (!(await this.#run(end, () => !condition()))) throw new UserError(message);
  }

  async sleep(ms: number): Promise<void> {
    const end = plusMs(this.#clock.monotonic(), ms);
    await this.#run(end, () => true);
    // The rest of the time, in which nothing happens.
    await this.#clock.advance(elapsedMs(this.#clock.monotonic(), end));
  }

  async changed(limitMs: number): Promise<boolean> {
    const count = this.#observations.length;
    const end = plusMs(this.#clock.monotonic(), limitMs);
    if (await this.#run(end, () => this.#observations.length === count)) return true;
    await this.#clock.advance(Math.max(0, elapsedMs(this.#clock.monotonic(), end)));
    return this.#observations.length > count;
  }

  recordings(): Promise<ReadonlyMap<string, string>> {
    const lines = (items: readonly unknown[]): string => items.map((item) => `${JSON.stringify(item)}\n`).join('');
    return Promise.resolve(
      new Map([
        ['spans.jsonl', lines(this.#spans)],
        ['journal.txt', this.#journal.map((line) => `${line}\n`).join('')],
      ]),
    );
  }

  close(): Promise<void> {
    if (this.#machine !== undefined) {
      this.#controllers?.stop();
      this.#killAgent();
      this.#machine.disk.end();
      this.#machine = undefined;
      process.off('unhandledRejection', this.#onRejection);
    }
    return Promise.resolve();
  }
}
