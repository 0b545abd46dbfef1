// The nodes of a lab: which there are, and what can be done to them. Knows the ways between them: a node that is added is made known to the others,
// and the machine reaches the addresses of Services by the first node that runs.

import { UserError } from '../../../lib/errors.ts';
import type { NodeActions, NodeView } from './actions.ts';
import { addRoute, routeServices } from './network.ts';
import { LabNode, type NodeContext } from './node.ts';
import { type NodePlan, type NodeRecord, nextNode, planNode } from './plan.ts';

export interface LabNodesOptions {
  readonly context: NodeContext;
  readonly serviceRange: string;
  readonly list: readonly NodeRecord[];
  /** Aborts what is being started when the lab stops. */
  readonly signal: AbortSignal;
  /** Writes down which nodes there are; before anything of a new one is made. */
  readonly write: (list: readonly NodeRecord[]) => Promise<void>;
  /** Called when a node has come or gone. */
  readonly onChange: () => void;
}

export class LabNodes implements NodeActions {
  readonly #options: LabNodesOptions;
  readonly #nodes: LabNode[];
  /** Additions, one after the other: each number and name is one node's. */
  #adding: Promise<unknown> = Promise.resolve();
  /** Reported once. */
  #othersServices = false;

  constructor(options: LabNodesOptions) {
    this.#options = options;
    this.#nodes = options.list.map((record) => this.#node(record));
  }

  #node(record: NodeRecord): LabNode {
    const { context } = this.#options;
    return new LabNode(context, planNode(context.lab, context.range, record));
  }

  get #plans(): readonly NodePlan[] {
    return this.#nodes.map(({ plan }) => plan);
  }

  list(): readonly NodeView[] {
    return this.#nodes.map(({ view }) => view);
  }

  /** All of them at once. Resolves when each is Ready. */
  async startAll(signal: AbortSignal): Promise<void> {
    const failed = new AbortController();
    const stop = AbortSignal.any([signal, failed.signal]);
    const starts = this.#nodes.map(async (node) => {
      try {
        await node.start(this.#plans, stop);
      } catch (error) {
        failed.abort(error);
        throw error;
      }
    });
    // All of them have ended, each by itself, before the first one's error is reported.
    await Promise.allSettled(starts);
    await Promise.all(starts);
    await this.#routeServices();
  }

  async add(wanted: { readonly name?: string; readonly zone?: string } = {}): Promise<NodeView> {
    const adding = this.#adding.then(() => this.#add(wanted));
    this.#adding = adding.catch(() => undefined);
    const node = await adding;
    await node.start(this.#plans, this.#options.signal);
    await this.#routeServices();
    return node.view;
  }

  /** The number is used up even when the node does not start. */
  async #add(wanted: { readonly name?: string; readonly zone?: string }): Promise<LabNode> {
    const list = this.#nodes.map(({ plan }) => recordOf(plan));
    const node = this.#node(nextNode(list, wanted));
    await this.#options.write([...list, recordOf(node.plan)]);
    for (const other of this.#nodes) if (other.isUp) await addRoute(other.plan, node.plan);
    this.#nodes.push(node);
    return node;
  }

  async start(name: string): Promise<void> {
    await this.#named(name).start(this.#plans, this.#options.signal);
    await this.#routeServices();
  }

  stop(name: string): Promise<void> {
    return this.#thenRoute(this.#named(name).stop());
  }

  kill(name: string): Promise<void> {
    return this.#thenRoute(this.#named(name).kill());
  }

  partition(name: string): Promise<void> {
    return this.#thenRoute(this.#named(name).partition());
  }

  heal(name: string): Promise<void> {
    return this.#thenRoute(this.#named(name).heal());
  }

  /** Orderly, with the lab. */
  async leave(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.leave()));
  }

  #named(name: string): LabNode {
    const node = this.#nodes.find(({ plan }) => plan.name === name);
    if (node === undefined) {
      throw new UserError(`the lab has no node ${name}: it has ${this.#plans.map((plan) => plan.name).join(', ')}`);
    }
    return node;
  }

  async #thenRoute(work: Promise<void>): Promise<void> {
    await work;
    await this.#routeServices();
  }

  async #routeServices(): Promise<void> {
    const { context, serviceRange, onChange } = this.#options;
    onChange();
    const first = this.#nodes.find((node) => node.view.condition === 'running');
    if (context.options.proxy === undefined || first === undefined || this.#othersServices) return;
    if (await routeServices(serviceRange, context.lab.bridge, first.plan)) return;
    this.#othersServices = true;
    context.say(
      `this machine reaches the Services of another lab at ${serviceRange}: those of this lab from its pods alone`,
    );
  }
}

function recordOf({ name, number, zone }: NodePlan): NodeRecord {
  return { name, number, ...(zone === undefined ? {} : { zone }) };
}
