// Creates in every active namespace what pods need: the ServiceAccount "default", and the ConfigMap
// "kube-root-ca.crt" with the CA that verifies the API server.

import { isAlreadyExists, isNotFound } from '../../client/errors.ts';
import { resourcePath } from '../../client/paths.ts';
import { objectKey } from '../../client/store.ts';
import { WorkQueue } from '../../client/workqueue.ts';
import type { Informers } from '../informers.ts';
import type { Controller, ControllerContext } from '../runtime.ts';

const ACCOUNT = 'default';
const CONFIG_MAP = 'kube-root-ca.crt';
const DESCRIPTION =
  'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the ' +
  'internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.';

type Needed = Pick<Informers, 'namespaces' | 'defaultServiceAccounts' | 'rootCaConfigMaps'>;

export class ServiceAccountController implements Controller {
  readonly name = 'serviceaccount';
  readonly workers = 2;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #rootCa: string | undefined;

  /** `rootCa` is PEM; without one no ConfigMap is published. */
  constructor(context: ControllerContext, informers: Needed, rootCa: string | undefined) {
    this.#context = context;
    this.#informers = informers;
    this.#rootCa = rootCa;
    this.queue = new WorkQueue({ clock: context.clock });
    informers.namespaces.onChange((changes) => {
      for (const change of changes) if (change.type !== 'removed') this.queue.add(objectKey(change.object));
    });
    informers.defaultServiceAccounts.onChange((changes) => {
      for (const { type, object } of changes) if (type === 'removed') this.queue.add(object.metadata.namespace ?? '');
    });
    informers.rootCaConfigMaps.onChange((changes) => {
      for (const { type, object } of changes) if (type !== 'added') this.queue.add(object.metadata.namespace ?? '');
    });
  }

  async sync(namespace: string): Promise<void> {
    const { namespaces, defaultServiceAccounts, rootCaConfigMaps } = this.#informers;
    const found = namespaces.get(namespace);
    if (found === undefined || found.metadata.deletionTimestamp !== undefined) return;
    if (defaultServiceAccounts.get(`${namespace}/${ACCOUNT}`) === undefined) {
      await this.#create('serviceaccounts', namespace, {
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name: ACCOUNT, namespace },
      });
    }
    if (this.#rootCa === undefined) return;
    const configMap = rootCaConfigMaps.get(`${namespace}/${CONFIG_MAP}`);
    const data = { 'ca.crt': this.#rootCa };
    if (configMap === undefined) {
      const annotations = { 'kubernetes.io/description': DESCRIPTION };
      await this.#create('configmaps', namespace, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: CONFIG_MAP, namespace, annotations },
        data,
      });
    } else if (configMap.data?.['ca.crt'] !== this.#rootCa) {
      const path = resourcePath('v1', 'configmaps', { namespace, name: CONFIG_MAP });
      await this.#context.client.patch(path, { data }, 'merge');
    }
  }

  /** Creates what another replica, or we a moment ago, may have created already. */
  async #create(plural: string, namespace: string, object: object): Promise<void> {
    try {
      await this.#context.client.create(resourcePath('v1', plural, { namespace }), object);
    } catch (error) {
      if (isAlreadyExists(error)) return;
      // The namespace is gone, or has just begun to go.
      if (isNotFound(error) || this.#informers.namespaces.get(namespace)?.metadata.deletionTimestamp !== undefined)
        return;
      throw error;
    }
  }
}
