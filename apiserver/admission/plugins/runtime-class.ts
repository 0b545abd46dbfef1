// RuntimeClass: a pod gets its class's overhead, node selector and tolerations (plugin/pkg/admission/runtimeclass).

import type { RuntimeClass } from 'kubernetes-types/node/v1';
import { getOwn, setOwn } from '../../../lib/own-property.ts';
import { compareQuantities } from '../../../lib/quantity.ts';
import { sameJson } from '../../../lib/same-json.ts';
import type { ObjectLookup } from '../../kinds/resource.ts';
import { as, type Of, type PodSpec, podOf } from '../../kinds/shapes.ts';
import { AdmissionForbidden, type AdmissionPlugin, handlesOnly } from '../plugin.ts';

type Quantities = { readonly [name: string]: string | undefined };

function sameQuantities(a: Quantities, b: Quantities): boolean {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].every((name) => {
    const [left, right] = [getOwn(a, name), getOwn(b, name)];
    return left !== undefined && right !== undefined && compareQuantities(left, right) === 0;
  });
}

function classOf(spec: PodSpec, lookup: ObjectLookup): Of<RuntimeClass> | undefined {
  const name = spec.runtimeClassName;
  if (name === undefined || name === '') return undefined;
  const stored = lookup.get('node.k8s.io', 'runtimeclasses', '', name);
  if (stored === undefined) {
    throw new AdmissionForbidden(`pod rejected: RuntimeClass ${JSON.stringify(name)} not found`);
  }
  return as<RuntimeClass>(stored, 'RuntimeClass');
}

function setOverhead(spec: PodSpec, overhead: Quantities | undefined): void {
  if (overhead === undefined) return;
  if (spec.overhead !== undefined && !sameQuantities(spec.overhead, overhead)) {
    throw new AdmissionForbidden("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
  }
  spec.overhead = { ...overhead };
}

function setScheduling(spec: PodSpec, { scheduling }: Of<RuntimeClass>): void {
  if (scheduling === undefined) return;
  const nodeSelector = { ...spec.nodeSelector };
  for (const [key, value] of Object.entries(scheduling.nodeSelector ?? {})) {
    const own = getOwn(spec.nodeSelector, key);
    if (own !== undefined && own !== value) {
      throw new AdmissionForbidden(
        `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${value}; pod.spec.nodeSelector[${key}] = ${own}`,
      );
    }
    setOwn(nodeSelector, key, value);
  }
  if (scheduling.nodeSelector !== undefined) spec.nodeSelector = nodeSelector;
  for (const toleration of scheduling.tolerations ?? []) {
    if (!(spec.tolerations ?? []).some((own) => sameJson(own, toleration))) {
      spec.tolerations = [...(spec.tolerations ?? []), { ...toleration }];
    }
  }
}

export const runtimeClass: AdmissionPlugin = {
  name: 'RuntimeClass',
  handles: handlesOnly('', 'pods', 'CREATE'),
  admit: ({ object }, lookup) => {
    const spec = object === undefined ? undefined : podOf(object).spec;
    const found = spec === undefined ? undefined : classOf(spec, lookup);
    if (spec === undefined || found === undefined) return;
    setOverhead(spec, found.overhead?.podFixed);
    setScheduling(spec, found);
  },
  validate: ({ object }, lookup) => {
    const spec = object === undefined ? undefined : podOf(object).spec;
    if (spec === undefined) return;
    const overhead = classOf(spec, lookup)?.overhead?.podFixed;
    if (overhead !== undefined) {
      if (!sameQuantities(spec.overhead ?? {}, overhead)) {
        throw new AdmissionForbidden("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
      }
    } else if (spec.overhead !== undefined && Object.keys(spec.overhead).length > 0) {
      throw new AdmissionForbidden(
        'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead',
      );
    }
  },
};
