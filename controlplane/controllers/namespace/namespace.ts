// Empties a namespace that is being deleted and then finalizes it: its pods go first, then every other namespaced kind of
// discovery is deleted, and when nothing is left the "kubernetes" finalizer is removed.

import { isConflict, isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { objectKey } from '../../../client/store.ts';
import type { Stored } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import { type DiscoveredResource, discover, isEmptied } from '../../discovery.ts';
import type { Informers, Namespace } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';

/** How soon remaining content is listed again, if no event comes earlier. ms. */
const RECHECK_MS = 1000;

interface Remaining {
  readonly resource: DiscoveredResource;
  readonly count: number;
  readonly finalizers: readonly string[];
}

interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

/** The conditions that `kubectl describe namespace` shows while it empties; the words are the real controller's. */
export function deletionConditions(
  remaining: readonly Remaining[],
  discovery: readonly string[],
  failures: readonly string[],
): Condition[] {
  const condition = (
    type: string,
    holds: boolean,
    reason: readonly [string, string],
    message: readonly [string, string],
  ) => ({
    type,
    status: holds ? ('True' as const) : ('False' as const),
    reason: holds ? reason[0] : reason[1],
    message: holds ? message[0] : message[1],
  });
  const finalizers = new Map<string, number>();
  for (const { finalizers: names } of remaining) {
    for (const name of names) finalizers.set(name, (finalizers.get(name) ?? 0) + 1);
  }
  const name = ({ apiVersion, plural }: DiscoveredResource): string =>
    apiVersion.includes('/') ? `${plural}.${apiVersion.split('/', 1)[0]}` : `${plural}.`;
  return [
    condition(
      'NamespaceDeletionDiscoveryFailure',
      discovery.length > 0,
      ['DiscoveryFailed', 'ResourcesDiscovered'],
      [
        `Discovery failed for some groups, ${discovery.length} failing: ${discovery.join(', ')}`,
        'All resources successfully discovered',
      ],
    ),
    condition(
      'NamespaceDeletionContentFailure',
      failures.length > 0,
      ['ContentDeletionFailed', 'ContentDeleted'],
      [
        `Failed to delete all resource types, ${failures.length} remaining: ${failures.join(', ')}`,
        'All content successfully deleted, may be waiting on finalization',
      ],
    ),
    condition(
      'NamespaceContentRemaining',
      remaining.length > 0,
      ['SomeResourcesRemain', 'ContentRemoved'],
      [
        `Some resources are remaining: ${remaining.map((r) => `${name(r.resource)} has ${r.count} resource instances`).join(', ')}`,
        'All content successfully removed',
      ],
    ),
    condition(
      'NamespaceFinalizersRemaining',
      finalizers.size > 0,
      ['SomeFinalizersRemain', 'ContentHasNoFinalizers'],
      [
        `Some content in the namespace has finalizers remaining: ${[...finalizers].map(([f, n]) => `${f} in ${n} resource instances`).join(', ')}`,
        'All content-preserving finalizers finished',
      ],
    ),
  ];
}

export class NamespaceController implements Controller {
  readonly name = 'namespace';
  readonly workers = 2;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #informers: Pick<Informers, 'namespaces' | 'pods'>;

  constructor(context: ControllerContext, informers: Pick<Informers, 'namespaces' | 'pods'>) {
    this.#context = context;
    this.#informers = informers;
    this.queue = new WorkQueue({ clock: context.clock });
    informers.namespaces.onChange((changes) => {
      for (const change of changes) {
        if (change.type !== 'removed' && isTerminating(change.object)) this.queue.add(objectKey(change.object));
      }
    });
    // Pods are what takes time to go: the namespace follows the last one at once.
    informers.pods.onChange((changes) => {
      for (const { type, object } of changes) {
        const namespace = informers.namespaces.get(object.metadata.namespace);
        if (type === 'removed' && namespace !== undefined && isTerminating(namespace)) {
          this.queue.add(object.metadata.namespace);
        }
      }
    });
  }

  async sync(name: string): Promise<void> {
    const known = this.#informers.namespaces.get(name);
    if (known === undefined || !isTerminating(known)) return;
    const { client } = this.#context;
    const discovery = await discover(client);
    const resources = discovery.resources.filter(isEmptied);
    // As upstream (OrderedNamespaceDeletion): as long as a pod runs, what it may depend on stays, its NetworkPolicies for one.
    const isPods = ({ apiVersion, plural }: DiscoveredResource): boolean => apiVersion === 'v1' && plural === 'pods';
    const pods = resources.filter(isPods);
    const others = resources.filter((resource) => !isPods(resource));
    let { remaining, failures } = await this.#emptyAll(pods, name);
    if (remaining.length === 0 && failures.length === 0) ({ remaining, failures } = await this.#emptyAll(others, name));
    const done = remaining.length === 0 && failures.length === 0 && discovery.failures.length === 0;
    if (done) await this.#finalize(name);
    else {
      await this.#report(known, deletionConditions(remaining, discovery.failures, failures));
      if (failures.length > 0) throw new Error(failures.join('; '));
      this.queue.addAfter(name, RECHECK_MS);
    }
  }

  /** Deletes all objects of these kinds, at the same time: what remains of them, and why. */
  async #emptyAll(
    resources: readonly DiscoveredResource[],
    namespace: string,
  ): Promise<{ readonly remaining: readonly Remaining[]; readonly failures: readonly string[] }> {
    const failures: string[] = [];
    const remaining: Remaining[] = [];
    await Promise.all(
      resources.map(async (resource) => {
        try {
          const left = await this.#empty(resource, namespace);
          if (left.count > 0) remaining.push(left);
        } catch (error) {
          if (!isNotFound(error)) failures.push(`${resource.plural}: ${errorMessage(error)}`);
        }
      }),
    );
    return { remaining, failures };
  }

  /** Deletes all objects of one kind, and returns what remains. */
  async #empty(resource: DiscoveredResource, namespace: string): Promise<Remaining> {
    const { client } = this.#context;
    const path = resourcePath(resource.apiVersion, resource.plural, { namespace });
    let items = (await client.list<Stored<object>>(path)).items;
    if (items.some((item) => item.metadata.deletionTimestamp === undefined)) {
      if (resource.verbs.includes('deletecollection')) await client.delete(path, { propagationPolicy: 'Background' });
      else {
        for (const { metadata } of items) {
          const one = resourcePath(resource.apiVersion, resource.plural, { namespace, name: metadata.name });
          await client.delete(one, { preconditions: { uid: metadata.uid } }).catch((error: unknown) => {
            if (!isNotFound(error) && !isConflict(error)) throw error;
          });
        }
      }
      items = (await client.list<Stored<object>>(path)).items;
    }
    return { resource, count: items.length, finalizers: items.flatMap((item) => item.metadata.finalizers ?? []) };
  }

  async #finalize(name: string): Promise<void> {
    const { client } = this.#context;
    try {
      const namespace = await client.get<Namespace>(resourcePath('v1', 'namespaces', { name }));
      if (!isTerminating(namespace)) return;
      const finalizers = (namespace.spec?.finalizers ?? []).filter((finalizer) => finalizer !== 'kubernetes');
      await client.replace(resourcePath('v1', 'namespaces', { name, subresource: 'finalize' }), {
        ...namespace,
        apiVersion: 'v1',
        kind: 'Namespace',
        spec: { ...namespace.spec, finalizers },
      });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  async #report(namespace: Namespace, conditions: readonly Condition[]): Promise<void> {
    const known = namespace.status?.conditions ?? [];
    const changed = conditions.filter((condition) => {
      const before = known.find(({ type }) => type === condition.type);
      return before?.status !== condition.status || before.message !== condition.message;
    });
    if (changed.length === 0) return;
    const now = rfc3339(this.#context.clock.now());
    const patch = { status: { conditions: changed.map((condition) => ({ ...condition, lastTransitionTime: now })) } };
    const path = resourcePath('v1', 'namespaces', { name: namespace.metadata.name, subresource: 'status' });
    await this.#context.client.patch(path, patch, 'strategic').catch((error: unknown) => {
      if (!isNotFound(error) && !isConflict(error)) throw error;
    });
  }
}

function isTerminating(namespace: Namespace): boolean {
  return namespace.metadata.deletionTimestamp !== undefined;
}
