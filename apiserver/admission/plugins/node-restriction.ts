// NodeRestriction: what a node may write. The rules are auth/node-restriction.ts; here is their place in the chain.

import type { Authorizer } from '../../auth/authorizer.ts';
import { restrictNode } from '../../auth/node-restriction.ts';
import type { AdmissionPlugin, Operation } from '../plugin.ts';

const OPERATIONS: Partial<Record<Operation, 'create' | 'update' | 'delete'>> = {
  CREATE: 'create',
  UPDATE: 'update',
  DELETE: 'delete',
};

export interface NodeRestrictionParts {
  /** Audiences that nodes may request tokens for though no volume of the pod needs them. */
  readonly nodeAudiences: readonly string[];
  readonly authorizer: () => Authorizer;
}

export function nodeRestriction({ nodeAudiences, authorizer }: NodeRestrictionParts): AdmissionPlugin {
  return {
    name: 'NodeRestriction',
    handles: (operation) => operation !== 'CONNECT',
    admit: ({ operation, resource, namespace, name, object, old, user }, lookup) => {
      const write = OPERATIONS[operation];
      if (write === undefined) return;
      const { group, plural, subresource } = resource;
      const onCreate = operation === 'CREATE' && name === '' ? (object?.metadata.name ?? '') : name;
      restrictNode(
        user,
        {
          operation: write,
          group,
          resource: plural,
          subresource,
          namespace,
          name: onCreate,
          ...(object === undefined ? {} : { object }),
          ...(old === undefined || operation === 'DELETE' ? {} : { old }),
        },
        { lookup, nodeAudiences, authorizer: authorizer() },
      );
    },
  };
}
