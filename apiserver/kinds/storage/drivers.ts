// CSIDrivers, CSINodes and VolumeAttachments: how a driver is used, on which nodes it runs, and which of its
// volumes are attached where.

import type { CSIDriver, CSINode, VolumeAttachment } from 'kubernetes-types/storage/v1';
import { sameJson } from '../../../lib/same-json.ts';
import { namedTable, text } from '../columns.ts';
import {
  addErrors,
  duplicate,
  forbidden,
  IMMUTABLE,
  invalid,
  nonNegative,
  notSupported,
  optionalOneOf,
  required,
  syntax,
} from '../field-errors.ts';
import { defineKind, duplicates } from '../metadata.ts';
import { dns1123Subdomain, qualifiedName } from '../names.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import { as, type Loose } from '../shapes.ts';
import { validateDriverName, validateParameters } from './shared.ts';
import { validateVolumeSpec } from './validate-volume.ts';

type DriverSpec = Loose<CSIDriver>['spec'] & {
  nodeAllocatableUpdatePeriodSeconds?: number | undefined;
  serviceAccountTokenInSecrets?: boolean | undefined;
};
type Driver = KubeObject & { spec?: DriverSpec | undefined };
const driverOf = (object: KubeObject): Driver => as<CSIDriver>(object, 'CSIDriver');
const nodeOf = (object: KubeObject) => as<CSINode>(object, 'CSINode');
const attachmentOf = (object: KubeObject) => as<VolumeAttachment>(object, 'VolumeAttachment');

const FS_GROUP_POLICIES = ['File', 'None', 'ReadWriteOnceWithFSType'];
const LIFECYCLE_MODES = ['Persistent', 'Ephemeral'];
const MIN_UPDATE_SECONDS = 10;
const MIN_TOKEN_SECONDS = 600;
const MAX_NODE_ID_BYTES = 192;
const MAX_ERROR_BYTES = 1024;

function defaultDriver(object: KubeObject): void {
  const driver = driverOf(object);
  driver.spec ??= {};
  const { spec } = driver;
  spec.attachRequired ??= true;
  spec.podInfoOnMount ??= false;
  spec.storageCapacity ??= false;
  spec.fsGroupPolicy ??= 'ReadWriteOnceWithFSType';
  if ((spec.volumeLifecycleModes ?? []).length === 0) spec.volumeLifecycleModes = ['Persistent'];
  spec.requiresRepublish ??= false;
  spec.seLinuxMount ??= false;
}

function validateDriver(object: KubeObject): FieldError[] {
  const spec = driverOf(object).spec ?? {};
  const errors = validateDriverName('metadata.name', object.metadata.name);
  addErrors(errors, optionalOneOf('spec.fsGroupPolicy', spec.fsGroupPolicy, FS_GROUP_POLICIES));
  for (const mode of spec.volumeLifecycleModes ?? []) {
    if (!LIFECYCLE_MODES.includes(mode)) errors.push(notSupported('spec.volumeLifecycleModes', mode, LIFECYCLE_MODES));
  }
  const audiences = new Set<string>();
  for (const [index, { audience = '', expirationSeconds }] of (spec.tokenRequests ?? []).entries()) {
    const at = `spec.tokenRequests[${index}]`;
    if (audiences.has(audience)) errors.push(duplicate(`${at}.audience`, audience));
    audiences.add(audience);
    if (expirationSeconds === undefined) continue;
    const field = `${at}.expirationSeconds`;
    if (expirationSeconds < MIN_TOKEN_SECONDS) {
      errors.push(invalid(field, expirationSeconds, 'may not specify a duration less than 10 minutes'));
    }
    if (expirationSeconds > 2 ** 32) {
      errors.push(invalid(field, expirationSeconds, 'may not specify a duration larger than 2^32 seconds'));
    }
  }
  const period = spec.nodeAllocatableUpdatePeriodSeconds;
  if (period !== undefined && period < MIN_UPDATE_SECONDS) {
    errors.push(
      invalid(
        'spec.nodeAllocatableUpdatePeriodSeconds',
        period,
        `must be greater than or equal to ${MIN_UPDATE_SECONDS} seconds`,
      ),
    );
  }
  if (spec.serviceAccountTokenInSecrets !== undefined && (spec.tokenRequests ?? []).length === 0) {
    errors.push(
      invalid(
        'spec.serviceAccountTokenInSecrets',
        spec.serviceAccountTokenInSecrets,
        'may not be set if tokenRequests is not set',
      ),
    );
  }
  return errors;
}

function validateDriverUpdate(object: KubeObject, old: KubeObject): FieldError[] {
  const [now, before] = [driverOf(object).spec ?? {}, driverOf(old).spec ?? {}];
  const errors: FieldError[] = [];
  for (const field of ['attachRequired', 'volumeLifecycleModes'] as const) {
    if (!sameJson(now[field], before[field]))
      errors.push(
        invalid(field === 'attachRequired' ? 'spec.attachedRequired' : `spec.${field}`, now[field], IMMUTABLE),
      );
  }
  return errors;
}

export const csidrivers = defineKind({
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'CSIDriver',
  plural: 'csidrivers',
  singular: 'csidriver',
  namespaced: false,
  subresources: [],
  schema: 'io.k8s.api.storage.v1.CSIDriver',
  updateMeta: ['update', 'create', 'own'],
  strategy: {
    countsGenerations: false,
    applyDefaults: defaultDriver,
    // Of a feature that is off.
    prepareForCreate: (object) => void delete driverOf(object).spec?.nodeAllocatableUpdatePeriodSeconds,
    prepareForUpdate: (object, old) => {
      if (driverOf(old).spec?.nodeAllocatableUpdatePeriodSeconds === undefined) {
        delete driverOf(object).spec?.nodeAllocatableUpdatePeriodSeconds;
      }
      // A new driver has no generation.
      if (!sameJson(driverOf(object).spec, driverOf(old).spec)) {
        object.metadata.generation = (old.metadata.generation ?? 0) + 1;
      }
    },
    validateCreate: validateDriver,
    validateUpdate: validateDriverUpdate,
    table: namedTable(
      [
        {
          name: 'AttachRequired',
          type: 'boolean',
          description: 'Whether volumes must be attached before they are used.',
        },
        { name: 'PodInfoOnMount', type: 'boolean', description: 'Whether NodePublishVolume receives the pod.' },
        {
          name: 'StorageCapacity',
          type: 'boolean',
          description: 'Whether the scheduler considers CSIStorageCapacity.',
        },
        text('TokenRequests', 'Audiences of the service account tokens that the driver is given.'),
        { name: 'RequiresRepublish', type: 'boolean', description: 'Whether published volumes are published again.' },
        text('Modes', 'The kinds of volumes that the driver supports.'),
      ],
      (object) => {
        const spec = driverOf(object).spec ?? {};
        const tokens = spec.tokenRequests?.map((request) => request.audience ?? '').join(',');
        const modes = (spec.volumeLifecycleModes ?? []).join(',');
        return [
          spec.attachRequired ?? true,
          spec.podInfoOnMount ?? false,
          spec.storageCapacity ?? false,
          tokens ?? '<unset>',
          spec.requiresRepublish ?? false,
          modes === '' ? '<none>' : modes,
        ];
      },
    ),
  },
});

function validateNode(object: KubeObject): FieldError[] {
  const drivers = nodeOf(object).spec?.drivers ?? [];
  const errors = drivers.flatMap(({ name, nodeID = '', topologyKeys = [], allocatable }, index) => {
    const at = `spec.drivers[${index}]`;
    const found = validateDriverName(`${at}.name`, name);
    if (nodeID === '') found.push(required(`${at}.nodeID`));
    else if (Buffer.byteLength(nodeID) > MAX_NODE_ID_BYTES) {
      found.push(invalid(`${at}.nodeID`, nodeID, `must be ${MAX_NODE_ID_BYTES} characters or less`));
    }
    addErrors(found, nonNegative(`${at}.allocatable.count`, allocatable?.count));
    const keys = new Set<string>();
    for (const key of topologyKeys) {
      if (key === '') found.push(required(at));
      if (keys.has(key)) found.push(duplicate(at, key));
      keys.add(key);
      addErrors(found, syntax(at, key, qualifiedName(key)));
    }
    return found;
  });
  return errors.concat(
    duplicates(
      drivers,
      (index) => `spec.drivers[${index}].name`,
      (driver) => driver.name,
    ),
  );
}

/** A driver's entry stays as it is while it is there, but for how many volumes fit. */
function validateNodeUpdate(object: KubeObject, old: KubeObject): FieldError[] {
  const before = new Map((nodeOf(old).spec?.drivers ?? []).map((driver) => [driver.name, driver]));
  const errors: FieldError[] = [];
  for (const driver of nodeOf(object).spec?.drivers ?? []) {
    const was = before.get(driver.name);
    if (was === undefined) continue;
    const same = was.nodeID === driver.nodeID && sameJson(was.topologyKeys ?? [], driver.topologyKeys ?? []);
    if (!same) errors.push(invalid('spec.drivers', driver, IMMUTABLE));
  }
  return errors;
}

export const csinodes = defineKind({
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'CSINode',
  plural: 'csinodes',
  singular: 'csinode',
  namespaced: false,
  subresources: [],
  schema: 'io.k8s.api.storage.v1.CSINode',
  updateMeta: ['rules', 'create', 'own'],
  strategy: {
    validateCreate: validateNode,
    validateUpdate: validateNodeUpdate,
    table: namedTable(
      [
        {
          name: 'Drivers',
          type: 'integer',
          description: 'Drivers indicates the number of CSI drivers registered on the node',
        },
      ],
      (object) => [(nodeOf(object).spec?.drivers ?? []).length],
    ),
  },
});

function validateAttachment(object: KubeObject): FieldError[] {
  const { attacher, nodeName = '', source = {} } = attachmentOf(object).spec ?? {};
  const { inlineVolumeSpec, persistentVolumeName } = source;
  const errors = (attacher ?? '') === '' ? [required('spec.attacher')] : [];
  if ((inlineVolumeSpec === undefined) === (persistentVolumeName === undefined)) {
    const neither = inlineVolumeSpec === undefined;
    const why = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName';
    errors.push(neither ? required('spec.source', why) : forbidden('spec.source', why));
  } else if (persistentVolumeName === '') {
    errors.push(required('spec.source.persistentVolumeName', 'must specify non empty persistentVolumeName'));
  } else if (inlineVolumeSpec !== undefined) {
    addErrors(errors, validateVolumeSpec('spec.source.inlineVolumeSpec', inlineVolumeSpec, { inline: true }));
  }
  addErrors(errors, syntax('spec.nodeName', nodeName, dns1123Subdomain(nodeName)));
  addErrors(errors, validateAttachmentStatus(object));
  addErrors(errors, validateDriverName('spec.attacher', attacher));
  if (persistentVolumeName === undefined) return errors;
  const at = 'spec.source.persistentVolumeName';
  return errors.concat(syntax(at, persistentVolumeName, dns1123Subdomain(persistentVolumeName)));
}

function validateAttachmentStatus(object: KubeObject): FieldError[] {
  const status = attachmentOf(object).status ?? {};
  const errors = validateParameters('status.attachmentMetadata', status.attachmentMetadata);
  for (const field of ['attachError', 'detachError'] as const) {
    const bytes = Buffer.byteLength(status[field]?.message ?? '');
    if (bytes > MAX_ERROR_BYTES) {
      errors.push({
        type: 'FieldValueTooLong',
        field: `status.${field}.message`,
        detail: `Too long: may not be more than ${MAX_ERROR_BYTES} bytes`,
      });
    }
  }
  return errors;
}

export const volumeattachments = defineKind({
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'VolumeAttachment',
  plural: 'volumeattachments',
  singular: 'volumeattachment',
  namespaced: false,
  subresources: ['status'],
  schema: 'io.k8s.api.storage.v1.VolumeAttachment',
  updateMeta: ['rules', 'create', 'rules', 'create', 'own'],
  strategy: {
    countsGenerations: false,
    resetFields: { '': [['status']], status: [['metadata'], ['spec']] },
    prepareForCreate: (object) => {
      attachmentOf(object).status = { attached: false };
    },
    validateCreate: validateAttachment,
    validateUpdate: (object, old) =>
      sameJson(attachmentOf(object).spec, attachmentOf(old).spec)
        ? []
        : [invalid('spec', attachmentOf(object).spec, IMMUTABLE)],
    validateStatusUpdate: validateAttachmentStatus,
    table: namedTable(
      [
        text('Attacher', 'The CSI driver that attaches the volume.'),
        text('PV', 'The PersistentVolume to attach.'),
        text('Node', 'The node that the volume is attached to.'),
        { name: 'Attached', type: 'boolean', description: 'Whether the volume is attached.' },
      ],
      (object) => {
        const { spec, status } = attachmentOf(object);
        return [
          spec?.attacher ?? '',
          spec?.source?.persistentVolumeName ?? '',
          spec?.nodeName ?? '',
          status?.attached ?? false,
        ];
      },
    ),
  },
});
