// DeviceClasses and ResourceSlices: the rows and their rules, and what is dropped of features that are off.

import { sameJson } from '../../../lib/same-json.ts';
import { namedTable, text } from '../columns.ts';
import { addErrors, invalid, required, syntax, tooLong } from '../field-errors.ts';
import { defineKind } from '../metadata.ts';
import { dns1123Label, dns1123Subdomain } from '../names.ts';
import { validateNodeSelector } from '../pods/validate-scheduling.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import type { Loose, Of } from '../shapes.ts';
import { allOf, validateImmutable } from '../shared/counts.ts';
import {
  BY_NAME,
  Expressions,
  MAX_ITEMS,
  validateConfiguration,
  validateDriver,
  validateList,
  validatePoolName,
  validateQualifiedName,
  validateSet,
} from './rules.ts';
import { classOf, type Device, DRA, sliceOf } from './types.ts';

function validateClass(object: KubeObject, old?: KubeObject): FieldError[] {
  const { selectors, config } = classOf(object).spec ?? {};
  const stored = old !== undefined && sameJson(config ?? [], classOf(old).spec?.config ?? []);
  return allOf(
    new Expressions().validate('spec.selectors', selectors),
    validateList('spec.config', config, MAX_ITEMS, (at, one) => validateConfiguration(at, one, stored)),
  );
}

/** Of the feature gate DRAExtendedResource, which is off. */
function dropExtendedName(object: KubeObject): void {
  const { spec } = classOf(object);
  if (spec !== undefined) delete spec.extendedResourceName;
}

export const deviceclasses = defineKind({
  ...DRA,
  kind: 'DeviceClass',
  plural: 'deviceclasses',
  singular: 'deviceclass',
  namespaced: false,
  subresources: [],
  schema: 'io.k8s.api.resource.v1.DeviceClass',
  strategy: {
    countsGenerations: true,
    applyDefaults: (object) => {
      classOf(object).spec ??= {};
    },
    prepareForCreate: dropExtendedName,
    prepareForUpdate: dropExtendedName,
    validateCreate: (object) => validateClass(object),
    validateUpdate: validateClass,
    table: namedTable([], () => []),
  },
});

type SliceSpec = NonNullable<Of<{ spec?: object }>['spec']> & NonNullable<ReturnType<typeof sliceOf>['spec']>;
const MAX_DEVICES = 128;
const MAX_PROPERTIES = 32;
const MAX_VALUE = 64;
const SEMVER =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$/;
const PLACES = 'exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required';

/** Of DRADeviceTaints, DRAPartitionableDevices, DRADeviceBindingConditions and DRAConsumableCapacity, which are off. */
function dropDisabled(object: KubeObject): void {
  const { spec } = sliceOf(object);
  if (spec === undefined) return;
  delete spec.sharedCounters;
  delete spec.perDeviceNodeSelection;
  for (const device of spec.devices ?? []) {
    for (const field of ['taints', 'consumesCounters', 'nodeName', 'nodeSelector', 'allNodes'] as const) {
      delete device[field];
    }
    for (const field of ['allowMultipleAllocations', 'bindsToNode'] as const) delete device[field];
    for (const field of ['bindingConditions', 'bindingFailureConditions'] as const) delete device[field];
    for (const capacity of Object.values(device.capacity ?? {})) delete capacity?.requestPolicy;
  }
}

function validatePlace(spec: Loose<SliceSpec>): FieldError[] {
  const { nodeName, nodeSelector, allNodes } = spec;
  const errors: FieldError[] = [];
  const set: string[] = [];
  if (nodeName === '') {
    errors.push(invalid('spec.nodeName', nodeName, 'must be either unset or set to a non-empty string'));
  } else if (nodeName !== undefined) {
    set.push('`nodeName`');
    addErrors(errors, syntax('spec.nodeName', nodeName, dns1123Subdomain(nodeName)));
  }
  if (nodeSelector !== undefined) {
    set.push('`nodeSelector`');
    addErrors(errors, validateNodeSelector('spec.nodeSelector', nodeSelector));
    const terms = nodeSelector.nodeSelectorTerms ?? [];
    if (terms.length !== 1) {
      const why = 'must have exactly one node selector term';
      errors.push(invalid('spec.nodeSelector.nodeSelectorTerms', terms, why));
    }
  }
  if (allNodes === true) set.push('`allNodes`');
  if (allNodes === false) errors.push(invalid('spec.allNodes', allNodes, 'must be either unset or set to true'));
  if (set.length === 0) errors.push(required('spec', PLACES));
  if (set.length > 1) {
    errors.push(invalid('spec', `{${set.join(', ')}}`, `${PLACES}, but multiple fields are set`));
  }
  return errors;
}

function validateDevice(at: string, { name = '', attributes = {}, capacity = {} }: Loose<Device>): FieldError[] {
  const errors = syntax(`${at}.name`, name, dns1123Label(name));
  const count = Object.keys(attributes).length + Object.keys(capacity).length;
  if (count > MAX_PROPERTIES) {
    errors.push(invalid(at, count, `the total number of attributes and capacities must not exceed ${MAX_PROPERTIES}`));
  }
  for (const [key, attribute] of Object.entries(attributes)) {
    const field = `${at}.attributes[${shortened(key)}]`;
    addErrors(errors, validateQualifiedName(field, key), validateAttribute(field, attribute ?? {}));
  }
  for (const key of Object.keys(capacity)) {
    addErrors(errors, validateQualifiedName(`${at}.capacity[${shortened(key)}]`, key));
  }
  return errors;
}

/** As the real server shows a key that is longer than any valid one. */
function shortened(key: string): string {
  const longest = 96;
  if (key.length <= longest) return key;
  const shown = longest - 3;
  return `${key.slice(0, Math.floor((shown + 1) / 2))}...${key.slice(key.length - Math.floor(shown / 2))}`;
}

type Attribute = NonNullable<NonNullable<Loose<Device>['attributes']>[string]>;

function validateAttribute(at: string, attribute: Attribute): FieldError[] {
  const { string, version } = attribute;
  const errors: FieldError[] = [];
  if (string !== undefined && string.length > MAX_VALUE) errors.push(tooLong(`${at}.string`, MAX_VALUE));
  if (version !== undefined && version.length > MAX_VALUE) errors.push(tooLong(`${at}.version`, MAX_VALUE));
  else if (version !== undefined && !SEMVER.test(version)) {
    errors.push(invalid(`${at}.version`, version, 'must be a string compatible with semver.org spec 2.0.0'));
  }
  const values = Object.values(attribute).filter((value) => value !== undefined).length;
  if (values === 0) errors.push(required(at, 'exactly one value must be specified'));
  if (values > 1) errors.push(invalid(at, attribute, 'exactly one value must be specified'));
  return errors;
}

function validateSlice(object: KubeObject, old?: KubeObject): FieldError[] {
  const spec = sliceOf(object).spec ?? {};
  const before = old === undefined ? undefined : (sliceOf(old).spec ?? {});
  const { driver, pool = {}, devices } = spec;
  const { resourceSliceCount = 0, generation = 0 } = pool;
  const errors = allOf(validateDriver('spec.driver', driver), validatePoolName('spec.pool.name', pool.name));
  if (resourceSliceCount <= 0) {
    errors.push(invalid('spec.pool.resourceSliceCount', resourceSliceCount, 'must be greater than zero'));
  }
  if (generation < 0) {
    errors.push(invalid('spec.pool.generation', generation, 'must be greater than or equal to zero'));
  }
  if (before !== undefined) {
    addErrors(
      errors,
      validateImmutable('spec.pool.name', pool.name, before.pool?.name),
      validateImmutable('spec.driver', driver, before.driver),
      validateImmutable('spec.nodeName', spec.nodeName, before.nodeName),
    );
  }
  addErrors(errors, validatePlace(spec), validateSet('spec.devices', devices, MAX_DEVICES, validateDevice, BY_NAME));
  return errors;
}

export const resourceslices = defineKind({
  ...DRA,
  kind: 'ResourceSlice',
  plural: 'resourceslices',
  singular: 'resourceslice',
  namespaced: false,
  subresources: [],
  schema: 'io.k8s.api.resource.v1.ResourceSlice',
  strategy: {
    countsGenerations: true,
    applyDefaults: (object) => {
      sliceOf(object).spec ??= {};
    },
    prepareForCreate: dropDisabled,
    prepareForUpdate: dropDisabled,
    validateCreate: (object) => validateSlice(object),
    validateUpdate: validateSlice,
    selectableFields: {
      'spec.nodeName': (object) => sliceOf(object).spec?.nodeName ?? '',
      'spec.driver': (object) => sliceOf(object).spec?.driver ?? '',
    },
    table: namedTable(
      [
        text('Node', 'The node whose devices these are.'),
        text('Driver', 'The driver of the devices.'),
        text('Pool', 'The pool that the devices belong to.'),
      ],
      (object) => {
        const { nodeName = '', driver = '', pool } = sliceOf(object).spec ?? {};
        return [nodeName, driver, pool?.name ?? ''];
      },
    ),
  },
});
