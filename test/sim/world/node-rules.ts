// The rules about the Node and its Lease: what the agent writes there must be so, must not go back, and must come in time.
// What must hold once all is quiet is in rest.ts.

import type { Lease, Node } from '../../../client/types.ts';
import { FOREIGN_NODE_CONDITION } from '../../../labs/sim/foreign.ts';
import { ALLOCATABLE, HOST_IPS, LEASE_SECONDS, NODE_NAME } from '../../../labs/sim/node-facts.ts';
import type { NodeWitness } from '../../../labs/sim/node-objects.ts';
import { TRANSITION_MS } from '../../../labs/sim/pressure.ts';
import { type MonotonicMs, plusMs } from '../../../lib/clock.ts';
import { quantityValue } from '../../../lib/quantity.ts';
import type { World } from './world.ts';

type WhatIsThere = Pick<World, 'clock' | 'rules' | 'api' | 'runtime' | 'weather' | 'apiWeather' | 'memory' | 'journal'>;
type Condition = NonNullable<NonNullable<Node['status']>['conditions']>[number];

/** A lease is renewed after a quarter of its time; after this part of it, it is late. */
const RENEWAL_MS = (LEASE_SECONDS * 1000 * 5) / 8;
/** Registration, before the first renewal: the runtime is waited for, and its images. ms. */
const REGISTRATION_MS = 8_000;
/** Until a runtime that is silent counts as down, an interval, a status that has to wait for the one before. ms. */
const NOT_READY_MS = 58_000;
/** The same, for one that is back: it is checked more often. ms. */
const READY_MS = 30_000;
/** Until what eviction has measured stands in the status: a status has to wait for the one before. ms. */
const PRESSURE_MS = 20_000;
/** How long after the end of a shortage a status may claim it: eviction waits for the pods that it ends. ms. */
const CLAIM_MS = TRANSITION_MS + 120_000;
/** Two agents, one of them dead, may write at once. ms. */
const HANDOVER_MS = 2_000;

export class NodeRules implements NodeWitness {
  readonly #world: WhatIsThere;
  /** Undefined where it never was. */
  #renewedAt: MonotonicMs | undefined;
  /**
   * When the agent sent what the API server holds now. The times in it are that old: a jump of the clock while the
   * request is on its way comes after them, although the API server stores them after the jump.
   */
  #leaseSentAt: MonotonicMs | undefined;
  #statusSentAt: MonotonicMs | undefined;
  #agentSince: MonotonicMs | undefined;
  #clockJumpedAt: MonotonicMs | undefined;
  #runtimeDownSince: MonotonicMs | undefined;
  #claimedAt: MonotonicMs | undefined;

  constructor(world: WhatIsThere) {
    this.#world = world;
  }

  // ---------------------------------------------------------------- what happens

  agentBegins(): void {
    const { clock } = this.#world;
    const since = clock.monotonic();
    this.#agentSince = since;
    clock.after(REGISTRATION_MS, () => this.#expectRenewals(since));
  }

  agentEnds(): void {
    this.#agentSince = undefined;
  }

  clockJumped(): void {
    this.#clockJumpedAt = this.#world.clock.monotonic();
  }

  /** Eviction has measured that something is scarce. */
  pressureMeasured(): void {
    const { clock, apiWeather, rules } = this.#world;
    const since = clock.monotonic();
    const agent = this.#agentSince;
    clock.after(PRESSURE_MS, () => {
      if (this.#agentSince !== agent || agent === undefined || !apiWeather.isFairSince(since)) return;
      const claimed = this.#claimedAt !== undefined && this.#claimedAt >= since;
      if (claimed || this.#condition('MemoryPressure')?.status === 'True') return;
      rules.break(`the agent has evicted for want of memory ${PRESSURE_MS} ms ago, and the Node does not say so`);
    });
  }

  /** The runtime does not answer from now on. */
  runtimeGoes(): void {
    const { clock, apiWeather, rules } = this.#world;
    const since = clock.monotonic();
    this.#runtimeDownSince ??= since;
    const agent = this.#agentSince;
    clock.after(NOT_READY_MS, () => {
      if (this.#runtimeDownSince !== since || !apiWeather.isFairSince(since)) return;
      if (agent === undefined || this.#agentSince !== agent) return;
      const ready = this.#condition('Ready')?.status;
      if (ready !== 'False')
        rules.break(`the Node is Ready ${ready}, and its runtime has been down for ${NOT_READY_MS} ms`);
    });
  }

  runtimeIsBack(): void {
    const { clock, weather, rules } = this.#world;
    const since = clock.monotonic();
    if (this.#runtimeDownSince === undefined) return;
    this.#runtimeDownSince = undefined;
    clock.after(READY_MS, () => {
      if (this.#runtimeDownSince !== undefined || !weather.isFairSince(plusMs(since, 1))) return;
      if (this.#agentSince === undefined || this.#agentSince > since) return;
      const ready = this.#condition('Ready')?.status;
      if (ready !== 'True') rules.break(`the Node is Ready ${ready}, and its runtime answers for ${READY_MS} ms`);
    });
  }

  #condition(type: string): Condition | undefined {
    return this.#world.api.nodes.node?.status?.conditions?.find((condition) => condition.type === type);
  }

  /** Looks again and again for as long as this agent lives. */
  #expectRenewals(agent: MonotonicMs): void {
    const { clock, apiWeather, rules } = this.#world;
    const since = clock.monotonic();
    clock.after(RENEWAL_MS, () => {
      if (this.#agentSince !== agent) return;
      const late = this.#renewedAt === undefined || this.#renewedAt < since;
      if (late && apiWeather.isFairSince(agent === since ? since : plusMs(since, -REGISTRATION_MS))) {
        rules.break(`the lease was not renewed for ${RENEWAL_MS} ms`);
      }
      this.#expectRenewals(agent);
    });
  }

  // ---------------------------------------------------------------- what the agent writes

  leaseWritten(before: Lease | undefined, after: Lease, sentAt: MonotonicMs): void {
    const { clock, rules, api } = this.#world;
    const now = clock.monotonic();
    const [from, to] = [before?.spec?.renewTime, after.spec?.renewTime];
    if (
      from !== undefined &&
      to !== undefined &&
      Date.parse(to) < Date.parse(from) &&
      !this.#jumpedSince(this.#leaseSentAt)
    ) {
      rules.break(`the lease's renewTime went from ${from} to ${to}`);
    }
    const owner = after.metadata.ownerReferences?.[0]?.uid;
    if (owner !== api.nodes.node?.metadata.uid) rules.break(`the lease is owned by ${owner}, which is not the Node`);
    if (after.spec?.holderIdentity !== NODE_NAME) rules.break(`the lease is held by ${after.spec?.holderIdentity}`);
    this.#renewedAt = now;
    this.#leaseSentAt = sentAt;
  }

  nodeWritten(before: Node | undefined, after: Node, sentAt: MonotonicMs): void {
    const { journal } = this.#world;
    const conditions = after.status?.conditions ?? [];
    journal.note(`status of the node: ${conditions.map(({ type, status }) => `${type} ${status}`).join(', ')}`);
    for (const condition of conditions) {
      const known = before?.status?.conditions?.find(({ type }) => type === condition.type);
      if (known !== undefined) this.#checkTimes(known, condition);
    }
    this.#checkClaims(after);
    this.#checkFigures(after);
    const foreign = ({ status }: Node) =>
      status?.conditions?.find(({ type }) => type === FOREIGN_NODE_CONDITION)?.status;
    if (before !== undefined && foreign(before) !== foreign(after)) {
      this.#world.rules.break('a condition of another writer on the Node was changed');
    }
    this.#statusSentAt = sentAt;
  }

  /** Heartbeats go on; a transition is as old as the last change of the status. */
  #checkTimes(known: Condition, { type, status, lastHeartbeatTime = '', lastTransitionTime = '' }: Condition): void {
    if (type === FOREIGN_NODE_CONDITION || this.#jumpedSince(this.#statusSentAt) || this.#isHandover) return;
    const { rules } = this.#world;
    const [beat, transition] = [known.lastHeartbeatTime ?? '', known.lastTransitionTime ?? ''];
    if (Date.parse(lastHeartbeatTime) < Date.parse(beat)) {
      rules.break(`the heartbeat of ${type} went from ${beat} to ${lastHeartbeatTime}`);
    }
    if (status === known.status && lastTransitionTime !== transition) {
      rules.break(
        `the transition of ${type} moved from ${transition} to ${lastTransitionTime}, and it is ${status} still`,
      );
    }
    if (status !== known.status && Date.parse(lastTransitionTime) < Date.parse(beat)) {
      rules.break(`${type} became ${status} at ${lastTransitionTime}, and was ${known.status} at ${beat}`);
    }
  }

  /** No pressure that was not measured, and no readiness without a runtime. */
  #checkClaims({ status }: Node): void {
    const { clock, rules, memory, weather } = this.#world;
    const now = clock.monotonic();
    const holds = (type: string): boolean =>
      status?.conditions?.some((condition) => condition.type === type && condition.status === 'True') === true;
    for (const type of ['DiskPressure', 'PIDPressure']) if (holds(type)) rules.break(`the Node claims ${type}`);
    const { lastShort } = memory;
    const over = lastShort === undefined || (lastShort < now - CLAIM_MS && weather.isFairSince(lastShort));
    if (holds('MemoryPressure')) this.#claimedAt = now;
    if (holds('MemoryPressure') && over) rules.break('the Node claims MemoryPressure, and there is memory');
    const down = this.#runtimeDownSince;
    if (holds('Ready') && down !== undefined && down < now - NOT_READY_MS) {
      rules.break(`the Node is reported Ready, and its runtime has been down for ${now - down} ms`);
    }
  }

  #checkFigures({ status }: Node): void {
    const { rules } = this.#world;
    const addresses = status?.addresses?.map(({ type, address }) => `${type} ${address}`).join(', ');
    const wanted = [...HOST_IPS.map((address) => `InternalIP ${address}`), `Hostname ${NODE_NAME}`].join(', ');
    if (addresses !== wanted) rules.break(`the Node's addresses are ${addresses}, not ${wanted}`);
    for (const [resource, quantity] of Object.entries(ALLOCATABLE)) {
      for (const list of [status?.capacity, status?.allocatable]) {
        const given = new Map(Object.entries(list ?? {})).get(resource);
        if (given === undefined || quantityValue(given) !== quantityValue(quantity)) {
          rules.break(`the Node has ${given} of ${resource}, not ${quantity}`);
        }
      }
    }
  }

  get #isHandover(): boolean {
    return this.#agentSince === undefined || this.#world.clock.monotonic() - this.#agentSince < HANDOVER_MS;
  }

  /** What is reckoned by the wall clock is not checked across a jump of it. */
  #jumpedSince(at: number | undefined): boolean {
    return this.#clockJumpedAt !== undefined && (at === undefined || this.#clockJumpedAt >= at);
  }
}
