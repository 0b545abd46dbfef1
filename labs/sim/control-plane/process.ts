// One process of a control plane in the simulated cluster: the real controllers, scheduler and leader election, on a clock and
// connections that can stop. A process that ends is not used again: its successor is a new one with another identity.

import { runControlPlane } from '../../../controlplane/main.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { Tracer } from '../../../lib/trace.ts';
import type { VirtualClock } from '../clock.ts';
import type { Dice } from '../dice.ts';
import { type ConnectionParts, SimConnection, type Trouble } from './connection.ts';
import { ProcessClock } from './process-clock.ts';
import type { SimControlPlaneServer, SimRequest } from './server.ts';

export interface ProcessParts {
  readonly server: SimControlPlaneServer;
  readonly clock: VirtualClock;
  readonly dice: Dice;
  /** Its holder's name in leases, and the actor of its requests. */
  readonly identity: string;
  /** As --controllers; with the scheduler or without. */
  readonly controllers: readonly string[];
  readonly scheduler: boolean;
  readonly leaderElection: boolean;
  readonly trouble: () => Trouble;
  readonly shown?: ConnectionParts['shown'];
  readonly onUncertain: (request: SimRequest) => void;
  readonly note: (what: string) => void;
  /** It has ended by itself. */
  readonly onEnd: () => void;
}

const ACCESS = { server: 'https://simulated' };
/** kube-controller-manager's and kube-scheduler's. */
const ELECTION = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2000 };

export class ControlPlaneProcess {
  readonly identity: string;
  readonly #clock: ProcessClock;
  readonly #parts: ProcessParts;
  readonly #connections: SimConnection[] = [];
  readonly #stop = new AbortController();
  #isOver = false;

  constructor(parts: ProcessParts) {
    this.#parts = parts;
    this.identity = parts.identity;
    this.#clock = new ProcessClock(parts.clock);
  }

  start(): void {
    const { dice, identity, note, onEnd } = this.#parts;
    const random = dice.fork();
    note(`${identity} starts`);
    runControlPlane({
      ...(this.#parts.scheduler ? { scheduler: ACCESS } : {}),
      controllerManager: ACCESS,
      controllers: this.#parts.controllers,
      ...(this.#parts.leaderElection ? { leaderElection: { ...ELECTION, identity } } : {}),
      rootCa: 'simulated',
      tracer: new Tracer(),
      clock: this.#clock,
      random: () => random.next(),
      connect: () => this.#connect(),
      log: (line) => note(`${identity}: ${line}`),
      signal: this.#stop.signal,
    }).then(
      () => this.#over('has stopped', onEnd),
      (error: unknown) => this.#over(`ends: ${errorMessage(error)}`, onEnd),
    );
  }

  get isRunning(): boolean {
    return !this.#isOver;
  }

  /** As by SIGTERM: leases are given up. */
  stop(): void {
    this.#stop.abort(new Error('the process is stopped'));
  }

  /** As by SIGKILL: nothing more happens in it, but what it has sent may still arrive. */
  kill(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#clock.die();
    for (const connection of this.#connections) connection.die();
    this.#parts.note(`${this.identity} is killed`);
    this.#parts.onEnd();
  }

  /** Stands still for `ms`: its leases run out, and it does not know. */
  pause(ms: number): void {
    if (this.#isOver || this.#clock.isStopped) return;
    this.#clock.pause();
    this.#parts.note(`${this.identity} stands still for ${ms} ms`);
    this.#parts.clock.after(ms, () => this.#clock.resume());
  }

  breakWatches(): void {
    for (const connection of this.#connections) connection.breakWatches();
  }

  /** Events of a collection come late from now on, by `ms` at least, until its watch ends. */
  lagWatches(path: string, ms: number): void {
    for (const connection of this.#connections) connection.lagWatches(path, ms);
    this.#parts.note(`${this.identity} gets events of ${path} ${ms} ms late`);
  }

  /** Each of its requests takes `ms` longer from now on. */
  slowRequests(ms: number): void {
    for (const connection of this.#connections) connection.slowRequests(ms);
    this.#parts.note(`${this.identity} sends requests that take ${ms} ms`);
  }

  #connect(): SimConnection {
    const { server, clock, dice, identity, trouble, onUncertain, note, shown } = this.#parts;
    const connection = new SimConnection({
      ...{ server, trouble, onUncertain, note, ...(shown === undefined ? {} : { shown }) },
      world: clock,
      own: this.#clock,
      dice: dice.fork(),
      actor: identity,
    });
    this.#connections.push(connection);
    return connection;
  }

  #over(how: string, onEnd: () => void): void {
    if (this.#isOver) return;
    this.#isOver = true;
    // A process that has ended takes what is still under way in it with it.
    this.#clock.die();
    for (const connection of this.#connections) connection.die();
    this.#parts.note(`${this.identity} ${how}`);
    onEnd();
  }
}
