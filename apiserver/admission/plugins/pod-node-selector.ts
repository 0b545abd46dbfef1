// PodNodeSelector: the pods of a namespace run on the nodes that an annotation of the namespace selects
// (plugin/pkg/admission/podnodeselector). Without a configuration: no cluster-wide default, and no white list.

import { getOwn, setOwn } from '../../../lib/own-property.ts';
import type { ObjectLookup } from '../../kinds/resource.ts';
import { podOf } from '../../kinds/shapes.ts';
import { type AdmissionAttributes, AdmissionForbidden, type AdmissionPlugin, handlesOnly } from '../plugin.ts';

const ANNOTATION = 'scheduler.alpha.kubernetes.io/node-selector';

/** "a=b,c=d"; undefined for what is no such list. */
function parseSelector(text: string): Record<string, string> | undefined {
  const labels: Record<string, string> = {};
  for (const part of text.split(',').map((one) => one.trim())) {
    if (part === '') continue;
    const [key = '', value, ...more] = part.split('=').map((one) => one.trim());
    if (value === undefined || more.length > 0) return undefined;
    setOwn(labels, key, value);
  }
  return labels;
}

/** Labels of the nodes that the namespace's pods run on. */
function selectorOf({ namespace }: AdmissionAttributes, lookup: ObjectLookup): Record<string, string> {
  const text = getOwn(lookup.get('', 'namespaces', '', namespace)?.metadata.annotations, ANNOTATION) ?? '';
  const labels = parseSelector(text);
  if (labels === undefined) throw new AdmissionForbidden(`invalid selector: ${JSON.stringify(text)}`);
  return labels;
}

function check(own: Readonly<Record<string, string | undefined>> | undefined, labels: Record<string, string>): void {
  const conflicts = Object.entries(labels).some(([key, value]) => (getOwn(own, key) ?? value) !== value);
  if (conflicts) {
    throw new AdmissionForbidden('pod node label selector conflicts with its namespace node label selector');
  }
}

export const podNodeSelector: AdmissionPlugin = {
  name: 'PodNodeSelector',
  handles: handlesOnly('', 'pods', 'CREATE'),
  admit: (attributes, lookup) => {
    const spec = attributes.object === undefined ? undefined : podOf(attributes.object).spec;
    if (spec === undefined) return;
    const labels = selectorOf(attributes, lookup);
    check(spec.nodeSelector, labels);
    if (Object.keys(labels).length > 0) spec.nodeSelector = { ...spec.nodeSelector, ...labels };
  },
  validate: (attributes, lookup) => {
    const spec = attributes.object === undefined ? undefined : podOf(attributes.object).spec;
    if (spec !== undefined) check(spec.nodeSelector, selectorOf(attributes, lookup));
  },
};
