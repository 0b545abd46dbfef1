// ResourceClaims and ResourceClaimTemplates: the rows, their defaults, and what is dropped. Allocating is the scheduler's.

import { getOwn } from '../../../lib/own-property.ts';
import { namedTable, text } from '../columns.ts';
import { forbidden } from '../field-errors.ts';
import { defineKind, validateAnnotations, validateLabels } from '../metadata.ts';
import type { FieldError, KubeObject, RequestContext } from '../resource.ts';
import type { Loose } from '../shapes.ts';
import { allOf, validateImmutable } from '../shared/counts.ts';
import { type ClaimSpec, type ClaimStatus, claimOf, type DeviceChoice, DRA, templateOf } from './types.ts';
import { validateClaimSpec } from './validate-claim.ts';
import { deviceKey, validateClaimStatus } from './validate-status.ts';

type Spec = Loose<ClaimSpec>;
const ADMIN_LABEL = 'resource.kubernetes.io/admin-access';

function choicesOf(spec: Spec): Loose<DeviceChoice>[] {
  return (spec.devices?.requests ?? []).flatMap(({ exactly, firstAvailable = [] }) => [
    ...(exactly === undefined ? [] : [exactly]),
    ...firstAvailable,
  ]);
}

function defaultSpec(spec: Spec): void {
  for (const one of choicesOf(spec)) {
    one.allocationMode ??= 'ExactCount';
    if (one.allocationMode === 'ExactCount' && (one.count ?? 0) === 0) one.count = 1;
    for (const toleration of one.tolerations ?? []) toleration.operator ??= 'Equal';
  }
}

/** Fields of the feature gate DRAConsumableCapacity, which is off. */
function dropDisabled(spec: Spec = {}): void {
  for (const one of choicesOf(spec)) delete one.capacity;
  for (const constraint of spec.devices?.constraints ?? []) delete constraint.distinctAttribute;
}

/** Of DRAConsumableCapacity and DRADeviceBindingConditions, which are off. */
function dropDisabledStatus(status: Loose<ClaimStatus> = {}): void {
  for (const result of status.allocation?.devices?.results ?? []) {
    delete result.shareID;
    delete result.consumedCapacity;
    delete result.bindingConditions;
    delete result.bindingFailureConditions;
  }
  if (status.allocation !== undefined) delete status.allocation.allocationTimestamp;
  for (const device of status.devices ?? []) delete device.shareID;
}

/** The status of a device goes with its allocation. */
function dropDeallocated(object: KubeObject, old: KubeObject): void {
  const { status } = claimOf(object);
  if (status?.devices === undefined) return;
  const now = new Set((status.allocation?.devices?.results ?? []).map(deviceKey));
  const gone = (claimOf(old).status?.allocation?.devices?.results ?? []).map(deviceKey).filter((key) => !now.has(key));
  status.devices = status.devices.filter((device) => !gone.includes(deviceKey(device)));
  if (status.devices.length === 0) delete status.devices;
}

/** Access to devices that others use is for the namespaces that an administrator has marked. */
function validateAdmin(at: string, spec: Spec, namespace: string, context: RequestContext): FieldError[] {
  const index = (spec.devices?.requests ?? []).findIndex(({ exactly }) => exactly?.adminAccess === true);
  if (index < 0) return [];
  const labels = context.lookup.get('', 'namespaces', '', namespace)?.metadata.labels;
  if (getOwn(labels, ADMIN_LABEL) === 'true') return [];
  const why = `admin access to devices requires the \`${ADMIN_LABEL}: true\` label on the containing namespace`;
  return [forbidden(`${at}.devices.requests[${index}].adminAccess`, why)];
}

function stateCell(object: KubeObject): string {
  const { allocation, reservedFor = [] } = claimOf(object).status ?? {};
  const deleted = object.metadata.deletionTimestamp !== undefined;
  const states = deleted ? ['deleted'] : [];
  if (allocation !== undefined) states.push('allocated', ...(reservedFor.length > 0 ? ['reserved'] : []));
  else if (!deleted) states.push('pending');
  return states.join(',');
}

export const resourceclaims = defineKind({
  ...DRA,
  kind: 'ResourceClaim',
  plural: 'resourceclaims',
  singular: 'resourceclaim',
  namespaced: true,
  subresources: ['status'],
  schema: 'io.k8s.api.resource.v1.ResourceClaim',
  strategy: {
    countsGenerations: false,
    applyDefaults: (object) => {
      const claim = claimOf(object);
      claim.spec ??= {};
      claim.spec.devices ??= {};
      defaultSpec(claim.spec);
    },
    allocate: (object, context) =>
      validateAdmin('spec', claimOf(object).spec ?? {}, object.metadata.namespace ?? '', context),
    prepareForCreate: (object) => {
      dropDisabled(claimOf(object).spec);
      claimOf(object).status = {};
    },
    prepareForUpdate: (object, old) => {
      dropDisabled(claimOf(object).spec);
      claimOf(object).status = claimOf(old).status;
    },
    prepareForStatusUpdate: (object, old) => {
      dropDisabledStatus(claimOf(object).status);
      dropDeallocated(object, old);
    },
    validateCreate: (object) => validateClaimSpec('spec', claimOf(object).spec),
    validateUpdate: (object, old) =>
      allOf(
        validateImmutable('spec', claimOf(object).spec, claimOf(old).spec),
        validateClaimSpec('spec', claimOf(object).spec, true),
      ),
    validateStatusUpdate: (object, old) => validateClaimStatus(claimOf(object), claimOf(old)),
    table: namedTable(
      [text('State', 'A summary of the current state (allocated, pending, reserved, etc.).')],
      (object) => [stateCell(object)],
    ),
  },
});

function validateTemplate(object: KubeObject, stored: boolean): FieldError[] {
  const { metadata = {}, spec } = templateOf(object).spec ?? {};
  const annotations = Object.fromEntries(
    Object.entries(metadata.annotations ?? {}).map(([key, value]) => [key, value ?? '']),
  );
  return allOf(
    validateLabels('spec.metadata.labels', metadata.labels),
    validateAnnotations('spec.metadata.annotations', annotations),
    validateClaimSpec('spec.spec', spec, stored),
  );
}

export const resourceclaimtemplates = defineKind({
  ...DRA,
  kind: 'ResourceClaimTemplate',
  plural: 'resourceclaimtemplates',
  singular: 'resourceclaimtemplate',
  namespaced: true,
  subresources: [],
  schema: 'io.k8s.api.resource.v1.ResourceClaimTemplate',
  strategy: {
    applyDefaults: (object) => {
      const template = templateOf(object);
      template.spec ??= {};
      template.spec.spec ??= {};
      template.spec.spec.devices ??= {};
      defaultSpec(template.spec.spec);
    },
    allocate: (object, context) =>
      validateAdmin('spec', templateOf(object).spec?.spec ?? {}, object.metadata.namespace ?? '', context),
    prepareForCreate: (object) => dropDisabled(templateOf(object).spec?.spec),
    prepareForUpdate: (object) => dropDisabled(templateOf(object).spec?.spec),
    validateCreate: (object) => validateTemplate(object, false),
    validateUpdate: (object, old) =>
      allOf(validateImmutable('spec', templateOf(object).spec, templateOf(old).spec), validateTemplate(object, true)),
    table: namedTable([], () => []),
  },
});
