// StatefulSets: the row, its defaults and rules.

import type { StatefulSet } from 'kubernetes-types/apps/v1';
import { sameJson } from '../../../lib/same-json.ts';
import { namedTable, text } from '../columns.ts';
import { forbidden, invalid, nonNegative, notSupported, required, syntax } from '../field-errors.ts';
import { defineKind } from '../metadata.ts';
import { dns1123Label } from '../names.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import { as, type Of, type PodTemplate } from '../shapes.ts';
import { allOf, validateBounds, validateCounts, validateNotDecremented } from '../shared/counts.ts';
import {
  defaultTemplate,
  templateCells,
  templateColumns,
  templateWarnings,
  validateRunningTemplate,
  validateTemplate,
} from '../shared/pod-template.ts';
import { isUnusable } from '../shared/selectors.ts';
import { validateClaimSpec } from '../storage/claim-spec.ts';
import { defaultClaimSpec } from '../storage/claims.ts';
import { APPS, validateSelected, validateSelector } from './shared.ts';

const of = (object: KubeObject): Of<StatefulSet> => as<StatefulSet>(object, 'StatefulSet');
type Spec = NonNullable<Of<StatefulSet>['spec']>;
const LIMIT = 'cannot be greater than status.replicas';
const MUTABLE = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
] as const;
const FIXED =
  "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
const COUNTS = [
  'replicas',
  'readyReplicas',
  'currentReplicas',
  'updatedReplicas',
  'availableReplicas',
  'observedGeneration',
  'collisionCount',
];

function applyDefaults(object: KubeObject): void {
  const set = of(object);
  set.spec ??= {};
  const { spec } = set;
  spec.podManagementPolicy ??= 'OrderedReady';
  spec.updateStrategy ??= {};
  const { updateStrategy } = spec;
  if (updateStrategy.type === undefined) {
    updateStrategy.type = 'RollingUpdate';
    updateStrategy.rollingUpdate ??= {};
  }
  if (updateStrategy.type === 'RollingUpdate' && updateStrategy.rollingUpdate !== undefined) {
    updateStrategy.rollingUpdate.partition ??= 0;
  }
  spec.persistentVolumeClaimRetentionPolicy ??= {};
  spec.persistentVolumeClaimRetentionPolicy.whenDeleted ??= 'Retain';
  spec.persistentVolumeClaimRetentionPolicy.whenScaled ??= 'Retain';
  spec.replicas ??= 1;
  spec.revisionHistoryLimit ??= 10;
  spec.serviceName ??= '';
  for (const claim of spec.volumeClaimTemplates ?? []) {
    claim.apiVersion = 'v1';
    claim.kind = 'PersistentVolumeClaim';
    claim.spec ??= {};
    defaultClaimSpec(claim.spec);
    claim.status ??= {};
    claim.status.phase ??= 'Pending';
  }
  defaultTemplate(spec);
}

/** Not served without the feature gate MaxUnavailableStatefulSet, which is off. */
function dropDisabled(object: KubeObject): void {
  const rolling = of(object).spec?.updateStrategy?.rollingUpdate;
  if (rolling !== undefined) delete rolling.maxUnavailable;
}

function validateStrategy(strategy: Spec['updateStrategy'] = {}): FieldError[] {
  const { type = '', rollingUpdate } = strategy;
  const field = 'spec.updateStrategy';
  if (type === '') return [required(field)];
  if (type === 'OnDelete') {
    if (rollingUpdate === undefined) return [];
    return [invalid(`${field}.rollingUpdate`, rollingUpdate, "only allowed for updateStrategy 'RollingUpdate'")];
  }
  if (type !== 'RollingUpdate') return [invalid(field, strategy, "must be 'RollingUpdate' or 'OnDelete'")];
  return nonNegative(`${field}.rollingUpdate.partition`, rollingUpdate?.partition);
}

function validateRetention(policy: Spec['persistentVolumeClaimRetentionPolicy'] = {}): FieldError[] {
  return (['whenDeleted', 'whenScaled'] as const).flatMap((when) => {
    const value = policy[when] ?? '';
    if (value === 'Retain' || value === 'Delete') return [];
    return [notSupported(`spec.persistentVolumeClaimRetentionPolicy.${when}`, value, ['Retain', 'Delete'])];
  });
}

/** As the controller makes pods: with a volume for each claim template, and host names of its own. */
function effectiveTemplate(spec: Spec): PodTemplate {
  const { template = {}, volumeClaimTemplates = [] } = spec;
  const claimed = new Set(volumeClaimTemplates.map((claim) => claim.metadata?.name));
  const volumes = [
    ...Array.from(claimed, (name) => ({ name, persistentVolumeClaim: { claimName: name } })),
    ...(template.spec?.volumes ?? []).filter((volume) => !claimed.has(volume.name)),
  ];
  const { hostname: _hostname, subdomain: _subdomain, ...podSpec } = template.spec ?? {};
  return { ...template, spec: { ...podSpec, volumes } };
}

function validateSpec(spec: Spec = {}, update = false): FieldError[] {
  const { podManagementPolicy: policy = '', serviceName = '' } = spec;
  const at = 'spec.podManagementPolicy';
  const ordered = ['OrderedReady', 'Parallel'].includes(policy);
  return allOf(
    policy === '' ? [required(at)] : [],
    policy === '' || ordered ? [] : [invalid(at, policy, "must be 'OrderedReady' or 'Parallel'")],
    validateStrategy(spec.updateStrategy),
    validateRetention(spec.persistentVolumeClaimRetentionPolicy),
    update ? [] : validateClaimTemplates(spec.volumeClaimTemplates),
    nonNegative('spec.replicas', spec.replicas),
    nonNegative('spec.minReadySeconds', spec.minReadySeconds),
    nonNegative('spec.ordinals.start', spec.ordinals?.start),
    update || serviceName === '' ? [] : syntax('spec.serviceName', serviceName, dns1123Label(serviceName)),
    validateSelector(spec, 'statefulset'),
    isUnusable(spec.selector)
      ? [invalid('spec.selector', spec.selector, '')]
      : allOf(validateSelected(spec), validateTemplate('spec.template', effectiveTemplate(spec))),
    validateRunningTemplate('spec.template', spec.template, 'StatefulSet'),
  );
}

function validateClaimTemplates(claims: Spec['volumeClaimTemplates'] = []): FieldError[] {
  return claims.flatMap((claim, index) =>
    validateClaimSpec(`spec.volumeClaimTemplates[${index}].spec`, claim.spec ?? {}),
  );
}

function validateFixed(spec: Spec = {}, before: Spec = {}): FieldError[] {
  const fixed = (all: Spec): Spec => {
    const rest = { ...all };
    for (const field of MUTABLE) delete rest[field];
    return rest;
  };
  return sameJson(fixed(spec), fixed(before)) ? [] : [forbidden('spec', FIXED)];
}

export const statefulsets = defineKind({
  ...APPS,
  kind: 'StatefulSet',
  plural: 'statefulsets',
  singular: 'statefulset',
  shortNames: ['sts'],
  subresources: ['scale', 'status'],
  schema: 'io.k8s.api.apps.v1.StatefulSet',
  nameRule: dns1123Label,
  strategy: {
    applyDefaults,
    prepareForCreate: (object) => {
      dropDisabled(object);
      of(object).status = { availableReplicas: 0, replicas: 0 };
    },
    prepareForUpdate: (object, old) => {
      dropDisabled(object);
      of(object).status = of(old).status;
    },
    warnings: (object, old) => [
      ...templateWarnings(object, old, 'spec.template.', of(object).spec?.template),
      ...((of(object).spec?.revisionHistoryLimit ?? 0) < 0
        ? ['spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended']
        : []),
    ],
    validateCreate: (object) => validateSpec(of(object).spec),
    validateUpdate: (object, old) =>
      allOf(validateSpec(of(object).spec, true), validateFixed(of(object).spec, of(old).spec)),
    validateStatusUpdate: (object, old) => {
      const { status = {} } = of(object);
      return allOf(
        validateCounts('status', status, COUNTS),
        validateBounds('status', status, [
          ['readyReplicas', 'replicas', LIMIT],
          ['currentReplicas', 'replicas', LIMIT],
          ['updatedReplicas', 'replicas', LIMIT],
          ['availableReplicas', 'replicas', LIMIT],
          ['availableReplicas', 'readyReplicas', 'cannot be greater than status.readyReplicas'],
        ]),
        validateNotDecremented('status.collisionCount', status.collisionCount, of(old).status?.collisionCount),
      );
    },
    table: namedTable(
      [text('Ready', 'Number of the pod with ready state')],
      (object) => {
        const { spec, status } = of(object);
        return [`${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`];
      },
      { columns: templateColumns(), cells: (object) => templateCells(of(object).spec?.template) },
    ),
  },
});
