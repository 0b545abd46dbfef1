// TaintNodesByCondition: a Node begins with the taint of one that is not ready, so that nothing is scheduled on it before
// it is; the node controller takes the taint away (plugin/pkg/admission/nodetaint).

import type { Node } from 'kubernetes-types/core/v1';
import { as } from '../../kinds/shapes.ts';
import { type AdmissionPlugin, handlesOnly } from '../plugin.ts';

const NOT_READY = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };

export const taintNodesByCondition: AdmissionPlugin = {
  name: 'TaintNodesByCondition',
  handles: handlesOnly('', 'nodes', 'CREATE'),
  admit: ({ object }) => {
    if (object === undefined) return;
    const node = as<Node>(object, 'Node');
    const spec = node.spec ?? {};
    const taints = spec.taints ?? [];
    if (taints.some(({ key, effect }) => key === NOT_READY.key && effect === NOT_READY.effect)) return;
    node.spec = { ...spec, taints: [...taints, { ...NOT_READY }] };
  },
};
