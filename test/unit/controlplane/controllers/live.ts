// A cluster in memory behind the fake client: what a controller writes is in its stores, at once or when the test lets them catch up.
// Pods that are deleted stay, terminating, until the test ends them.

import type { Store } from '../../../../client/store.ts';
import type { Pod } from '../../../../client/types.ts';
import type { ControllerRevision } from '../../../../controlplane/controllers/shared/objects.ts';
import type { PersistentVolumeClaim } from '../../../../controlplane/storage/objects.ts';
import { rfc3339 } from '../../../../lib/rfc3339.ts';
import { apiError, type Write } from '../../../support/fake-client.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { environment, NOW } from '../environment.ts';

interface Named {
  metadata: { name: string; namespace: string; uid: string; resourceVersion: string; generateName?: string };
  spec?: unknown;
}

export function liveEnvironment() {
  const env = environment();
  const { clock, client, informers } = env;
  let counter = 0;
  /** What the server has. */
  const server = new Map<string, Named>();
  /** Path that the stalled store's objects have in theirs, and what it does not show yet. */
  let lag: { readonly part: string; readonly changes: (() => void)[] } | undefined;
  const show = (path: string, change: () => void): void => {
    if (lag !== undefined && path.includes(lag.part)) lag.changes.push(change);
    else change();
  };
  const stores: Readonly<Record<string, { upsert(object: never): void; remove(object: never): void } | undefined>> = {
    pods: informers.pods satisfies Store<Pod>,
    controllerrevisions: informers.controllerRevisions satisfies Store<ControllerRevision>,
    persistentvolumeclaims: informers.persistentVolumeClaims satisfies Store<PersistentVolumeClaim>,
    statefulsets: informers.statefulSets,
    daemonsets: informers.daemonSets,
    replicationcontrollers: informers.replicationControllers,
  };
  const storeOf = (path: string) => Object.entries(stores).find(([plural]) => path.includes(`/${plural}`))?.[1];

  const put = (path: string, object: Named): Named => {
    const stored = structuredClone(object);
    stored.metadata.resourceVersion = `r${++counter}`;
    server.set(path, stored);
    client.objects.set(path, stored);
    show(path, () => storeOf(path)?.upsert(structuredClone(stored) as never));
    return structuredClone(stored);
  };
  const remove = (path: string): void => {
    const known = server.get(path);
    server.delete(path);
    client.objects.delete(path);
    if (known !== undefined) show(path, () => storeOf(path)?.remove(structuredClone(known) as never));
  };
  const withDefaults = (path: string, body: Named): Named => {
    const object = structuredClone(body);
    object.metadata.name ??= `${object.metadata.generateName}${counter}`;
    object.metadata.namespace ??= 'demo';
    object.metadata.uid = `uid-${object.metadata.name}-${++counter}`;
    return path.endsWith('/pods') ? ({ ...object, status: { phase: 'Pending' } } as Named) : object;
  };
  client.onWrite = ({ verb, path, body }: Write): unknown => {
    const object = body as Named;
    if (verb === 'create') {
      const made = withDefaults(path, object);
      const at = `${path}/${made.metadata.name}`;
      if (server.has(at)) throw apiError(409, 'AlreadyExists');
      return put(at, made);
    }
    const at = path.replace(/\/status$/, '');
    const known = server.get(at);
    if (known === undefined) throw apiError(404, 'NotFound');
    if (verb === 'delete') {
      if (!path.includes('/pods/')) return remove(at);
      return put(at, { ...known, metadata: { ...known.metadata, deletionTimestamp: NOW } } as Named);
    }
    if (verb === 'patch') {
      const { metadata } = body as { metadata: object };
      return put(at, { ...known, metadata: { ...known.metadata, ...metadata } });
    }
    const merged = path.endsWith('/status') ? { ...known, status: (body as { status: unknown }).status } : object;
    return put(at, merged as Named);
  };

  const podPath = (name: string): string => `/api/v1/namespaces/demo/pods/${name}`;
  return {
    ...env,
    put,
    /** From now on the store of this plural shows nothing new, until `catchUp`. */
    stall: (plural: string): void => {
      lag = { part: `/${plural}/`, changes: [] };
    },
    catchUp: async (): Promise<void> => {
      const changes = lag?.changes ?? [];
      lag = undefined;
      for (const change of changes) change();
      await settle();
    },
    /** The kubelet’s part: the pod runs and is ready, or has the status given. */
    report: async (name: string, status?: object): Promise<void> => {
      const known = server.get(podPath(name));
      if (known === undefined) throw new Error(`no pod ${name}`);
      const at = rfc3339(clock.now());
      const ready = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: at }] };
      put(podPath(name), { ...known, status: status ?? ready } as Named);
      await settle();
    },
    /** A pod that was terminating is gone. */
    end: async (name: string): Promise<void> => {
      remove(podPath(name));
      await settle();
    },
    removeClaim: async (name: string): Promise<void> => {
      remove(`/api/v1/namespaces/demo/persistentvolumeclaims/${name}`);
      await settle();
    },
    podNames: (): readonly string[] =>
      [...server.keys()].filter((path) => path.includes('/pods/')).map((path) => path.slice(podPath('').length)),
    serverHas: (path: string): Named | undefined => server.get(path),
  };
}
