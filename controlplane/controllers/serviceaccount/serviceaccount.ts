// Creates in every active namespace the ServiceAccount "default", under which pods run that name none.

import { objectKey } from '../../../client/store.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { createInNamespace } from '../shared/create-in-namespace.ts';

const ACCOUNT = 'default';

type Needed = Pick<Informers, 'namespaces' | 'serviceAccounts'>;

/** Keys are names of namespaces. */
export class ServiceAccountController implements Controller {
  readonly name = 'serviceaccount';
  readonly workers = 2;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #informers: Needed;

  constructor(context: ControllerContext, informers: Needed) {
    this.#context = context;
    this.#informers = informers;
    this.queue = new WorkQueue({ clock: context.clock });
    informers.namespaces.onChange((changes) => {
      for (const change of changes) if (change.type !== 'removed') this.queue.add(objectKey(change.object));
    });
    informers.serviceAccounts.onChange((changes) => {
      for (const { type, object } of changes) {
        if (type === 'removed' && object.metadata.name === ACCOUNT) this.queue.add(object.metadata.namespace ?? '');
      }
    });
  }

  async sync(namespace: string): Promise<void> {
    const { namespaces, serviceAccounts } = this.#informers;
    const found = namespaces.get(namespace);
    if (found === undefined || found.metadata.deletionTimestamp !== undefined) return;
    if (serviceAccounts.get(`${namespace}/${ACCOUNT}`) !== undefined) return;
    const object = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: ACCOUNT, namespace } };
    await createInNamespace(this.#context, this.#informers, 'serviceaccounts', namespace, object);
  }
}
