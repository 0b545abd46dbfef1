// NetworkPolicies: the row, its defaults and rules. Enforcing them is the network's.

import type { NetworkPolicy } from 'kubernetes-types/networking/v1';
import { namedTable, text } from '../columns.ts';
import { addErrors, forbidden, invalid, notSupported, required, syntax } from '../field-errors.ts';
import { defineKind } from '../metadata.ts';
import { portName, portNumber } from '../names.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import { as, type Of } from '../shapes.ts';
import { isStrictSubset, looseRange, parseRange, rangeWarnings } from '../shared/addresses.ts';
import { allOf } from '../shared/counts.ts';
import { isUnusable, type SelectorOptions, selectorCell, validateLabelSelector } from '../shared/selectors.ts';

const of = (object: KubeObject): Of<NetworkPolicy> => as<NetworkPolicy>(object, 'NetworkPolicy');
type Spec = NonNullable<Of<NetworkPolicy>['spec']>;
type Rule = NonNullable<Spec['ingress']>[number];
type Port = NonNullable<Rule['ports']>[number];
type Peer = NonNullable<Rule['from']>[number];

const PROTOCOLS = ['TCP', 'UDP', 'SCTP'];
const TYPES = ['Ingress', 'Egress'];

function applyDefaults(object: KubeObject): void {
  const policy = of(object);
  policy.spec ??= {};
  const { spec } = policy;
  spec.podSelector ??= {};
  spec.policyTypes ??= (spec.egress ?? []).length > 0 ? ['Ingress', 'Egress'] : ['Ingress'];
  for (const rule of [...(spec.ingress ?? []), ...(spec.egress ?? [])]) {
    for (const port of rule.ports ?? []) port.protocol ??= 'TCP';
  }
}

function validatePort(at: string, { protocol, port, endPort }: Port): FieldError[] {
  const errors: FieldError[] = [];
  if (protocol !== undefined && !PROTOCOLS.includes(protocol)) {
    errors.push(notSupported(`${at}.protocol`, protocol, PROTOCOLS));
  }
  if (typeof port === 'number') {
    addErrors(errors, syntax(`${at}.port`, port, portNumber(port)));
    if (endPort === undefined) return errors;
    if (endPort < port) errors.push(invalid(`${at}.endPort`, port, 'must be greater than or equal to `port`'));
    return errors.concat(syntax(`${at}.endPort`, endPort, portNumber(endPort)));
  }
  if (endPort !== undefined) {
    const why = port === undefined ? 'is not specified' : 'is non-numeric';
    errors.push(invalid(`${at}.endPort`, endPort, `may not be specified when \`port\` ${why}`));
  }
  return port === undefined ? errors : errors.concat(syntax(`${at}.port`, port, portName(port)));
}

function validateBlock(at: string, block: NonNullable<Peer['ipBlock']>, known: ReadonlySet<string>): FieldError[] {
  const { cidr = '', except = [] } = block;
  if (cidr === '') return [required(`${at}.cidr`)];
  const check = (field: string, value: string): FieldError[] =>
    known.has(value) ? [] : syntax(field, value, looseRange(value));
  const errors = check(`${at}.cidr`, cidr);
  const outer = parseRange(cidr);
  if (outer === undefined) return errors;
  for (const [index, value] of except.entries()) {
    const field = `${at}.except[${index}]`;
    addErrors(errors, check(field, value));
    const inner = parseRange(value);
    if (inner === undefined || isStrictSubset(inner, outer)) continue;
    errors.push(invalid(field, value, 'must be a strict subset of `cidr`'));
  }
  return errors;
}

interface Existing extends SelectorOptions {
  /** Ranges that the stored object has: they stay valid. */
  readonly ranges: ReadonlySet<string>;
}

function policyWarnings(object: KubeObject): string[] {
  const { ingress = [], egress = [] } = of(object).spec ?? {};
  const peers = (at: string, list: readonly Peer[] = []): string[] =>
    list.flatMap(({ ipBlock }, index) => {
      if (ipBlock === undefined) return [];
      const field = `${at}[${index}].ipBlock`;
      const except = (ipBlock.except ?? []).flatMap((range, place) =>
        rangeWarnings(`${field}.except[${place}]`, range),
      );
      return [...rangeWarnings(`${field}.cidr`, ipBlock.cidr ?? ''), ...except];
    });
  return [
    ...ingress.flatMap(({ from }, index) => peers(`spec.ingress[${index}].from`, from)),
    ...egress.flatMap(({ to }, index) => peers(`spec.egress[${index}].to`, to)),
  ];
}

function validatePeer(at: string, peer: Peer, existing: Existing): FieldError[] {
  const { podSelector, namespaceSelector, ipBlock } = peer;
  const errors = allOf(
    validateLabelSelector(`${at}.podSelector`, podSelector, existing),
    validateLabelSelector(`${at}.namespaceSelector`, namespaceSelector, existing),
    ipBlock === undefined ? [] : validateBlock(`${at}.ipBlock`, ipBlock, existing.ranges),
  );
  const peers = [podSelector, namespaceSelector, ipBlock].filter((one) => one !== undefined).length;
  if (peers === 0) errors.push(required(at, 'must specify a peer'));
  if (peers > 1 && ipBlock !== undefined) errors.push(forbidden(at, 'may not specify both ipBlock and another peer'));
  return errors;
}

function validateRule(at: string, ports: Port[] = [], side: string, peers: Peer[] = [], existing: Existing) {
  return allOf(
    ...ports.map((port, index) => validatePort(`${at}.ports[${index}]`, port)),
    ...peers.map((peer, index) => validatePeer(`${at}.${side}[${index}]`, peer, existing)),
  );
}

function validateTypes(types: readonly string[] = []): FieldError[] {
  const at = 'spec.policyTypes';
  if (types.length > TYPES.length) return [invalid(at, types, 'may not specify more than two policyTypes')];
  return types.flatMap((type, index) => (TYPES.includes(type) ? [] : [notSupported(`${at}[${index}]`, type, TYPES)]));
}

function validateSpec(spec: Spec = {}, old?: Spec): FieldError[] {
  const peers = [
    ...(old?.ingress ?? []).flatMap((rule) => rule.from ?? []),
    ...(old?.egress ?? []).flatMap((rule) => rule.to ?? []),
  ];
  const ranges = new Set(peers.flatMap(({ ipBlock }) => [ipBlock?.cidr ?? '', ...(ipBlock?.except ?? [])]));
  const existing: Existing = { ranges, anyValue: old !== undefined && isUnusable(old.podSelector) };
  return allOf(
    validateLabelSelector('spec.podSelector', spec.podSelector, existing),
    ...(spec.ingress ?? []).map(({ ports, from }, index) =>
      validateRule(`spec.ingress[${index}]`, ports, 'from', from, existing),
    ),
    ...(spec.egress ?? []).map(({ ports, to }, index) =>
      validateRule(`spec.egress[${index}]`, ports, 'to', to, existing),
    ),
    validateTypes(spec.policyTypes),
  );
}

export const networkpolicies = defineKind({
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'NetworkPolicy',
  plural: 'networkpolicies',
  singular: 'networkpolicy',
  shortNames: ['netpol'],
  namespaced: true,
  subresources: [],
  schema: 'io.k8s.api.networking.v1.NetworkPolicy',
  updateMeta: ['rules', 'create', 'update', 'own'],
  strategy: {
    warnings: policyWarnings,
    countsGenerations: true,
    applyDefaults,
    validateCreate: (object) => validateSpec(of(object).spec),
    validateUpdate: (object, old) => validateSpec(of(object).spec, of(old).spec),
    table: namedTable([text('Pod-Selector', 'The pods that the policy is for.')], (object) => [
      selectorCell(of(object).spec?.podSelector ?? {}),
    ]),
  },
});
