// The types of resource.k8s.io/v1 as the kinds here read them. Fields of features that are off by default are dropped before
// anything is stored, and stand here only to be dropped.

import type { NodeSelector } from 'kubernetes-types/core/v1';
import type { KubeObject } from '../resource.ts';
import { as, type Of } from '../shapes.ts';
import type { Condition } from '../shared/conditions.ts';

export interface Selector {
  cel?: { expression?: string };
}

export interface Toleration {
  key?: string;
  operator?: string;
  value?: string;
  effect?: string;
}

/** Of a request, or of one of several that would do. */
export interface DeviceChoice {
  deviceClassName?: string;
  selectors?: Selector[];
  allocationMode?: string;
  count?: number;
  adminAccess?: boolean;
  tolerations?: Toleration[];
  capacity?: object;
}

export interface Request {
  name?: string;
  exactly?: DeviceChoice;
  firstAvailable?: (DeviceChoice & { name?: string })[];
}

export interface Configuration {
  opaque?: { driver?: string; parameters?: unknown };
}

export interface ClaimSpec {
  devices?: {
    requests?: Request[];
    constraints?: { requests?: string[]; matchAttribute?: string; distinctAttribute?: string }[];
    config?: (Configuration & { requests?: string[] })[];
  };
}

export interface DeviceRef {
  driver?: string;
  pool?: string;
  device?: string;
  shareID?: string;
}

export interface Result extends DeviceRef {
  request?: string;
  adminAccess?: boolean;
  consumedCapacity?: object;
  tolerations?: Toleration[];
  bindingConditions?: string[];
  bindingFailureConditions?: string[];
}

export interface Allocation {
  devices?: { results?: Result[]; config?: (Configuration & { source?: string; requests?: string[] })[] };
  nodeSelector?: NodeSelector;
  allocationTimestamp?: string;
}

export interface DeviceStatus extends DeviceRef {
  conditions?: Condition[];
  data?: unknown;
  networkData?: { interfaceName?: string; ips?: string[]; hardwareAddress?: string };
}

export interface ClaimStatus {
  allocation?: Allocation;
  reservedFor?: { apiGroup?: string; resource?: string; name?: string; uid?: string }[];
  devices?: DeviceStatus[];
}

interface ResourceClaim {
  spec?: ClaimSpec;
  status?: ClaimStatus;
}

interface ResourceClaimTemplate {
  spec?: {
    metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> };
    spec?: ClaimSpec;
  };
}

interface DeviceClass {
  spec?: { selectors?: Selector[]; config?: Configuration[]; extendedResourceName?: string };
}

export interface Device {
  name?: string;
  attributes?: Record<string, { int?: number; bool?: boolean; string?: string; version?: string }>;
  capacity?: Record<string, { value?: string; requestPolicy?: object }>;
  nodeName?: string;
  nodeSelector?: NodeSelector;
  allNodes?: boolean;
  taints?: object[];
  consumesCounters?: object[];
  allowMultipleAllocations?: boolean;
  bindsToNode?: boolean;
  bindingConditions?: string[];
  bindingFailureConditions?: string[];
}

interface ResourceSlice {
  spec?: {
    driver?: string;
    pool?: { name?: string; generation?: number; resourceSliceCount?: number };
    nodeName?: string;
    nodeSelector?: NodeSelector;
    allNodes?: boolean;
    perDeviceNodeSelection?: boolean;
    devices?: Device[];
    sharedCounters?: object[];
  };
}

export const claimOf = (object: KubeObject): Of<ResourceClaim> => as<ResourceClaim>(object, 'ResourceClaim');
export const templateOf = (object: KubeObject): Of<ResourceClaimTemplate> =>
  as<ResourceClaimTemplate>(object, 'ResourceClaimTemplate');
export const classOf = (object: KubeObject): Of<DeviceClass> => as<DeviceClass>(object, 'DeviceClass');
export const sliceOf = (object: KubeObject): Of<ResourceSlice> => as<ResourceSlice>(object, 'ResourceSlice');

export const DRA = { group: 'resource.k8s.io', version: 'v1' } as const;
