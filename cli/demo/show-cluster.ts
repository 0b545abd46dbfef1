// A cluster of two nodes: a Deployment behind a Service that a client asks for by its DNS name, a rolling update that fails no request, and a
// node that is cut off and comes back.

import { fileURLToPath } from 'node:url';
import type { Deployment } from 'kubernetes-types/apps/v1';
import { ApiClient } from '../../client/api.ts';
import { loadKubeconfig } from '../../client/kubeconfig.ts';
import { resourcePath } from '../../client/paths.ts';
import type { Node, Pod } from '../../client/types.ts';
import { type EpochMs, elapsedMs, systemClock } from '../../lib/clock.ts';
import { poll } from '../../lib/retry.ts';
import { Tracer } from '../../lib/trace.ts';
import type { Checks } from './checks.ts';
import type { DemoLab } from './lab.ts';
import { LIMIT_MS, serviceAccountIn } from './service-account.ts';
import { chooseUser, type DemoUser } from './user.ts';

const MANIFEST = fileURLToPath(new URL('../../labs/manifests/web-cluster.yaml', import.meta.url));
const NAMESPACE = 'demo';
const CLIENT = 'client';
const LOST = 'node-2';

/** What the client has counted so far. */
export interface Requests {
  readonly ok: number;
  readonly failed: number;
}

/** From the client's log: a line for each request. */
export function countRequests(log: string): Requests {
  const lines = log.split('\n');
  const count = (word: string): number => lines.filter((line) => line === word).length;
  return { ok: count('ok'), failed: count('failed') };
}

export async function showCluster(lab: DemoLab, checks: Checks, say: (line: string) => void): Promise<void> {
  const client = new ApiClient(await loadKubeconfig(lab.paths.kubeconfig), {
    tracer: new Tracer(),
    clock: systemClock,
    userAgent: 'nodelet-demo',
  });
  try {
    const user = await chooseUser(lab.paths.kubeconfig, client);
    const cluster = new Cluster(lab, client, user, checks, say);
    await cluster.showService();
    await cluster.showRollingUpdate();
    await cluster.showLostNode();
  } finally {
    client.close();
  }
}

class Cluster {
  readonly #lab: DemoLab;
  readonly #client: ApiClient;
  readonly #user: DemoUser;
  readonly #checks: Checks;
  readonly #say: (line: string) => void;

  constructor(lab: DemoLab, client: ApiClient, user: DemoUser, checks: Checks, say: (line: string) => void) {
    this.#lab = lab;
    this.#client = client;
    this.#user = user;
    this.#checks = checks;
    this.#say = say;
  }

  async showService(): Promise<void> {
    this.#say(`== applying ${MANIFEST.replace(/^.*\/(labs\/)/, '$1')} with ${this.#user.name}`);
    await this.#user.createNamespace(NAMESPACE);
    await serviceAccountIn(this.#client, NAMESPACE);
    await this.#user.apply(MANIFEST);
    await this.#until('the deployment to be rolled out', async () => isRolledOut(await this.#deployment()));
    const pods = await this.#webPods();
    const where = pods.map(({ metadata, spec, status }) => `${metadata.name} at ${status?.podIP} on ${spec.nodeName}`);
    const nodes = new Set(pods.map(({ spec }) => spec.nodeName));
    this.#checks.check(
      pods.length === 3 && nodes.size === 2,
      'the deployment has three Ready pods on two nodes',
      where.join('\n'),
    );
    const answered = await this.#untilRequests(({ ok }) => ok >= 10);
    this.#checks.check(answered.ok >= 10, 'a pod reaches the Service by its name, http://web.demo.svc.cluster.local/');
  }

  async showRollingUpdate(): Promise<void> {
    this.#say('== a rolling update, while the client goes on: kubectl set env deployment/web VERSION=2');
    const before = await this.#requests();
    const old = new Set((await this.#webPods()).map(({ metadata }) => metadata.uid));
    await this.#user.setEnv(NAMESPACE, 'web', 'VERSION', '2');
    await this.#until('the update to be rolled out', async () => isRolledOut(await this.#deployment()));
    await this.#until('the old pods to be gone', async () =>
      (await this.#allWebPods()).every(({ metadata }) => !old.has(metadata.uid)),
    );
    // Some more, so that the last request that an old pod could have failed is counted.
    const { ok } = await this.#requests();
    const after = await this.#untilRequests((now) => now.ok >= ok + 5 || now.failed > before.failed);
    const [done, failed] = [after.ok - before.ok, after.failed - before.failed];
    this.#checks.check(
      failed === 0 && done > 0,
      `all pods were replaced: ${done} requests answered meanwhile, ${failed} failed`,
    );
  }

  async showLostNode(): Promise<void> {
    const { nodes } = this.#lab;
    if (nodes === undefined) throw new Error('the lab has one node');
    const lost = (await this.#webPods()).filter(({ spec }) => spec.nodeName === LOST);
    const began = systemClock.now();
    this.#say(`== ${LOST} loses its network: nodelet node partition ${LOST}`);
    await nodes.partition(LOST);
    await this.#until(`${LOST} to be NotReady`, async () => readiness(await this.#node()) === 'Unknown');
    this.#checks.check(true, `${LOST} is NotReady ${seconds(began)} later: its lease was not renewed`);
    await this.#until(
      'three Ready pods on the other node',
      async () => (await this.#webPods()).filter(({ spec }) => spec.nodeName !== LOST).length === 3,
    );
    this.#checks.check(
      lost.length > 0,
      `its ${lost.length === 1 ? 'pod was' : `${lost.length} pods were`} evicted and made again on the other node, ${seconds(began)} after the loss`,
    );
    const { ok } = await this.#requests();
    const later = await this.#untilRequests((now) => now.ok >= ok + 10);
    this.#checks.check(later.ok >= ok + 10, 'the Service answers as before, from the other node');
    const healed = systemClock.now();
    this.#say(`== the network is back: nodelet node heal ${LOST}`);
    await nodes.heal(LOST);
    await this.#until(`${LOST} to be Ready`, async () => readiness(await this.#node()) === 'True');
    const evicted = new Set(lost.map(({ metadata }) => metadata.uid));
    await this.#until('what was evicted to be gone', async () =>
      (await this.#allWebPods()).every(({ metadata }) => !evicted.has(metadata.uid)),
    );
    this.#checks.check(true, `${LOST} is Ready again ${seconds(healed)} later, and has ended the evicted pods`);
  }

  #deployment(): Promise<Deployment> {
    return this.#client.get(resourcePath('apps/v1', 'deployments', { namespace: NAMESPACE, name: 'web' }));
  }

  #node(): Promise<Node> {
    return this.#client.get(resourcePath('v1', 'nodes', { name: LOST }));
  }

  async #allWebPods(): Promise<readonly Pod[]> {
    const path = resourcePath('v1', 'pods', { namespace: NAMESPACE });
    return (await this.#client.list<Pod>(path, { labelSelector: 'app=web' })).items;
  }

  async #webPods(): Promise<readonly Pod[]> {
    const isReady = ({ status }: Pod): boolean =>
      status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true;
    return (await this.#allWebPods()).filter((pod) => isReady(pod) && pod.metadata.deletionTimestamp === undefined);
  }

  async #requests(): Promise<Requests> {
    return countRequests(await this.#user.logs(NAMESPACE, CLIENT));
  }

  async #untilRequests(enough: (requests: Requests) => boolean): Promise<Requests> {
    let seen: Requests = { ok: 0, failed: 0 };
    await this.#until('the client to make requests', async () => {
      seen = await this.#requests();
      return enough(seen);
    });
    return seen;
  }

  async #until(what: string, look: () => Promise<boolean>): Promise<void> {
    if (await poll(look, { clock: systemClock, everyMs: 200, limitMs: LIMIT_MS })) return;
    throw new Error(`waited ${LIMIT_MS / 1000} s for ${what}`);
  }
}

function isRolledOut({ metadata, spec, status }: Deployment): boolean {
  const { replicas } = spec ?? {};
  const { observedGeneration = 0, updatedReplicas, availableReplicas, replicas: all } = status ?? {};
  const isSeen = observedGeneration >= (metadata?.generation ?? 0);
  return isSeen && updatedReplicas === replicas && availableReplicas === replicas && all === replicas;
}

function readiness({ status }: Node): string | undefined {
  return status?.conditions?.find(({ type }) => type === 'Ready')?.status;
}

const seconds = (since: EpochMs): string => `${(elapsedMs(since, systemClock.now()) / 1000).toFixed(1)} s`;
