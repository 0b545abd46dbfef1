// DefaultBinder (Bind): creates the pod's Binding. Limits how many are under way at once.

import { resourcePath } from '../../../client/paths.ts';
import { Gate } from '../../../lib/gate.ts';
import type { ControllerContext } from '../../runtime.ts';
import type { Plugin } from '../framework/plugin.ts';

const AT_ONCE = 32;

export function defaultBinder(client: Pick<ControllerContext['client'], 'create'>): Plugin {
  const gate = new Gate(AT_ONCE);
  return {
    name: 'DefaultBinder',
    bind: async ({ name, namespace, uid }, node) => {
      await gate.run(() =>
        client.create(resourcePath('v1', 'pods', { namespace, name, subresource: 'binding' }), {
          apiVersion: 'v1',
          kind: 'Binding',
          metadata: { name, namespace, uid },
          target: { apiVersion: 'v1', kind: 'Node', name: node },
        }),
      );
      return true;
    },
  };
}
