// How many pods the controller of a pod wants: from the caches for the kinds that have one, from its scale subresource for all
// others, custom ones too.

import type { OwnerReference } from 'kubernetes-types/meta/v1';
import { isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { StoredMeta } from '../../../client/types.ts';
import { groupOf } from '../../discovery.ts';
import type { Informers } from '../../informers.ts';
import type { ControllerContext } from '../../runtime.ts';
import { replicasOf } from '../shared/objects.ts';
import { controllerOf } from '../shared/owners.ts';

export type ScaleInformers = Pick<Informers, 'replicaSets' | 'deployments' | 'statefulSets' | 'replicationControllers'>;

export interface Scale {
  readonly uid: string;
  readonly replicas: number;
}

interface Resource {
  readonly plural: string;
  readonly scalable: boolean;
}
interface Replicated {
  readonly metadata: StoredMeta;
  readonly spec: { readonly replicas?: number };
}

export class Scales {
  readonly #client: ControllerContext['client'];
  readonly #informers: ScaleInformers;
  /** Kinds with a scale, by version and kind: a kind does not lose it. */
  readonly #scalable = new Map<string, Resource>();

  constructor(client: ControllerContext['client'], informers: ScaleInformers) {
    this.#client = client;
    this.#informers = informers;
  }

  /** Undefined where the owner is not there. Throws for a kind that cannot be scaled. */
  async of(owner: OwnerReference, namespace: string): Promise<Scale | undefined> {
    return this.#fromCaches(owner, namespace) ?? (await this.#fromServer(owner, namespace));
  }

  #fromCaches({ apiVersion, kind, name, uid }: OwnerReference, namespace: string): Scale | undefined {
    const key = `${namespace}/${name}`;
    const { replicaSets, deployments, statefulSets, replicationControllers } = this.#informers;
    const scale = (object: Replicated | undefined, wanted = uid): Scale | undefined =>
      object?.metadata.uid === wanted ? { uid: wanted, replicas: replicasOf(object) } : undefined;
    const type = `${groupOf(apiVersion)}/${kind}`;
    if (type === '/ReplicationController') return scale(replicationControllers.get(key));
    if (type === 'apps/StatefulSet') return scale(statefulSets.get(key));
    if (type !== 'apps/ReplicaSet') return undefined;
    const set = replicaSets.get(key);
    if (set === undefined || set.metadata.uid !== uid) return undefined;
    const above = controllerOf(set);
    if (above?.kind !== 'Deployment') return scale(set);
    return scale(deployments.get(`${namespace}/${above.name}`), above.uid);
  }

  async #fromServer({ apiVersion, kind, name, uid }: OwnerReference, namespace: string): Promise<Scale | undefined> {
    const { plural, scalable } = await this.#resource(apiVersion, kind);
    if (!scalable) {
      const group = groupOf(apiVersion);
      throw new Error(`${group === '' ? plural : `${plural}.${group}`} does not implement the scale subresource`);
    }
    try {
      const path = resourcePath(apiVersion, plural, { namespace, name, subresource: 'scale' });
      const { metadata, spec } = await this.#client.get<Replicated>(path);
      return metadata.uid === uid ? { uid, replicas: spec.replicas ?? 0 } : undefined;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async #resource(apiVersion: string, kind: string): Promise<Resource> {
    const key = `${apiVersion} ${kind}`;
    const known = this.#scalable.get(key);
    if (known !== undefined) return known;
    const path = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const none = (): Error =>
      new Error(`no matches for kind ${JSON.stringify(kind)} in version ${JSON.stringify(apiVersion)}`);
    const { resources = [] } = await this.#client
      .get<{ readonly resources?: readonly { readonly name: string; readonly kind: string }[] }>(path)
      .catch((error: unknown) => {
        throw isNotFound(error) ? none() : error;
      });
    const plural = resources.find((each) => each.kind === kind && !each.name.includes('/'))?.name;
    if (plural === undefined) throw none();
    const found = {
      plural,
      scalable: resources.some((each) => each.name === `${plural}/scale` && each.kind === 'Scale'),
    };
    if (found.scalable) this.#scalable.set(key, found);
    return found;
  }
}
