// Publishes in every active namespace the ConfigMap "kube-root-ca.crt": the CA that verifies the API server, for pods.

import { resourcePath } from '../../../client/paths.ts';
import { objectKey } from '../../../client/store.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { sameJson } from '../../../lib/same-json.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { createInNamespace } from '../shared/create-in-namespace.ts';

const CONFIG_MAP = 'kube-root-ca.crt';
const DESCRIPTION_KEY = 'kubernetes.io/description';
const DESCRIPTION =
  'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the ' +
  'internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.';

type Needed = Pick<Informers, 'namespaces' | 'rootCaConfigMaps'>;

/** Keys are names of namespaces. */
export class RootCaPublisher implements Controller {
  readonly name = 'root-ca-certificate-publisher';
  readonly workers = 2;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #rootCa: string;

  /** `rootCa` is PEM. */
  constructor(context: ControllerContext, informers: Needed, rootCa: string) {
    this.#context = context;
    this.#informers = informers;
    this.#rootCa = rootCa;
    this.queue = new WorkQueue({ clock: context.clock });
    informers.namespaces.onChange((changes) => {
      for (const change of changes) if (change.type !== 'removed') this.queue.add(objectKey(change.object));
    });
    informers.rootCaConfigMaps.onChange((changes) => {
      for (const { type, object } of changes) if (type !== 'added') this.queue.add(object.metadata.namespace ?? '');
    });
  }

  async sync(namespace: string): Promise<void> {
    const { namespaces, rootCaConfigMaps } = this.#informers;
    const found = namespaces.get(namespace);
    if (found === undefined || found.metadata.deletionTimestamp !== undefined) return;
    const data = { 'ca.crt': this.#rootCa };
    const annotations = { [DESCRIPTION_KEY]: DESCRIPTION };
    const configMap = rootCaConfigMaps.get(`${namespace}/${CONFIG_MAP}`);
    if (configMap === undefined) {
      const metadata = { name: CONFIG_MAP, namespace, annotations };
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data };
      await createInNamespace(this.#context, this.#informers, 'configmaps', namespace, object);
      return;
    }
    const isDescribed = configMap.metadata.annotations?.[DESCRIPTION_KEY] === DESCRIPTION;
    if (isDescribed && sameJson(configMap.data, data)) return;
    // As upstream: nothing else is in it.
    const others = Object.keys(configMap.data ?? {}).filter((key) => key !== 'ca.crt');
    const patch = {
      metadata: { annotations },
      data: { ...Object.fromEntries(others.map((key) => [key, null])), ...data },
    };
    await this.#context.client.patch(resourcePath('v1', 'configmaps', { namespace, name: CONFIG_MAP }), patch, 'merge');
  }
}
