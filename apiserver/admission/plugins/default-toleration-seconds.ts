// DefaultTolerationSeconds: every pod tolerates a node that is not ready or not reachable for five minutes
// (plugin/pkg/admission/defaulttolerationseconds).

import { type PodSpec, podOf } from '../../kinds/shapes.ts';
import { type AdmissionPlugin, handlesOnly } from '../plugin.ts';

const KEYS = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];
const SECONDS = 300;

export function addNotReadyTolerations(spec: PodSpec): void {
  const own = spec.tolerations ?? [];
  const added = KEYS.filter(
    (key) =>
      !own.some(
        (toleration) =>
          (toleration.key === key || (toleration.key ?? '') === '') &&
          (toleration.effect === 'NoExecute' || (toleration.effect ?? '') === ''),
      ),
  );
  if (added.length === 0) return;
  spec.tolerations = [
    ...own,
    ...added.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: SECONDS })),
  ];
}

export const defaultTolerationSeconds: AdmissionPlugin = {
  name: 'DefaultTolerationSeconds',
  handles: handlesOnly('', 'pods', 'CREATE', 'UPDATE'),
  admit: ({ object }) => {
    const spec = object === undefined ? undefined : podOf(object).spec;
    if (spec !== undefined) addNotReadyTolerations(spec);
  },
};
