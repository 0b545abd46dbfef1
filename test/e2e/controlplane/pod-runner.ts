// An API server with the control plane, and what a node does for pods: it reports them as running, and ends those whose exit code
// is known. For tests of the controllers of pods that end.

import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { ApiClient } from '../../../client/api.ts';
import { isConflict, isNotFound, isUnreachable } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { Reflector } from '../../../client/reflector.ts';
import { type ReadableStore, Store } from '../../../client/store.ts';
import type { Pod } from '../../../client/types.ts';
import { systemClock } from '../../../lib/clock.ts';
import { retryUntilAborted, steadyPauses } from '../../../lib/retry.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import { type Kubectl, kubectlFor } from '../kubectl/support.ts';
import { Cluster, eventually } from './cluster.ts';

/** A node tries again while the API server is away. */
const AGAIN = { clock: systemClock, policy: steadyPauses(100), mends: isUnreachable };

export class PodRunner {
  pods: ReadableStore<Pod> = new Store<Pod>();
  readonly #exitCodeOf: (pod: Pod) => number | undefined;
  readonly #stop = new AbortController();
  readonly #failures: unknown[] = [];
  #cluster: Cluster | undefined;
  #admin: ApiClient | undefined;
  #watching: Promise<unknown> = Promise.resolve();
  readonly #reports: Promise<unknown>[] = [];

  /** `exitCodeOf`: undefined for a pod that goes on. */
  constructor(exitCodeOf: (pod: Pod) => number | undefined) {
    this.#exitCodeOf = exitCodeOf;
  }

  get admin(): ApiClient {
    if (this.#admin === undefined) throw new Error('not started');
    return this.#admin;
  }
  get cluster(): Cluster {
    if (this.#cluster === undefined) throw new Error('not started');
    return this.#cluster;
  }

  /** `controllers`: as `--controllers` has them. */
  async start(controllers: readonly string[] = ['*']): Promise<void> {
    this.#cluster = await Cluster.start();
    this.#admin = await this.#cluster.client();
    await this.#cluster.startControlPlane([], undefined, controllers);
    const reflector = new Reflector<Pod>({ client: this.#admin, path: '/api/v1/pods', clock: systemClock });
    this.pods = reflector.store;
    this.pods.onChange((changes) => {
      for (const { type, object } of changes) {
        if (type !== 'added') continue;
        const report = retryUntilAborted(() => this.#run(object), { ...AGAIN, signal: this.#stop.signal });
        this.#reports.push(
          report.catch((error: unknown) => {
            if (!isNotFound(error) && !isConflict(error)) this.#failures.push(error);
          }),
        );
      }
    });
    this.#watching = reflector.run(this.#stop.signal);
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error('the test has ended'));
    await this.#watching;
    await Promise.all(this.#reports);
    await this.#cluster?.[Symbol.asyncDispose]();
    expect(this.#failures).toEqual([]);
  }

  /** A kubectl whose namespace this is; the namespace is new. */
  async namespace(command: string, namespace: string): Promise<Kubectl> {
    const home = join(this.cluster.root, namespace);
    await mkdir(home);
    const kubeconfig = join(home, 'config');
    await copyFile(this.cluster.kubeconfig, kubeconfig);
    const kubectl = kubectlFor(command, kubeconfig, home);
    await kubectl.ok('create', 'namespace', namespace);
    await kubectl.ok('config', 'set-context', '--current', `--namespace=${namespace}`);
    await eventually('the service account', () =>
      this.admin.get(resourcePath('v1', 'serviceaccounts', { namespace, name: 'default' })).catch((error: unknown) => {
        if (isNotFound(error)) return undefined;
        throw error;
      }),
    );
    return kubectl;
  }

  async #run(pod: Pod): Promise<void> {
    const at = rfc3339(systemClock.now());
    const code = this.#exitCodeOf(pod);
    const ready = { type: 'Ready', status: code === undefined ? 'True' : 'False', lastTransitionTime: at };
    const container = (state: object): object => ({
      name: pod.spec.containers[0]?.name ?? '',
      image: '',
      imageID: '',
      ready: code === undefined,
      restartCount: 0,
      state,
    });
    const status =
      code === undefined
        ? { phase: 'Running', conditions: [ready], containerStatuses: [container({ running: { startedAt: at } })] }
        : {
            phase: code === 0 ? 'Succeeded' : 'Failed',
            conditions: [ready],
            containerStatuses: [container({ terminated: { exitCode: code, startedAt: at, finishedAt: at } })],
          };
    const { namespace, name, uid } = pod.metadata;
    const path = resourcePath('v1', 'pods', { namespace, name, subresource: 'status' });
    await this.admin.patch(path, { metadata: { uid }, status }, 'strategic');
  }
}
