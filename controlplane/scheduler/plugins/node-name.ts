// NodeName (Filter): a pod whose spec names a node goes there alone. Pure.

import { isNodeChange } from '../events.ts';
import type { Plugin } from '../framework/plugin.ts';
import { unresolvable } from '../framework/status.ts';

const OTHER_NODE = unresolvable("node(s) didn't match the requested node name");

export const nodeName: Plugin = {
  name: 'NodeName',
  filter: (_state, { pod }, node) => {
    const wanted = pod.spec.nodeName ?? '';
    return wanted === '' || wanted === node.name ? undefined : OTHER_NODE;
  },
  worthRetrying: (event) => isNodeChange(event),
};
