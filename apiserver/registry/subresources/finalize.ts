// namespaces/<name>/finalize: the only way to change spec.finalizers. When the last is gone from a namespace that is
// being deleted, so is the namespace.

import { isObject } from '../../patch/json-value.ts';
import { keepAllBut, type UpdateRules } from '../write.ts';

export const finalizeRules: UpdateRules = {
  subresource: 'finalize',
  prepare: (object, old) => {
    const spec = isObject(object['spec']) ? object['spec'] : {};
    const finalizers = Array.isArray(spec['finalizers']) ? spec['finalizers'] : [];
    keepAllBut(object, old, 'spec');
    const before = isObject(old['spec']) ? old['spec'] : {};
    const { finalizers: _before, ...rest } = before;
    object['spec'] = finalizers.length === 0 ? rest : { ...rest, finalizers };
  },
  validate: () => [],
};
