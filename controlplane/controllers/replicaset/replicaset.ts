// The ReplicaSet controller: as many pods as the set says. replicas.ts does it.

import type { Informers } from '../../informers.ts';
import type { ControllerContext } from '../../runtime.ts';
import { REPLICA_SET, type ReplicaSet } from '../shared/objects.ts';
import { ReplicasController } from './replicas.ts';

type Needed = Pick<Informers, 'pods' | 'replicaSets'>;

/** Keys are those of replica sets. */
export class ReplicaSetController extends ReplicasController<ReplicaSet> {
  constructor(context: ControllerContext, { pods, replicaSets }: Needed) {
    super(context, pods, replicaSets, { kind: REPLICA_SET, selectorOf: ({ spec }) => spec.selector });
  }
}
