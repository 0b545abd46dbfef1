// The controller of aggregated ClusterRoles (admin, edit, view): writes the rules that aggregate.ts finds. The embedded API server does
// the same itself, by the same rules and so with nothing left to write here; a kube-apiserver does not.

import { isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { sameJson } from '../../../lib/same-json.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { aggregatedRules, isAggregated } from './aggregate.ts';

type Needed = Pick<Informers, 'clusterRoles'>;

/** Keys are names of aggregated roles. */
export class ClusterRoleAggregationController implements Controller {
  readonly name = 'clusterrole-aggregation';
  readonly workers = 5;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #roles: Needed['clusterRoles'];

  constructor(context: ControllerContext, { clusterRoles }: Needed) {
    this.#context = context;
    this.#roles = clusterRoles;
    this.queue = new WorkQueue({ clock: context.clock });
    // Any role may be part of any other: there are few.
    clusterRoles.onChange((changes) => {
      if (changes.length === 0) return;
      for (const role of clusterRoles.list()) if (isAggregated(role)) this.queue.add(role.metadata.name);
    });
  }

  async sync(name: string): Promise<void> {
    const role = this.#roles.get(name);
    const rules = role === undefined ? undefined : aggregatedRules(role, this.#roles.list());
    if (role === undefined || rules === undefined || sameJson(rules, role.rules ?? [])) return;
    const { resourceVersion } = role.metadata;
    const path = resourcePath('rbac.authorization.k8s.io/v1', 'clusterroles', { name });
    try {
      await this.#context.client.patch(path, { metadata: { resourceVersion }, rules }, 'merge');
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}
