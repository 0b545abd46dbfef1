// What users do in the simulated cluster: every kind of workload is created, changed, scaled, updated, rolled back and deleted.

import type { Pod } from '../../../client/types.ts';
import type { Deployment, StatefulSet } from '../../../controlplane/controllers/shared/objects.ts';
import type { Dice } from '../../../labs/sim/dice.ts';
import { isActive } from './facts.ts';
import type { ControlPlaneWorld } from './world.ts';

const APPS = '/apis/apps/v1/namespaces';
const BATCH = '/apis/batch/v1/namespaces';
const MERGE = 'application/merge-patch+json';
const NAMESPACES = ['a', 'b'] as const;
const MOST_REPLICAS = 6;

/** What users do, and how often. */
const OPERATIONS = {
  makeDeployment: 8,
  scaleDeployment: 8,
  updateDeployment: 14,
  badImage: 3,
  restrategize: 3,
  pauseDeployment: 2,
  deleteDeployment: 5,
  makeReplicated: 3,
  scaleReplicated: 3,
  relabelPod: 3,
  makeStatefulSet: 5,
  scaleStatefulSet: 6,
  updateStatefulSet: 6,
  deleteStatefulSet: 3,
  makeDaemonSet: 3,
  updateDaemonSet: 4,
  deleteDaemonSet: 1,
  makeJob: 8,
  suspendJob: 4,
  deleteJob: 3,
  makeCronJob: 2,
  deleteCronJob: 2,
  makeService: 3,
  deleteService: 1,
  makeBudget: 3,
  evict: 10,
  deletePod: 6,
  cordon: 3,
  makeNamespace: 2,
  deleteNamespace: 2,
} as const;
export type Operation = keyof typeof OPERATIONS;

type Policy = 'Foreground' | 'Background' | 'Orphan';
/** By name, what there is of a kind: "a/d0". */
type Names = readonly string[];

export class Workload {
  readonly #world: ControlPlaneWorld;
  readonly #dice: Dice;
  #images = 0;
  #namespaces = 0;

  constructor(world: ControlPlaneWorld) {
    this.#world = world;
    this.#dice = world.dice.fork();
  }

  /** One thing that a user does. */
  async act(): Promise<void> {
    await this[this.#dice.weighted(OPERATIONS)]();
  }

  /** What comes by itself for ever ends, and what hinders pods too. */
  async calm(): Promise<void> {
    for (const name of this.#names('batch/cronjobs'))
      await this.#delete(this.#path(BATCH, 'cronjobs', name), 'Background');
    for (const { name } of this.#world.kubelets) await this.#unschedulable(name, false);
    for (const name of this.#names('apps/deployments')) {
      await this.#merge(this.#path(APPS, 'deployments', name), {
        spec: { paused: false, ...this.#template(this.#image()) },
      });
    }
    for (const name of this.#names('batch/jobs')) {
      await this.#merge(this.#path(BATCH, 'jobs', name), { spec: { suspend: false } });
    }
  }

  async deleteEverything(): Promise<void> {
    const policy = (): Policy => this.#dice.pick(['Foreground', 'Background'] as const);
    await this.deleteNamespace();
    for (const [resource, root, plural] of [
      ['apps/deployments', APPS, 'deployments'],
      ['apps/statefulsets', APPS, 'statefulsets'],
      ['apps/daemonsets', APPS, 'daemonsets'],
      ['apps/replicasets', APPS, 'replicasets'],
      ['batch/jobs', BATCH, 'jobs'],
      ['/replicationcontrollers', '/api/v1/namespaces', 'replicationcontrollers'],
      ['/services', '/api/v1/namespaces', 'services'],
      ['policy/poddisruptionbudgets', '/apis/policy/v1/namespaces', 'poddisruptionbudgets'],
    ] as const) {
      for (const name of this.#names(resource)) await this.#delete(this.#path(root, plural, name), policy());
    }
    for (const name of this.#names('apps/controllerrevisions')) {
      await this.#delete(this.#path(APPS, 'controllerrevisions', name));
    }
    const orphans = this.#pods().filter(({ metadata }) => metadata.ownerReferences === undefined);
    for (const { metadata } of orphans)
      await this.#delete(`/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}`);
  }

  // ---------------------------------------------------------------- operations

  async makeDeployment(): Promise<void> {
    const name = `d${this.#dice.below(3)}`;
    await this.#make(APPS, 'deployments', name, {
      ...{ replicas: this.#dice.between(0, MOST_REPLICAS), selector: { matchLabels: { app: name } } },
      ...{
        strategy: this.#strategy(),
        revisionHistoryLimit: this.#dice.below(4),
        ...this.#template(this.#image(), name),
      },
    });
  }

  async scaleDeployment(): Promise<void> {
    await this.#mergeSome('apps/deployments', APPS, 'deployments', { replicas: this.#dice.between(0, MOST_REPLICAS) });
  }

  /** Half of them go back to an image that was there before. */
  async updateDeployment(): Promise<void> {
    const image = this.#dice.chance(0.5) ? this.#image() : `image:${this.#dice.below(Math.max(1, this.#images))}`;
    await this.#mergeSome('apps/deployments', APPS, 'deployments', this.#template(image));
  }

  async badImage(): Promise<void> {
    await this.#mergeSome('apps/deployments', APPS, 'deployments', this.#template('bad:1'));
  }

  async restrategize(): Promise<void> {
    await this.#mergeSome('apps/deployments', APPS, 'deployments', { strategy: this.#strategy() });
  }

  async pauseDeployment(): Promise<void> {
    await this.#mergeSome('apps/deployments', APPS, 'deployments', { paused: this.#dice.chance(0.5) });
  }

  async deleteDeployment(): Promise<void> {
    await this.#deleteSome('apps/deployments', APPS, 'deployments');
  }

  async makeReplicated(): Promise<void> {
    const replicas = this.#dice.between(0, 3);
    if (this.#dice.chance(0.5)) {
      const spec = { replicas, selector: { matchLabels: { app: 'rs' } }, ...this.#template(this.#image(), 'rs') };
      await this.#make(APPS, 'replicasets', 'rs', spec);
    } else {
      const spec = { replicas, selector: { app: 'rc' }, ...this.#template(this.#image(), 'rc') };
      await this.#make('/api/v1/namespaces', 'replicationcontrollers', 'rc', spec);
    }
  }

  async scaleReplicated(): Promise<void> {
    const namespace = this.#dice.pick(NAMESPACES);
    await this.#merge(`${APPS}/${namespace}/replicasets/rs`, { spec: { replicas: this.#dice.between(0, 4) } });
    await this.#merge(`/api/v1/namespaces/${namespace}/replicationcontrollers/rc`, {
      spec: { replicas: this.#dice.between(0, 4) },
    });
  }

  /** A pod leaves its owner, or comes back to it. */
  async relabelPod(): Promise<void> {
    const pod = this.#dice.pick(this.#pods().filter((each) => isActive(each) && !/^(s|job)/.test(each.metadata.name)));
    if (pod === undefined) return;
    const app = /^\D+\d?/.exec(pod.metadata.name)?.[0].replace(/-.*/, '') ?? 'lost';
    const value = pod.metadata.labels?.['app'] === 'lost' ? app : 'lost';
    await this.#merge(this.#podPath(pod), { metadata: { labels: { app: value } } });
  }

  async makeStatefulSet(): Promise<void> {
    const name = `s${this.#dice.below(2)}`;
    await this.#make(APPS, 'statefulsets', name, {
      ...{ replicas: this.#dice.between(0, 4), serviceName: name, selector: { matchLabels: { app: name } } },
      podManagementPolicy: this.#dice.pick(['OrderedReady', 'OrderedReady', 'Parallel'] as const),
      ...(this.#dice.chance(0.2) ? { ordinals: { start: 2 } } : {}),
      ...this.#template(this.#image(), name),
    });
  }

  async scaleStatefulSet(): Promise<void> {
    await this.#mergeSome('apps/statefulsets', APPS, 'statefulsets', { replicas: this.#dice.between(0, 5) });
  }

  async updateStatefulSet(): Promise<void> {
    const partition = this.#dice.chance(0.4) ? this.#dice.below(4) : 0;
    const updateStrategy = { type: 'RollingUpdate', rollingUpdate: { partition } };
    await this.#mergeSome('apps/statefulsets', APPS, 'statefulsets', {
      updateStrategy,
      ...this.#template(this.#image()),
    });
  }

  async deleteStatefulSet(): Promise<void> {
    await this.#deleteSome('apps/statefulsets', APPS, 'statefulsets');
  }

  async makeDaemonSet(): Promise<void> {
    await this.#make(APPS, 'daemonsets', 'ds', {
      selector: { matchLabels: { app: 'ds' } },
      ...this.#template(this.#image(), 'ds'),
    });
  }

  async updateDaemonSet(): Promise<void> {
    const rollingUpdate = this.#dice.pick([
      { maxSurge: 1, maxUnavailable: 0 },
      { maxSurge: 0, maxUnavailable: 1 },
      { maxSurge: 0, maxUnavailable: '50%' },
    ] as const);
    const updateStrategy = { type: 'RollingUpdate', rollingUpdate };
    await this.#mergeSome('apps/daemonsets', APPS, 'daemonsets', { updateStrategy, ...this.#template(this.#image()) });
  }

  async deleteDaemonSet(): Promise<void> {
    await this.#deleteSome('apps/daemonsets', APPS, 'daemonsets');
  }

  async makeJob(): Promise<void> {
    await this.#make(BATCH, 'jobs', `job${this.#dice.below(4)}`, this.#jobSpec());
  }

  async suspendJob(): Promise<void> {
    const spec = this.#dice.chance(0.5)
      ? { suspend: this.#dice.chance(0.5) }
      : { parallelism: this.#dice.between(0, 4) };
    await this.#mergeSome('batch/jobs', BATCH, 'jobs', spec);
  }

  async deleteJob(): Promise<void> {
    await this.#deleteSome('batch/jobs', BATCH, 'jobs');
  }

  async makeCronJob(): Promise<void> {
    await this.#make(BATCH, 'cronjobs', 'cron', {
      schedule: '* * * * *',
      concurrencyPolicy: this.#dice.pick(['Allow', 'Forbid', 'Replace'] as const),
      jobTemplate: { spec: this.#jobSpec() },
    });
  }

  async deleteCronJob(): Promise<void> {
    await this.#deleteSome('batch/cronjobs', BATCH, 'cronjobs');
  }

  async makeService(): Promise<void> {
    const app = this.#app();
    const ports = [{ name: 'http', port: 80, targetPort: 8080 }];
    await this.#make('/api/v1/namespaces', 'services', app, { selector: { app }, ports });
  }

  async deleteService(): Promise<void> {
    // Not as orphans: the slices of a service without it would stay, as upstream's do.
    const name = this.#dice.pick(this.#names('/services'));
    if (name !== undefined) await this.#delete(this.#path('/api/v1/namespaces', 'services', name), 'Background');
  }

  async makeBudget(): Promise<void> {
    const app = this.#app();
    const bound = this.#dice.pick([{ maxUnavailable: 1 }, { minAvailable: 2 }, { minAvailable: '50%' }] as const);
    await this.#make('/apis/policy/v1/namespaces', 'poddisruptionbudgets', app, {
      selector: { matchLabels: { app } },
      ...bound,
    });
  }

  async evict(): Promise<void> {
    const pod = this.#dice.pick(this.#pods().filter(isActive));
    if (pod === undefined) return;
    const { namespace, name } = pod.metadata;
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace, name } };
    await this.#world.user('POST', `${this.#podPath(pod)}/eviction`, body);
  }

  async deletePod(): Promise<void> {
    const pod = this.#dice.pick(this.#pods());
    if (pod !== undefined) await this.#delete(this.#podPath(pod));
  }

  async cordon(): Promise<void> {
    const { name } = this.#dice.pick(this.#world.kubelets) ?? { name: 'node-0' };
    await this.#unschedulable(name, this.#dice.chance(0.4));
  }

  async makeNamespace(): Promise<void> {
    const namespace = `gone-${this.#namespaces++}`;
    await this.#world.user('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
    const spec = { replicas: 2, selector: { matchLabels: { app: 'd0' } }, ...this.#template(this.#image(), 'd0') };
    await this.#world.user('POST', `${APPS}/${namespace}/deployments`, { metadata: { name: 'd0' }, spec });
    await this.#world.user('POST', `${BATCH}/${namespace}/jobs`, { metadata: { name: 'job0' }, spec: this.#jobSpec() });
  }

  async deleteNamespace(): Promise<void> {
    for (const { metadata } of this.#world.server.objects('/namespaces')) {
      if (metadata.name.startsWith('gone-')) await this.#delete(`/api/v1/namespaces/${metadata.name}`);
    }
  }

  // ---------------------------------------------------------------- how

  #jobSpec(): object {
    const completions = this.#dice.between(1, 5);
    const failing = this.#dice.pick([0, 0, 20, 60] as const);
    const template = this.#template(this.#image(), 'job').template;
    const spec = { ...template.spec, restartPolicy: 'Never' };
    return {
      ...{ completions, parallelism: this.#dice.between(1, 4), backoffLimit: 3 },
      completionMode: this.#dice.pick(['NonIndexed', 'Indexed'] as const),
      ...(this.#dice.chance(0.3) ? { ttlSecondsAfterFinished: this.#dice.between(0, 60) } : {}),
      template: { metadata: { ...template.metadata, annotations: { failing: String(failing) } }, spec },
    };
  }

  #strategy(): object {
    if (this.#dice.chance(0.15)) return { type: 'Recreate', rollingUpdate: null };
    const rollingUpdate = this.#dice.pick([
      { maxSurge: 1, maxUnavailable: 0 },
      { maxSurge: 0, maxUnavailable: 1 },
      { maxSurge: '25%', maxUnavailable: '25%' },
      { maxSurge: 2, maxUnavailable: 1 },
    ] as const);
    return { type: 'RollingUpdate', rollingUpdate };
  }

  #image(): string {
    return `image:${this.#images++}`;
  }

  #app(): string {
    return this.#dice.pick(['d0', 'd1', 'd2', 's0', 's1', 'rs'] as const);
  }

  #template(image: string, app?: string): { template: { metadata?: object; spec: object } } {
    const resources = { requests: { cpu: '300m' } };
    const spec = { terminationGracePeriodSeconds: 10, containers: [{ name: 'main', image, resources }] };
    return { template: app === undefined ? { spec } : { metadata: { labels: { app } }, spec } };
  }

  async #make(root: string, plural: string, name: string, spec: object): Promise<void> {
    const namespace = this.#dice.pick(NAMESPACES);
    await this.#world.user('POST', `${root}/${namespace}/${plural}`, { metadata: { name }, spec });
  }

  #names(resource: string): Names {
    return this.#world.server
      .objects(resource)
      .filter(({ metadata }) => NAMESPACES.some((name) => name === metadata.namespace))
      .map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
  }

  #path(root: string, plural: string, name: string): string {
    const [namespace, own] = name.split('/');
    return `${root}/${namespace}/${plural}/${own}`;
  }

  #pods(): readonly Pod[] {
    const pods: readonly unknown[] = this.#world.server.objects('/pods');
    return pods as readonly Pod[];
  }

  #podPath({ metadata }: Pod): string {
    return `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}`;
  }

  async #mergeSome(resource: string, root: string, plural: string, spec: object): Promise<void> {
    const name = this.#dice.pick(this.#names(resource));
    if (name !== undefined) await this.#merge(this.#path(root, plural, name), { spec });
  }

  async #deleteSome(resource: string, root: string, plural: string): Promise<void> {
    const name = this.#dice.pick(this.#names(resource));
    const policy = this.#dice.pick(['Foreground', 'Background', 'Background', 'Orphan'] as const);
    if (name !== undefined) await this.#delete(this.#path(root, plural, name), policy);
  }

  async #merge(path: string, body: object): Promise<void> {
    await this.#world.user('PATCH', path, body, MERGE);
  }

  async #delete(path: string, propagationPolicy?: Policy): Promise<void> {
    const body = {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      ...(propagationPolicy === undefined ? {} : { propagationPolicy }),
    };
    await this.#world.user('DELETE', path, body);
  }

  async #unschedulable(name: string, unschedulable: boolean): Promise<void> {
    await this.#merge(`/api/v1/nodes/${name}`, { spec: { unschedulable } });
  }
}

export type { Deployment, StatefulSet };
