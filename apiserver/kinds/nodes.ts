// Nodes: the row, its rules, and how kubectl get prints them.

import type { Node } from 'kubernetes-types/core/v1';
import { parseQuantity } from '../../lib/quantity.ts';
import { namedTable, text } from './columns.ts';
import { addErrors, duplicate, forbidden, IMMUTABLE, invalid, oneOf, required, syntax } from './field-errors.ts';
import { defineKind, duplicates } from './metadata.ts';
import { labelValue, qualifiedName } from './names.ts';
import type { FieldError, KubeObject } from './resource.ts';
import { as, type Of } from './shapes.ts';
import { legacyRangeErrors, rangeWarnings } from './shared/addresses.ts';

const of = (object: KubeObject) => as<Node>(object, 'Node');
const EFFECTS = ['NoExecute', 'NoSchedule', 'PreferNoSchedule'];
const ROLE_PREFIX = 'node-role.kubernetes.io/';
const ROLE_LABEL = 'kubernetes.io/role';

function validate(node: Of<Node>): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const [index, taint] of (node.spec?.taints ?? []).entries()) {
    // Upstream's path.
    const at = `metadata.taints[${index}]`;
    const { key = '', value = '', effect = '' } = taint;
    addErrors(errors, syntax(`${at}.key`, key, qualifiedName(key)));
    addErrors(errors, syntax(`${at}.value`, value, labelValue(value)));
    addErrors(errors, oneOf(`${at}.effect`, effect, EFFECTS));
    const pair = `${key}:${effect}`;
    if (seen.has(pair)) errors.push(duplicate(at, pair));
    seen.add(pair);
  }
  addErrors(errors, validateRanges(node.spec?.podCIDRs ?? []));
  return errors.concat(validateStatus(node));
}

function validateRanges(ranges: readonly string[]): FieldError[] {
  const errors = ranges.flatMap((range, index) => syntax(`spec.podCIDRs[${index}]`, range, legacyRangeErrors(range)));
  if (ranges.length < 2) return errors;
  const families = new Set(ranges.map((range) => (range.includes(':') ? 6 : 4)));
  if (errors.length > 0) {
    errors.push(invalid('spec.podCIDRs', ranges, 'failed to check with DualStack with error'));
  } else if (ranges.length > 2 || families.size < 2) {
    errors.push(invalid('spec.podCIDRs', ranges, 'may specify no more than one CIDR for each IP family'));
  }
  return errors.concat(
    duplicates(
      ranges,
      (index) => `spec.podCIDRs[${index}]`,
      (cidr) => cidr,
    ),
  );
}

function validateStatus(node: Of<Node>): FieldError[] {
  const errors: FieldError[] = [];
  for (const list of ['capacity', 'allocatable'] as const) {
    for (const [name, quantity] of Object.entries(node.status?.[list] ?? {})) {
      const nano = parseQuantity(quantity ?? '0');
      if (nano !== undefined && nano < 0n) {
        errors.push(invalid(`status.${list}[${name}]`, quantity, 'must be greater than or equal to 0'));
      }
    }
  }
  for (const [index, address] of (node.status?.addresses ?? []).entries()) {
    if ((address.type ?? '') === '') errors.push(required(`status.addresses[${index}].type`));
  }
  return errors.concat(
    duplicates(
      node.status?.addresses ?? [],
      (index) => `status.addresses[${index}]`,
      (address) => `${address.type}=${address.address}`,
    ),
  );
}

function validateUpdate(node: Of<Node>, old: Of<Node>): FieldError[] {
  const errors = validate(node);
  const was = old.spec?.podCIDR;
  if (was !== undefined && node.spec?.podCIDR !== was) {
    errors.push(forbidden('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid'));
  }
  const provider = old.spec?.providerID ?? '';
  if (provider !== '' && provider !== (node.spec?.providerID ?? '')) {
    errors.push(forbidden('spec.providerID', `node updates may not change providerID except from "" to valid`));
  }
  if (node.spec?.configSource !== undefined) {
    errors.push(forbidden('spec.configSource', `configSource may not be set, ${IMMUTABLE}`));
  }
  return errors;
}

function statusColumn(node: Of<Node>): string {
  const ready = (node.status?.conditions ?? []).find((condition) => condition.type === 'Ready');
  const words = [ready === undefined ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady'];
  if (node.spec?.unschedulable === true) words.push('SchedulingDisabled');
  return words.join(',');
}

function rolesColumn(node: Of<Node>): string {
  const roles = new Set<string>();
  for (const [label, value] of Object.entries(node.metadata.labels ?? {})) {
    if (label.startsWith(ROLE_PREFIX)) {
      const role = label.slice(ROLE_PREFIX.length);
      if (role !== '') roles.add(role);
    } else if (label === ROLE_LABEL && value !== '') roles.add(value);
  }
  return roles.size === 0 ? '<none>' : [...roles].sort().join(',');
}

function addressOf(node: Of<Node>, type: string): string {
  const found = (node.status?.addresses ?? []).find((address) => address.type === type)?.address;
  return found === undefined || found === '' ? '<none>' : found;
}

function known(value: string | undefined): string {
  return value === undefined || value === '' ? '<unknown>' : value;
}

function nodeWarnings(object: KubeObject): string[] {
  const { configSource, externalID = '', podCIDRs = [] } = of(object).spec ?? {};
  return [
    ...(configSource === undefined ? [] : ['spec.configSource: the feature is removed']),
    ...(externalID === '' ? [] : ['spec.externalID: this field is deprecated, and is unused by Kubernetes']),
    ...podCIDRs.flatMap((range, index) => rangeWarnings(`spec.podCIDRs[${index}]`, range)),
  ];
}

const table = namedTable(
  [text('Status', 'The status of the node'), text('Roles', 'The roles of the node')],
  (object) => [statusColumn(of(object)), rolesColumn(of(object))],
);

export const nodes = defineKind({
  group: '',
  version: 'v1',
  kind: 'Node',
  plural: 'nodes',
  singular: 'node',
  shortNames: ['no'],
  namespaced: false,
  subresources: ['status', 'proxy'],
  schema: 'io.k8s.api.core.v1.Node',
  strategy: {
    countsGenerations: false,
    // A kubelet registers its node with its status.
    prepareForCreate: () => undefined,
    prepareForUpdate: (object, old) => {
      of(object).status = of(old).status;
    },
    applyDefaults: (object) => {
      const { status } = of(object);
      if (status?.capacity !== undefined) status.allocatable ??= { ...status.capacity };
    },
    validateCreate: (object) => validate(of(object)),
    warnings: nodeWarnings,
    validateUpdate: (object, old) => validateUpdate(of(object), of(old)),
    validateStatusUpdate: (object) => validateStatus(of(object)),
    selectableFields: { 'spec.unschedulable': (object) => String(of(object).spec?.unschedulable ?? false) },
    table: {
      columns: [
        ...table.columns,
        text('Version', 'Kubelet Version reported by the node.'),
        text('Internal-IP', 'The address inside the cluster', 1),
        text('External-IP', 'The address outside the cluster', 1),
        text('OS-Image', 'OS Image reported by the node from /etc/os-release (e.g. Debian GNU/Linux 7 (wheezy)).', 1),
        text('Kernel-Version', "Kernel Version reported by the node from 'uname -r' (e.g. 3.16.0-0.bpo.4-amd64).", 1),
        text('Container-Runtime', 'ContainerRuntime Version reported by the node.', 1),
      ],
      row: (object, now) => {
        const node = of(object);
        const info = node.status?.nodeInfo;
        return [
          ...table.row(object, now),
          info?.kubeletVersion ?? '',
          addressOf(node, 'InternalIP'),
          addressOf(node, 'ExternalIP'),
          known(info?.osImage),
          known(info?.kernelVersion),
          known(info?.containerRuntimeVersion),
        ];
      },
    },
  },
});
