// What kubectl explain shows of resource.k8s.io, in words of our own: devices, claims for them, and what was allocated.

export interface OwnDescription {
  readonly type?: string;
  readonly fields?: Readonly<Record<string, string>>;
}

const RESOURCE = 'io.k8s.api.resource.v1';

const MODE =
  '"ExactCount": as many as count; "All": all devices that fit, which must all be free. Default: ExactCount.';
const COUNT = 'How many devices, with the mode ExactCount. Default: 1.';
const CLASS = 'The DeviceClass, whose selectors count as well.';
const SELECTORS = 'What a device must be like; all of them must hold.';
const TOLERATIONS = 'Taints of devices that are accepted.';
const CAPACITY = 'How much of a device is wanted, where it can be shared.';
const REQUESTS = 'The requests that this is for, by name; "main/sub" is one of a list of alternatives. None: all.';
const CONFIG = 'Settings for drivers, which are passed on unread.';
const OPAQUE = 'Settings of one driver.';
const ON_NODE = 'Exactly one of nodeName, nodeSelector and allNodes is set, or perDeviceNodeSelection of the slice.';
const SHARE = 'Which share of the device, where several have it.';
const BINDING = 'Conditions that must all be true before the pod is bound to its node.';
const BINDING_FAILURE = 'Conditions of which one that is true ends the attempt to bind the pod.';

export const DEVICE_DESCRIPTIONS: Readonly<Record<string, OwnDescription>> = {
  [`${RESOURCE}.AllocatedDeviceStatus`]: {
    type: 'What a driver reports of a device that is allocated.',
    fields: {
      data: 'Anything that the driver reports, at most 10 KiB.',
      device: 'The device, in its pool.',
      driver: 'The driver.',
      networkData: 'For a device of the network, what pods and others need to know of it.',
      pool: 'The pool of the device.',
      shareID: SHARE,
    },
  },
  [`${RESOURCE}.AllocationResult`]: {
    type: 'What was allocated for a claim.',
    fields: {
      allocationTimestamp: 'When.',
      devices: 'The devices.',
      nodeSelector: 'The nodes where the devices can be used. None: all.',
    },
  },
  [`${RESOURCE}.CELDeviceSelector`]: {
    type: 'A condition in CEL on one device.',
    fields: { expression: 'True for a device that fits. `device` has driver, attributes and capacity.' },
  },
  [`${RESOURCE}.CapacityRequestPolicy`]: {
    type: 'Which amounts of a capacity can be requested; others are rounded up. Either values or a range.',
    fields: {
      default: 'The amount for a request that names none.',
      validRange: 'The amounts as a range.',
      validValues: 'The amounts, in rising order, at most ten.',
    },
  },
  [`${RESOURCE}.CapacityRequestPolicyRange`]: {
    type: 'Amounts from a least one on.',
    fields: { max: 'The most. None: the whole capacity.', min: 'The least.', step: 'The distance of two amounts.' },
  },
  [`${RESOURCE}.CapacityRequirements`]: {
    type: 'How much of a device is wanted.',
    fields: { requests: 'Amounts by the name of the capacity.' },
  },
  [`${RESOURCE}.Counter`]: { type: 'An amount that devices share.', fields: { value: 'How much there is.' } },
  [`${RESOURCE}.CounterSet`]: {
    type: 'Amounts from which several devices of a pool take, so that not all of them can be used at a time.',
    fields: { counters: 'Amounts by name.', name: 'The name of the set, in its pool.' },
  },
  [`${RESOURCE}.Device`]: {
    type: 'One device of a pool.',
    fields: {
      allNodes: `Whether all nodes can use the device. ${ON_NODE}`,
      allowMultipleAllocations: 'Whether several claims may have the device at a time.',
      attributes: 'Properties by name, for selectors. At most 32 together with capacities.',
      bindingConditions: BINDING,
      bindingFailureConditions: BINDING_FAILURE,
      bindsToNode: 'Whether a claim with this device can be used on the chosen node alone.',
      capacity: 'Amounts by name, for selectors and requests.',
      consumesCounters: 'What the device takes of the shared counters of its pool.',
      name: 'The name, in its pool.',
      nodeName: `The node of the device. ${ON_NODE}`,
      nodeSelector: `The nodes that can use the device. ${ON_NODE}`,
      taints: 'What keeps claims away from the device, unless they tolerate it.',
    },
  },
  [`${RESOURCE}.DeviceAllocationConfiguration`]: {
    type: 'Settings of an allocation, and where they come from.',
    fields: { opaque: OPAQUE, requests: REQUESTS, source: '"FromClass" or "FromClaim".' },
  },
  [`${RESOURCE}.DeviceAllocationResult`]: {
    type: 'The devices of a claim and their settings.',
    fields: { config: `${CONFIG} Those of classes come first.`, results: 'Each device, with its request.' },
  },
  [`${RESOURCE}.DeviceAttribute`]: {
    type: 'The value of a property: exactly one of these.',
    fields: {
      bool: 'True or false.',
      int: 'A number.',
      string: 'A text of at most 64 characters.',
      version: 'A semantic version.',
    },
  },
  [`${RESOURCE}.DeviceCapacity`]: {
    type: 'How much a device has of something.',
    fields: {
      requestPolicy: 'Which parts of it can be requested, where the device can be shared.',
      value: 'All of it.',
    },
  },
  [`${RESOURCE}.DeviceClaim`]: {
    type: 'Which devices are wanted.',
    fields: {
      config: CONFIG,
      constraints: 'What devices of several requests must have in common.',
      requests: 'Each is for one kind of device, and all of them must be met.',
    },
  },
  [`${RESOURCE}.DeviceClaimConfiguration`]: {
    type: 'Settings for the devices of some requests.',
    fields: { opaque: OPAQUE, requests: REQUESTS },
  },
  [`${RESOURCE}.DeviceClass`]: { type: 'A kind of device that claims name, made by the administrator of the cluster.' },
  [`${RESOURCE}.DeviceClassConfiguration`]: {
    type: 'Settings for all devices that are allocated through a class.',
    fields: { opaque: OPAQUE },
  },
  [`${RESOURCE}.DeviceClassSpec`]: {
    type: 'Which devices are in the class, and how they are set up.',
    fields: {
      config: CONFIG,
      extendedResourceName: 'The extended resource by which pods may request devices of the class.',
      selectors: SELECTORS,
    },
  },
  [`${RESOURCE}.DeviceConstraint`]: {
    type: 'What must hold for the devices of several requests together.',
    fields: {
      distinctAttribute: 'An attribute that no two of the devices have in common.',
      matchAttribute: 'An attribute that all of the devices have in common.',
      requests: REQUESTS,
    },
  },
  [`${RESOURCE}.DeviceCounterConsumption`]: {
    type: 'What a device takes of one set of counters.',
    fields: { counterSet: 'The set, in the same pool.', counters: 'How much, by the name of the counter.' },
  },
  [`${RESOURCE}.DeviceRequest`]: {
    type: 'A request for devices: exactly what is wanted, or a list of alternatives.',
    fields: {
      exactly: 'What is wanted.',
      firstAvailable: 'Alternatives, of which the first one that can be had is allocated.',
      name: 'The name, by which containers, constraints and settings know the request.',
    },
  },
  [`${RESOURCE}.DeviceRequestAllocationResult`]: {
    type: 'One device of a claim.',
    fields: {
      adminAccess: 'Whether the device is for administration, beside those who use it.',
      bindingConditions: BINDING,
      bindingFailureConditions: BINDING_FAILURE,
      consumedCapacity: 'How much of a shared device the claim has.',
      device: 'The device, in its pool.',
      driver: 'The driver.',
      pool: 'The pool of the device.',
      request: 'The request, or "main/sub" for one of its alternatives.',
      shareID: SHARE,
      tolerations: 'Those of the request at the time of the allocation.',
    },
  },
  [`${RESOURCE}.DeviceSelector`]: { type: 'A condition on one device.', fields: { cel: 'The condition in CEL.' } },
  [`${RESOURCE}.DeviceSubRequest`]: {
    type: 'One of the alternatives of a request.',
    fields: {
      allocationMode: MODE,
      capacity: CAPACITY,
      count: COUNT,
      deviceClassName: CLASS,
      name: 'The name, among the alternatives.',
      selectors: SELECTORS,
      tolerations: TOLERATIONS,
    },
  },
  [`${RESOURCE}.DeviceTaint`]: {
    type: 'What keeps claims away from a device.',
    fields: {
      effect: '"NoSchedule": it is not allocated; "NoExecute": and pods that use it are evicted.',
      key: 'The key, like that of a label.',
      timeAdded: 'When the taint was added.',
      value: 'The value, like that of a label.',
    },
  },
  [`${RESOURCE}.DeviceToleration`]: {
    type: 'Taints that are accepted.',
    fields: {
      effect: 'The effect. None: all effects.',
      key: 'The key of the taint. None, with the operator Exists: all keys.',
      operator: '"Equal": the value is that of the taint; "Exists": whatever the value. Default: Equal.',
      tolerationSeconds: 'How long a taint with the effect NoExecute is accepted. None: for good.',
      value: 'The value of the taint, with the operator Equal.',
    },
  },
  [`${RESOURCE}.ExactDeviceRequest`]: {
    type: 'What is wanted, without alternatives.',
    fields: {
      adminAccess:
        'Whether access for administration is wanted, beside those who use the devices. The namespace must allow it.',
      allocationMode: MODE,
      capacity: CAPACITY,
      count: COUNT,
      deviceClassName: CLASS,
      selectors: SELECTORS,
      tolerations: TOLERATIONS,
    },
  },
  [`${RESOURCE}.NetworkDeviceData`]: {
    type: 'What a device of the network is in its pod.',
    fields: {
      hardwareAddress: 'Its MAC address.',
      interfaceName: 'The name of the interface in the pod.',
      ips: 'Its addresses, with the lengths of their prefixes.',
    },
  },
  [`${RESOURCE}.OpaqueDeviceConfiguration`]: {
    type: 'Settings that a driver alone understands.',
    fields: {
      driver: 'The driver.',
      parameters: 'The settings: any object, with apiVersion and kind, at most 10 KiB.',
    },
  },
  [`${RESOURCE}.ResourceClaim`]: { type: 'A claim for devices, which pods share or have for themselves.' },
  [`${RESOURCE}.ResourceClaimConsumerReference`]: {
    type: 'Who uses a claim, in its namespace.',
    fields: {
      apiGroup: 'The group; empty for the core group.',
      name: 'The name.',
      resource: 'The resource, as "pods".',
      uid: 'The uid: one object and no later one of its name.',
    },
  },
  [`${RESOURCE}.ResourceClaimSpec`]: {
    type: 'What is claimed. Cannot be changed.',
    fields: { devices: 'Which devices are wanted.' },
  },
  [`${RESOURCE}.ResourceClaimStatus`]: {
    type: 'What a claim has, and who uses it.',
    fields: {
      allocation: 'What was allocated. None: nothing yet.',
      devices: 'What drivers report of the devices.',
      reservedFor: 'Who may use the claim now, at most 256. It is not deallocated before all of them have gone.',
    },
  },
  [`${RESOURCE}.ResourceClaimTemplate`]: { type: 'What claims are made from, one for each pod.' },
  [`${RESOURCE}.ResourceClaimTemplateSpec`]: {
    type: 'The claims that are made.',
    fields: { metadata: 'Labels and annotations of the claims.', spec: 'Their spec. Cannot be changed.' },
  },
  [`${RESOURCE}.ResourcePool`]: {
    type: 'The pool that a slice is a part of.',
    fields: {
      generation: 'Goes up with each change of the pool; slices with a smaller number are not used.',
      name: 'The name, often that of the node.',
      resourceSliceCount: 'How many slices of this generation the pool has; it is not used before all are there.',
    },
  },
  [`${RESOURCE}.ResourceSlice`]: { type: 'Devices of one pool, as their driver publishes them.' },
  [`${RESOURCE}.ResourceSliceSpec`]: {
    type: 'Devices or counters, and who can use them.',
    fields: {
      allNodes: `Whether all nodes can use the devices. ${ON_NODE}`,
      devices: 'The devices, at most 128. Either these or shared counters.',
      driver: 'The driver, by a DNS name. Cannot be changed.',
      nodeName: `The node of the devices. Cannot be changed. ${ON_NODE}`,
      nodeSelector: `The nodes that can use the devices. ${ON_NODE}`,
      perDeviceNodeSelection: 'Whether each device has nodes of its own.',
      pool: 'The pool.',
      sharedCounters: 'Counters from which devices of the pool take.',
    },
  },
};
