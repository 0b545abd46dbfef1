// Rules for the status of a ResourceClaim: what was allocated to it, who uses it, and what drivers report about the devices.

import { sameJson } from '../../../lib/same-json.ts';
import {
  addErrors,
  forbidden,
  IMMUTABLE,
  invalid,
  notSupported,
  required,
  syntax,
  tooLong,
  tooMany,
} from '../field-errors.ts';
import { dns1123Label } from '../names.ts';
import { validateNodeSelector } from '../pods/validate-scheduling.ts';
import type { FieldError } from '../resource.ts';
import type { Loose, Of } from '../shapes.ts';
import { interfaceAddress } from '../shared/addresses.ts';
import { validateConditions } from '../shared/conditions.ts';
import { allOf } from '../shared/counts.ts';
import {
  BY_ITSELF,
  MAX_ITEMS,
  validateConfiguration,
  validateDriver,
  validateList,
  validateParameters,
  validatePoolName,
  validateSet,
} from './rules.ts';
import type { Allocation, ClaimSpec, ClaimStatus, DeviceRef, DeviceStatus } from './types.ts';
import { requestNames, validateRequestRef } from './validate-claim.ts';

type Claim = Of<{ spec?: ClaimSpec; status?: ClaimStatus }>;
const MAX_CONSUMERS = 256;
const MAX_CONDITIONS = 8;
const MAX_IPS = 16;
const MAX_INTERFACE_NAME = 256;
const MAX_HARDWARE_ADDRESS = 128;
const SOURCES = ['FromClaim', 'FromClass'];

export const deviceKey = ({ driver = '', pool = '', device = '' }: Loose<DeviceRef>): string =>
  `${driver}/${pool}/${device}`;

export function validateClaimStatus(claim: Claim, old: Claim): FieldError[] {
  const { reservedFor = [], allocation, devices } = claim.status ?? {};
  const allocated = new Set((allocation?.devices?.results ?? []).map(deviceKey));
  const before = old.status?.allocation;
  return allOf(
    validateSet('status.reservedFor', reservedFor, MAX_CONSUMERS, validateConsumer, {
      of: ({ uid = '' }) => uid,
      field: 'uid',
    }),
    validateSet(
      'status.devices',
      devices,
      Number.POSITIVE_INFINITY,
      (at, device) => validateDevice(at, device, allocated),
      { of: deviceKey, field: 'deviceID' },
    ),
    validateReserved(claim, old),
    allocation === undefined || before !== undefined
      ? []
      : validateAllocation('status.allocation', allocation, requestNames(claim.spec)),
    allocation === undefined || before === undefined || sameJson(allocation, before)
      ? []
      : [invalid('status.allocation', allocation, IMMUTABLE)],
  );
}

function validateReserved(claim: Claim, old: Claim): FieldError[] {
  const { reservedFor = [], allocation } = claim.status ?? {};
  const field = 'status.reservedFor';
  if (reservedFor.length === 0) return [];
  if (allocation === undefined) return [forbidden(field, 'may not be specified when `allocated` is not set')];
  const known = old.status?.reservedFor ?? [];
  const added = reservedFor.some((one) => !known.some((other) => sameJson(one, other)));
  if (claim.metadata.deletionTimestamp === undefined || !added) return [];
  const why = 'new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set';
  return [forbidden(field, why)];
}

function validateConsumer(
  at: string,
  consumer: { resource?: string | undefined; name?: string | undefined; uid?: string | undefined },
) {
  return (['resource', 'name', 'uid'] as const).flatMap((field) =>
    (consumer[field] ?? '') === '' ? [required(`${at}.${field}`)] : [],
  );
}

function validateRef(at: string, { driver, pool, device = '' }: Loose<DeviceRef>): FieldError[] {
  return [
    ...validateDriver(`${at}.driver`, driver),
    ...validatePoolName(`${at}.pool`, pool),
    ...syntax(`${at}.device`, device, dns1123Label(device)),
  ];
}

function validateAllocation(at: string, allocation: Loose<Allocation>, names: ReadonlySet<string>): FieldError[] {
  const { devices = {}, nodeSelector } = allocation;
  const field = `${at}.devices`;
  return allOf(
    validateList(`${field}.results`, devices.results, MAX_ITEMS, (one, result) => [
      ...validateRequestRef(`${one}.request`, result.request ?? '', names),
      ...validateRef(one, result),
    ]),
    validateList(`${field}.config`, devices.config, 2 * MAX_ITEMS, (one, { source = '', requests, opaque }) => [
      ...validateSource(`${one}.source`, source),
      ...validateSet(
        `${one}.requests`,
        requests,
        MAX_ITEMS,
        (place, name) => validateRequestRef(place, name, names),
        BY_ITSELF,
      ),
      ...validateConfiguration(one, { opaque }, false),
    ]),
    nodeSelector === undefined ? [] : validateNodeSelector(`${at}.nodeSelector`, nodeSelector),
  );
}

function validateSource(field: string, source: string): FieldError[] {
  if (source === '') return [required(field)];
  return SOURCES.includes(source) ? [] : [notSupported(field, source, SOURCES)];
}

function validateDevice(at: string, device: Loose<DeviceStatus>, allocated: ReadonlySet<string>): FieldError[] {
  const { conditions = [], data, networkData = {} } = device;
  const errors = validateRef(at, device);
  const key = deviceKey(device);
  if (!allocated.has(key)) errors.push(invalid(at, key, 'must be an allocated device in the claim'));
  if (conditions.length > MAX_CONDITIONS) {
    errors.push(tooMany(`${at}.conditions`, conditions.length, MAX_CONDITIONS));
  }
  addErrors(errors, validateConditions(`${at}.conditions`, conditions));
  if (data !== undefined) addErrors(errors, validateParameters(`${at}.data`, data, false));
  const { interfaceName = '', hardwareAddress = '', ips } = networkData;
  const field = `${at}.networkData`;
  if (interfaceName.length > MAX_INTERFACE_NAME) errors.push(tooLong(`${field}.interfaceName`, MAX_INTERFACE_NAME));
  if (hardwareAddress.length > MAX_HARDWARE_ADDRESS) {
    errors.push(tooLong(`${field}.hardwareAddress`, MAX_HARDWARE_ADDRESS));
  }
  return errors.concat(
    validateSet(`${field}.ips`, ips, MAX_IPS, (one, ip) => syntax(one, ip, interfaceAddress(ip)), BY_ITSELF),
  );
}
