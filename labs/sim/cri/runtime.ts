// A container runtime in memory: sandboxes, containers, their processes and images, as containerd keeps them, and what
// each call of CRI does to them. It can be restarted and be reached over a bad line. It checks nothing: rules.ts does.

import { join } from 'node:path';
import { RuntimeError, type RuntimeImage } from '../../../agent/ports/runtime.ts';
import { ANNOTATION_HASH, LABEL_CONTAINER_NAME, podRefOf } from '../../../agent/runtime/config/labels.ts';
import { errorMessage } from '../../../lib/errors.ts';
import type { ContainerEventType__Output } from '../../../proto/gen/runtime/v1/ContainerEventType.ts';
import type { CreateContainerRequest__Output } from '../../../proto/gen/runtime/v1/CreateContainerRequest.ts';
import type { LinuxContainerResources__Output } from '../../../proto/gen/runtime/v1/LinuxContainerResources.ts';
import type { RunPodSandboxRequest__Output } from '../../../proto/gen/runtime/v1/RunPodSandboxRequest.ts';
import type { SimDiskSpace } from '../disk-space.ts';
import { SimImages } from '../images.ts';
import { Line, type LineFailure } from '../line.ts';
import type { Process } from '../processes.ts';
import type { ContainerWitness } from '../witness.ts';
import { criError } from './errors.ts';
import { RuntimeEvents } from './events.ts';
import { execSync } from './exec.ts';
import type { RuntimeKind } from './kinds.ts';
import { containerStatus, nanos, sandboxStatus } from './messages.ts';
import { beginLog, removeLogLinks, writeLastWords } from './output.ts';
import type { SimCriParts } from './parts.ts';
import {
  containerName,
  type Instance,
  newInstance,
  RuntimeState,
  ruledInstances,
  type Sandbox,
  sandboxName,
} from './state.ts';

const CODES: Readonly<Record<LineFailure, string>> = {
  refused: 'UNKNOWN',
  unavailable: 'UNAVAILABLE',
  deadline: 'DEADLINE_EXCEEDED',
  cancelled: 'CANCELLED',
};
/** How long after the end of a container the runtime may learn that it was for want of memory, in ms. */
const LATE_OOM_MS = 1_500;

export class SimCri {
  readonly #parts: SimCriParts;
  readonly kind: RuntimeKind;
  readonly line: Line;
  readonly state = new RuntimeState();
  readonly images: SimImages;
  readonly events: RuntimeEvents;
  #sequence = 0;
  /** Ends that happened while the runtime was away: it shows them when it is back. */
  readonly #unseenEnds = new Set<Instance>();
  /** How often it went away. */
  #restarts = 0;
  /** Rejects when the runtime goes away: what it had begun it does not go on with. */
  #cut = Promise.withResolvers<never>();

  constructor(parts: SimCriParts) {
    this.#parts = parts;
    const { kind, clock, dice, journal, weather } = parts;
    this.kind = kind;
    this.images = parts.images ?? new SimImages();
    const error = (call: string, failure: LineFailure): Error =>
      new RuntimeError(call, CODES[failure], `${call}: injected failure (${failure})`);
    this.line = new Line({ name: 'cri', clock, dice, journal, error, weather, usualMs: 10 });
    this.events = new RuntimeEvents({ clock, dice: dice.fork(), journal, kind, weather });
    this.events.isDown = () => this.line.down;
    this.#cut.promise.catch(() => undefined);
  }

  /** Undefined where what containers write is not counted. */
  get space(): SimDiskSpace | undefined {
    return this.#parts.space;
  }

  /** The agent asks for something, whatever becomes of the call. */
  get timing(): ContainerWitness {
    return this.#parts.timing;
  }

  // ---------------------------------------------------------------- what chance does to it

  /** A process ends. What CRI shows of it follows when the task is torn down. */
  end(instance: Instance, exitCode: number, reason: string): void {
    const { process, id } = instance;
    if (process === undefined) return;
    process.timer?.cancel();
    instance.process = undefined;
    const { clock, journal, dice } = this.#parts;
    journal.note(`${id} ends ${exitCode} ${reason}`);
    const learnsLate = reason === 'OOMKilled' && dice.chance(0.3);
    const end = { exitCode, reason: learnsLate ? 'Error' : reason, message: '', at: clock.now() };
    instance.end = end;
    this.#parts.timing.ended(instance);
    this.#parts.memory.ends(instance);
    if (this.#parts.lastWords !== false) writeLastWords(instance, this.#parts.faults);
    if (reason === 'OOMKilled') {
      clock.after(learnsLate ? dice.below(LATE_OOM_MS) : 0, () => {
        end.reason = reason;
        this.events.emitBus({ topic: '/tasks/oom', id });
      });
    }
    this.events.emitBus({ topic: '/tasks/exit', id, process: id, exitCode });
    process.resolveEnded();
    clock.after(dice.pick(this.kind.teardownMs), () => this.#showEnd(instance));
  }

  #showEnd(instance: Instance): void {
    if (instance.shown === 'exited') return;
    if (this.line.down) {
      this.#unseenEnds.add(instance);
      return;
    }
    if (instance.starting) {
      // Its start has not been written down yet.
      this.#parts.clock.after(1, () => this.#showEnd(instance));
      return;
    }
    instance.shown = 'exited';
    instance.shownEnd.resolve();
    this.#emitCri(instance, 'CONTAINER_STOPPED_EVENT');
  }

  /** The sandbox's own process dies, and every container with it; its network is still held. */
  killSandbox(sandbox: Sandbox): void {
    if (sandbox.state !== 'ready') return;
    const { id } = sandbox;
    for (const instance of this.state.inSandbox(id)) this.end(instance, 137, 'Error');
    sandbox.state = 'notReady';
    this.events.emitBus({ topic: '/tasks/exit', id, process: id, exitCode: 137 });
    this.#emitCri(sandbox, 'CONTAINER_STOPPED_EVENT');
  }

  /** The runtime's own process goes away and comes back; containers run on, some of them lost sight of. */
  restart(downMs: number): void {
    this.#parts.weather.bad(downMs);
    this.goAway();
    this.#parts.clock.after(downMs, () => this.comeBack());
  }

  /** Its process ends, and containers run on. */
  goAway(): void {
    this.#restarts++;
    this.line.cut();
    this.#parts.nodeRules.runtimeGoes();
    this.events.break('the runtime is shutting down');
    this.#cut.reject(new RuntimeError('any', 'UNAVAILABLE', 'the runtime is shutting down'));
  }

  /** Whatever it was, the runtime answers from now on. */
  mend(): void {
    this.line.mend();
    this.events.trouble = 0;
    this.comeBack();
  }

  comeBack(): void {
    this.line.down = false;
    this.#parts.nodeRules.runtimeIsBack();
    this.#cut = Promise.withResolvers<never>();
    this.#cut.promise.catch(() => undefined);
    const { dice, rules } = this.#parts;
    for (const instance of this.state.instances()) {
      if (instance.starting) this.#started(instance);
      if (instance.process === undefined || this.line.trouble === 0 || !dice.chance(0.1)) continue;
      instance.shown = 'unknown';
      rules.mayRunAgain(instance.pod.uid, instance.name);
    }
    for (const instance of this.#unseenEnds) this.#showEnd(instance);
    this.#unseenEnds.clear();
  }

  removeUnusedImage(name: string): void {
    for (const { spec, process } of this.state.instances()) {
      if (process !== undefined && spec.container.image === name) return;
    }
    this.images.held.delete(name);
  }

  // ---------------------------------------------------------------- inside

  /** Waits, unless the runtime goes away before that. */
  async #waits<T>(what: Promise<T>): Promise<T> {
    return await Promise.race([what, this.#cut.promise]);
  }

  async #sleep(ms: number): Promise<void> {
    if (ms > 0) await this.#waits(this.#parts.clock.sleep(ms));
  }

  /** The answer of a call that changed something may come after the event about it. */
  async #answersLater(): Promise<void> {
    await this.#sleep(this.#parts.dice.pick([0, 0, 8]));
  }

  #emitCri(about: Sandbox | Instance, type: ContainerEventType__Output): void {
    const { kind } = this;
    const sandboxId = 'sandboxId' in about ? about.sandboxId : about.id;
    this.events.emitCri(`${type} ${about.id}`, () => {
      const sandbox = this.state.sandbox(sandboxId);
      return {
        container_id: about.id,
        container_event_type: type,
        created_at: nanos(this.#parts.clock.now()),
        pod_sandbox_status: sandbox === undefined ? null : sandboxStatus(sandbox),
        containers_statuses: this.state.inSandbox(sandboxId).map((instance) => containerStatus(instance, kind)),
      };
    });
  }

  // ---------------------------------------------------------------- sandboxes

  async runPodSandbox({ config, runtime_handler }: RunPodSandboxRequest__Output): Promise<string> {
    const call = 'RunPodSandbox';
    const pod = podRefOf(config?.labels ?? {});
    if (config === null || config.metadata === null || pod === undefined) {
      throw criError(call, 'INVALID_ARGUMENT', 'the sandbox config names no pod');
    }
    const { attempt } = config.metadata;
    const id = `sandbox-${++this.#sequence}`;
    const hostNetwork = config.linux?.security_context?.namespace_options?.network === 'NODE';
    const sandbox: Sandbox = {
      id,
      pod,
      attempt,
      config,
      handler: runtime_handler,
      hostNetwork,
      createdAt: this.#parts.clock.now(),
      state: 'ready',
      netns: hostNetwork ? '' : this.#parts.network.makeNamespace(id),
      ips: [],
    };
    const restarts = this.#restarts;
    const goesAway = (): boolean => restarts !== this.#restarts;
    try {
      if (!hostNetwork) sandbox.ips = await this.#parts.network.add(sandbox);
    } catch (error) {
      if (!goesAway()) await this.#undoSandbox(sandbox);
      else this.#forgetSandbox(sandbox);
      throw criError(call, 'UNKNOWN', `failed to setup network for sandbox: ${errorMessage(error)}`);
    }
    if (goesAway()) {
      this.#forgetSandbox(sandbox);
      throw criError(call, 'UNAVAILABLE', 'the runtime is shutting down');
    }
    if (this.line.trouble > 0 && this.#parts.dice.chance(0.03)) {
      await this.#undoSandbox(sandbox);
      throw criError(call, 'UNKNOWN', 'failed to create containerd task: failed to create shim task');
    }
    this.state.addSandbox(sandbox);
    this.events.emitBus({ topic: '/tasks/start', id });
    this.#emitCri(sandbox, 'CONTAINER_STARTED_EVENT');
    if (this.#parts.faults.has('the runtime makes two sandboxes for one call')) {
      this.state.addSandbox({ ...sandbox, id: `sandbox-${++this.#sequence}`, ips: [], netns: '' });
    }
    await this.#answersLater();
    return id;
  }

  /** A sandbox that could not be made: its network goes. Where it does not, 1.6 forgets it and later ones keep it. */
  async #undoSandbox(sandbox: Sandbox): Promise<void> {
    const { network } = this.#parts;
    try {
      if (!sandbox.hostNetwork) await network.del(sandbox);
      network.removeNamespace(sandbox);
      this.state.free(sandboxName(sandbox.pod.uid, sandbox.attempt));
    } catch {
      if (!this.kind.keepsFailedSandbox) {
        this.#forgetSandbox(sandbox);
        network.removeNamespace(sandbox);
        return;
      }
      sandbox.state = 'notReady';
      this.state.addSandbox(sandbox);
    }
  }

  /** A runtime that dies while it makes a sandbox knows nothing of it afterwards. */
  #forgetSandbox(sandbox: Sandbox): void {
    if (!sandbox.hostNetwork) this.#parts.network.abandon(sandbox);
    this.state.free(sandboxName(sandbox.pod.uid, sandbox.attempt));
  }

  async stopPodSandbox(id: string): Promise<void> {
    const sandbox = this.state.sandbox(id);
    if (sandbox === undefined) return;
    // As in containerd: containers first, then the sandbox's own process, then the network.
    const instances = this.state.inSandbox(id);
    for (const instance of instances) {
      this.#parts.timing.killedWithSandbox(instance);
      this.end(instance, 137, 'Error');
    }
    const ending = instances.filter(({ end, shown }) => end !== undefined && shown !== 'exited');
    await this.#waits(Promise.all(ending.map(({ shownEnd }) => shownEnd.promise)));
    this.killSandbox(sandbox);
    if (!sandbox.hostNetwork) {
      try {
        await this.#waits(this.#parts.network.del(sandbox));
      } catch (error) {
        throw criError('StopPodSandbox', 'UNKNOWN', `failed to destroy network for sandbox: ${errorMessage(error)}`);
      }
      this.#parts.network.removeNamespace(sandbox);
      sandbox.ips = [];
    }
    await this.#answersLater();
  }

  async removePodSandbox(id: string): Promise<void> {
    const sandbox = this.state.sandbox(id);
    if (sandbox === undefined) return;
    if (sandbox.state === 'ready') this.#parts.rules.break(`sandbox ${id} of ${sandbox.pod.name} removed while ready`);
    await this.stopPodSandbox(id);
    for (const instance of this.state.inSandbox(id)) this.#drop(instance);
    if (this.state.sandbox(id) !== sandbox) return;
    this.state.dropSandbox(sandbox);
    this.events.emitBus({ topic: '/containers/delete', id });
    this.#emitCri(sandbox, 'CONTAINER_DELETED_EVENT');
    await this.#answersLater();
  }

  // ---------------------------------------------------------------- containers

  async createContainer({ pod_sandbox_id, config }: CreateContainerRequest__Output): Promise<string> {
    const call = 'CreateContainer';
    const pod = podRefOf(config?.labels ?? {});
    const name = config?.labels[LABEL_CONTAINER_NAME];
    const attempt = config?.metadata?.attempt;
    if (config === null || pod === undefined || name === undefined || attempt === undefined) {
      throw criError(call, 'INVALID_ARGUMENT', 'the container config names no container of a pod');
    }
    const refuse = (code: string, why: string): RuntimeError => {
      this.state.free(containerName(pod.uid, name, attempt));
      return criError(call, code, why);
    };
    const sandbox = this.state.sandbox(pod_sandbox_id);
    if (sandbox?.state !== 'ready') throw refuse('UNKNOWN', `sandbox ${pod_sandbox_id} is not ready`);
    const image = this.images.find(config.image?.image ?? '');
    if (image === undefined) throw refuse('NOT_FOUND', `image "${config.image?.image}": not found`);
    const spec = this.#parts.meant.find(pod.uid, name, config.annotations[ANNOTATION_HASH] ?? '');
    const instance = newInstance({
      id: `${pod.name}.${name}-${++this.#sequence}`,
      sandboxId: sandbox.id,
      pod,
      name,
      restartCount: attempt,
      config,
      spec,
      image,
      logPath: join(sandbox.config.log_directory, config.log_path),
      createdAt: this.#parts.clock.now(),
    });
    this.#parts.rules.containerCreated(instance);
    this.state.addInstance(instance);
    this.#parts.timing.created?.(instance);
    this.#emitCri(instance, 'CONTAINER_CREATED_EVENT');
    await this.#answersLater();
    return instance.id;
  }

  async startContainer(id: string): Promise<void> {
    const call = 'StartContainer';
    const instance = this.state.instance(id);
    if (instance === undefined) throw criError(call, 'NOT_FOUND', `no container ${id}`);
    if (instance.shown !== 'created' || instance.starting) {
      throw criError(call, 'UNKNOWN', `container is in ${instance.shown} state`);
    }
    if (this.state.sandbox(instance.sandboxId)?.state !== 'ready') {
      throw criError(call, 'UNKNOWN', 'sandbox container is not running');
    }
    const { clock, dice, processes, rules, prerequisites } = this.#parts;
    if (this.line.trouble > 0 && dice.chance(0.05)) {
      const message = 'failed to create containerd task: exec: "nothing": not found';
      instance.startedAt = clock.now();
      instance.end = { exitCode: 128, reason: 'StartError', message, at: clock.now() };
      instance.shown = 'exited';
      instance.shownEnd.resolve();
      throw criError(call, 'UNKNOWN', message);
    }
    rules.containerStarts(instance.spec, instance.sandboxId, ruledInstances(this.state, instance), prerequisites);
    this.#parts.timing.started(instance);
    beginLog(instance, rules, this.#parts.faults);
    instance.startedAt = clock.now();
    instance.starting = true;
    instance.process = processes.begin(
      instance.spec,
      (exitCode, reason) => this.end(instance, exitCode, reason),
      instance.config,
      this.state.sandbox(instance.sandboxId)?.config,
    );
    this.#parts.memory.begins(instance);
    this.events.emitBus({ topic: '/tasks/start', id });
    await this.#sleep(dice.pick(this.kind.startMs));
    this.#started(instance);
    await this.#answersLater();
  }

  #started(instance: Instance): void {
    if (!instance.starting) return;
    instance.starting = false;
    instance.shown = 'running';
    if (this.#parts.faults.has('somebody removes the links to logs')) removeLogLinks(instance);
    this.#emitCri(instance, 'CONTAINER_STARTED_EVENT');
  }

  async stopContainer(id: string, graceSeconds: number): Promise<void> {
    const instance = this.state.instance(id);
    if (instance === undefined) {
      if (this.kind.stopsWhatIsGone) return;
      throw criError('StopContainer', 'NOT_FOUND', `an error occurred when try to find container "${id}": not found`);
    }
    if (instance.starting || instance.shown === 'created' || instance.shown === 'exited') return;
    if (instance.process === undefined) await this.#tornDown('StopContainer', instance);
    else await this.#stop(instance, instance.process, graceSeconds);
  }

  async #stop(instance: Instance, process: Process, graceSeconds: number): Promise<void> {
    const { clock, faults } = this.#parts;
    if (faults.has('the runtime says that a container has ended while it runs')) {
      instance.end = { exitCode: 143, reason: 'Error', message: '', at: clock.now() };
      instance.shown = 'exited';
      return;
    }
    const { termMs } = process;
    // The process has the signal, whatever becomes of the runtime.
    if (graceSeconds > 0) process.term?.();
    if (graceSeconds > 0 && termMs !== undefined) clock.after(termMs, () => this.end(instance, 143, 'Error'));
    const kill = clock.after(graceSeconds * 1000, () => {
      if (instance.process !== undefined) this.#parts.timing.killed(instance);
      this.end(instance, 137, 'Error');
    });
    try {
      await this.#waits(instance.shownEnd.promise);
    } finally {
      kill.cancel();
    }
  }

  /** What has ended and does not show it yet: a call about it waits for that, or meets a shim that is going away. */
  async #tornDown(call: string, { shownEnd }: Instance): Promise<void> {
    if (this.#parts.dice.chance(0.3)) throw criError(call, 'UNKNOWN', 'ttrpc: closed: unknown');
    await this.#waits(shownEnd.promise);
  }

  removalRequested(id: string): void {
    const instance = this.state.instance(id);
    if (instance !== undefined) instance.removedUnstarted = instance.startedAt === 0;
  }

  async removeContainer(id: string): Promise<void> {
    const instance = this.state.instance(id);
    if (instance === undefined) return;
    if (instance.starting) {
      throw criError('RemoveContainer', 'UNKNOWN', `container "${id}" is in starting state, can't be removed`);
    }
    if (instance.process !== undefined) {
      // A start that came late, while this call was on its way: the caller could not know, and containerd kills what runs.
      if (!instance.removedUnstarted) this.#parts.rules.break(`container ${id} removed while it runs`);
    } else if (instance.end !== undefined && instance.shown !== 'exited')
      await this.#tornDown('RemoveContainer', instance);
    this.#drop(instance);
    await this.#answersLater();
  }

  #drop(instance: Instance): void {
    if (this.state.instance(instance.id) !== instance) return;
    this.end(instance, 137, 'Error');
    this.state.dropInstance(instance);
    this.#parts.space?.dropLayer(instance.config);
    this.#parts.timing.removed?.(instance);
    this.#unseenEnds.delete(instance);
    this.events.emitBus({ topic: '/containers/delete', id: instance.id });
    this.#emitCri(instance, 'CONTAINER_DELETED_EVENT');
  }

  updateContainerResources(id: string, resources: LinuxContainerResources__Output | null): void {
    const instance = this.state.instance(id);
    if (instance === undefined) throw criError('UpdateContainerResources', 'NOT_FOUND', `no container ${id}`);
    if (instance.process === undefined) {
      throw criError('UpdateContainerResources', 'UNKNOWN', 'container is not running');
    }
    if (resources === null) return;
    const given = Object.entries(resources).filter(([, value]) => value !== '0' && value !== '');
    instance.resources = { ...resources, ...instance.resources, ...Object.fromEntries(given) };
  }

  async execSync(id: string, command: readonly string[], timeoutSeconds: number) {
    const { clock, processes } = this.#parts;
    const parts = { clock, processes, events: this.events, waits: <T>(what: Promise<T>) => this.#waits(what) };
    return await execSync(this.state.instance(id), { id, command, timeoutSeconds }, parts);
  }

  async pullImage(name: string): Promise<RuntimeImage> {
    await this.#sleep(this.images.pullMs(name) ?? this.#parts.dice.pick([10, 400, 9_000]));
    return this.images.pull(name);
  }
}
