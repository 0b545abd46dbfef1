// Random histories of a simulated node, from a seed: pods come, crash, are edited and deleted, calls fail and take
// their time, events get lost, agents die. After every step the rules that never break are checked, and in the end
// that the node came to rest in the state it was asked for. The same seed gives the same history.

import { isAlive } from '../../agent/pods/termination.ts';
import type { Pod } from '../../client/types.ts';
import { settle } from './clock.ts';
import type { FakeCall } from './fake-runtime.ts';
import { FakeNode, makePod } from './fakes.ts';

/** mulberry32: small, and good enough to choose events. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 4294967296;
  };
}

const CALLS: readonly FakeCall[] = [
  'observePod',
  'runPodSandbox',
  'stopPodSandbox',
  'removePodSandbox',
  'createContainer',
  'startContainer',
  'stopContainer',
  'removeContainer',
  'imageStatus',
  'pullImage',
];

export class RandomHistory {
  readonly node = new FakeNode();
  readonly log: string[] = [];
  readonly #random: () => number;
  #names = 0;

  constructor(seed: number) {
    this.#random = randomFrom(seed);
    this.node.runtime.registry.add('pulled:1');
    for (const call of CALLS) this.node.runtime.latency.set(call, Math.floor(this.#random() * 400));
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  #pick<T>(items: readonly T[]): T | undefined {
    return items[this.#below(items.length)];
  }

  #newPod(): Pod {
    const name = `pod-${this.#names++}`;
    const image = this.#pick(['nginx:stable', 'pulled:1', 'missing:1']) ?? 'nginx:stable';
    const init = [
      { name: 'once', image: 'busybox:stable' },
      { name: 'side', image: 'busybox:stable', restartPolicy: 'Always' },
    ].filter(() => this.#random() < 0.3);
    const containers = [
      { name: 'web', image },
      { name: 'second', image: 'nginx:stable' },
    ];
    return makePod(name, {
      restartPolicy: this.#pick(['Always', 'OnFailure', 'Never']) ?? 'Always',
      terminationGracePeriodSeconds: this.#below(20),
      initContainers: init,
      containers: containers.slice(0, 1 + this.#below(2)),
    });
  }

  /** One random event, then a little time. Throws when a rule is broken. */
  async step(): Promise<void> {
    const { node } = this;
    const { api, runtime } = node;
    const pods = [...api.pods.values()];
    const pod = this.#pick(pods);
    const running = [...runtime.containers.values()].filter(({ state }) => state === 'running');
    const container = this.#pick(running);
    const sandbox = this.#pick([...runtime.sandboxes.values()].filter(({ state }) => state === 'ready'));
    const dice = this.#random();
    if (dice < 0.2 && pods.length < 6) this.#note('create', api.put(this.#newPod()).metadata.name);
    else if (dice < 0.42 && container !== undefined) {
      const code = this.#below(2);
      this.#note('exit', `${container.pod.name}/${container.name} ${code}`);
      runtime.end(container.id, code);
    } else if (dice < 0.52 && pod !== undefined) {
      this.#note('delete', pod.metadata.name);
      if (pod.metadata.deletionTimestamp === undefined) api.delete(pod.metadata.name, this.#below(20));
    } else if (dice < 0.55 && pod !== undefined) {
      this.#note('force delete', pod.metadata.name);
      api.forceDelete(pod.metadata.name);
    } else if (dice < 0.62 && sandbox !== undefined) {
      this.#note('sandbox dies', sandbox.id);
      runtime.killSandbox(sandbox.id);
    } else if (dice < 0.72) {
      const call = this.#pick(CALLS) ?? 'observePod';
      this.#note('fails next', call);
      runtime.failNext(call, 'injected failure');
    } else if (dice < 0.76) {
      this.#note('agent restarts', '');
      await node.restartAgent();
    } else if (dice < 0.8) {
      runtime.losesEvents = !runtime.losesEvents;
      this.#note('events lost', String(runtime.losesEvents));
    } else if (dice < 0.84) {
      api.unreachable = !api.unreachable;
      this.#note('API unreachable', String(api.unreachable));
    } else if (dice < 0.87 && container !== undefined) {
      this.#note('ignores TERM', container.name);
      runtime.ignoresTerm.add(container.name);
    } else if (dice < 0.9 && pod !== undefined && pod.metadata.deletionTimestamp === undefined) {
      this.#note('edit', pod.metadata.name);
      const containers = pod.spec.containers.map((each) => ({ ...each, image: 'busybox:stable' }));
      api.put({ ...pod, spec: { ...pod.spec, containers } });
    } else this.#note('quiet', '');
    const time = this.#pick([0, 1, 50, 700, 5_000, 40_000]) ?? 0;
    await node.clock.advance(time);
    this.check();
  }

  #note(what: string, which: string): void {
    this.log.push(`${new Date(this.node.clock.now()).toISOString()} ${what} ${which}`.trim());
  }

  check(): void {
    const { violations } = this.node;
    if (violations.length > 0) throw new Error(violations.join('; '));
  }

  /** Lets everything come to rest, then compares the node with what it was asked for. */
  async finish(): Promise<void> {
    const { node } = this;
    node.runtime.losesEvents = false;
    node.api.unreachable = false;
    node.runtime.clearFailures();
    await node.clock.advance(1_200_000);
    this.check();
    for (const pod of node.api.pods.values()) {
      const { name, uid, deletionTimestamp } = pod.metadata;
      if (deletionTimestamp !== undefined) throw new Error(`${name} is still being deleted`);
      const own = [...node.runtime.containers.values()].filter((container) => container.pod.uid === uid);
      const over = pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
      for (const { name: container } of pod.spec.containers) {
        const status = pod.status?.containerStatuses?.find((each) => each.name === container);
        const alive = own.find((each) => each.name === container && isAlive(each));
        const says = status?.state?.running !== undefined;
        if (says !== (alive !== undefined)) throw new Error(`${name}/${container}: status says running ${says}`);
        if (over && alive !== undefined) throw new Error(`${name}/${container} runs although the pod is over`);
        if (alive !== undefined && status?.containerID !== `containerd://${alive.id}`) {
          throw new Error(`${name}/${container}: status names ${status?.containerID}, but ${alive.id} runs`);
        }
      }
    }
    for (const pod of [...node.api.pods.values()]) node.api.delete(pod.metadata.name, 1);
    await node.clock.advance(1_200_000);
    this.check();
    if (node.api.pods.size > 0)
      throw new Error(`not deleted: ${[...node.api.pods.values()].map((p) => p.metadata.name)}`);
    const left = node.leftovers();
    if (left.length > 0) throw new Error(`left on the node: ${left.join(', ')}`);
    node.agent.stop();
    await settle();
  }
}

/** Runs a history; an error says the seed and the events that led to it. */
export async function runHistory(seed: number, steps: number): Promise<RandomHistory> {
  const history = new RandomHistory(seed);
  try {
    for (let step = 0; step < steps; step++) await history.step();
    await history.finish();
  } catch (error) {
    history.node.agent.stop();
    const last = history.log.slice(-40).join('\n');
    throw new Error(`seed ${seed}, ${history.log.length} events: ${error}\n${last}`, { cause: error });
  }
  return history;
}
