// The ReplicationController controller: what that of ReplicaSets does, for the older kind, whose selector is a map of labels.

import type { Informers } from '../../informers.ts';
import type { ControllerContext } from '../../runtime.ts';
import { ReplicasController } from '../replicaset/replicas.ts';
import { REPLICATION_CONTROLLER, type ReplicationController } from '../shared/objects.ts';

type Needed = Pick<Informers, 'pods' | 'replicationControllers'>;

/** Keys are those of replication controllers. */
export class ReplicationControllerController extends ReplicasController<ReplicationController> {
  constructor(context: ControllerContext, { pods, replicationControllers }: Needed) {
    super(context, pods, replicationControllers, {
      kind: REPLICATION_CONTROLLER,
      // The server gives it that of the template's labels; one without any selects nothing.
      selectorOf: ({ spec: { selector = {} } }) =>
        Object.keys(selector).length === 0 ? undefined : { matchLabels: selector },
    });
  }
}
