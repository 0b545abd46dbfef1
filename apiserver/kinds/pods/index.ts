// Pods: the row of the table, put together from its parts.

import { defineKind } from '../metadata.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import { type Pod, podOf } from '../shapes.ts';
import { podWarnings } from '../shared/pod-warnings.ts';
import { applyPodDefaults } from './defaults.ts';
import { initialPodStatus } from './status.ts';
import { podTable } from './table.ts';
import { validatePodCreate } from './validate.ts';
import { prepareResize, validateResize } from './validate-resize.ts';
import { podStatusWarnings, validatePodStatusUpdate } from './validate-status.ts';
import { validateEphemeralContainersUpdate, validatePodUpdate } from './validate-update.ts';

function updateValidation(
  validate: (pod: Pod, old: Pod) => FieldError[],
): (pod: KubeObject, old: KubeObject) => FieldError[] {
  return (pod, old) => validate(podOf(pod), podOf(old));
}

/** Fields of features that are off. */
function dropDisabled(pod: Pod): void {
  for (const volume of pod.spec?.volumes ?? []) {
    for (const source of volume.projected?.sources ?? []) Reflect.deleteProperty(source, 'podCertificate');
  }
}

export const pods = defineKind({
  group: '',
  version: 'v1',
  kind: 'Pod',
  plural: 'pods',
  singular: 'pod',
  shortNames: ['po'],
  categories: ['all'],
  namespaced: true,
  subresources: [
    'status',
    'attach',
    'binding',
    'ephemeralcontainers',
    'eviction',
    'exec',
    'log',
    'portforward',
    'proxy',
    'resize',
  ],
  schema: 'io.k8s.api.core.v1.Pod',
  updateMeta: ['update', 'rules'],
  subresourceMeta: ['update', 'rules'],
  strategy: {
    applyDefaults: (object) => applyPodDefaults(podOf(object)),
    prepareForCreate: (object) => {
      const pod = podOf(object);
      dropDisabled(pod);
      pod.status = initialPodStatus(pod);
    },
    // The class is settled at creation; a report that leaves it out does not unsettle it.
    prepareForStatusUpdate: (object, old) => {
      const qosClass = podOf(old).status?.qosClass;
      const status = podOf(object).status;
      if (status !== undefined) status.qosClass ??= qosClass;
    },
    // Updates of pods are frequent and mostly made by programs: no warnings, as upstream.
    warnings: (object, old) => (old === undefined ? podWarnings('', podOf(object)) : []),
    statusWarnings: (object) => podStatusWarnings(podOf(object)),
    validateCreate: (object) => validatePodCreate(podOf(object)),
    validateUpdate: updateValidation(validatePodUpdate),
    validateStatusUpdate: updateValidation(validatePodStatusUpdate),
    prepareSubresource: { resize: prepareResize },
    validateSubresource: {
      ephemeralcontainers: updateValidation(validateEphemeralContainersUpdate),
      resize: updateValidation(validateResize),
    },
    resetFields: {
      '': [['status']],
      status: [['spec'], ['metadata', 'deletionTimestamp'], ['metadata', 'ownerReferences']],
    },
    ownFields: {
      ephemeralcontainers: [['spec', 'ephemeralContainers']],
      resize: ['containers', 'initContainers'].flatMap((list) => [
        ['spec', list, '*', 'resources'],
        ['spec', list, '*', 'resizePolicy'],
      ]),
    },
    // The requested period, else the pod's own; 0 for a pod that is not bound to a node or has ended.
    gracePeriodSeconds: (object, requested) => {
      const pod = podOf(object);
      const phase = pod.status?.phase;
      if ((pod.spec?.nodeName ?? '') === '' || phase === 'Succeeded' || phase === 'Failed') return 0;
      const grace = requested ?? pod.spec?.terminationGracePeriodSeconds ?? 30;
      // A negative period means "as soon as possible" (old API).
      return grace < 0 ? 1 : grace;
    },
    selectableFields: {
      'spec.nodeName': (object) => podOf(object).spec?.nodeName ?? '',
      'spec.restartPolicy': (object) => podOf(object).spec?.restartPolicy ?? '',
      'spec.schedulerName': (object) => podOf(object).spec?.schedulerName ?? '',
      'spec.serviceAccountName': (object) => podOf(object).spec?.serviceAccountName ?? '',
      'spec.hostNetwork': (object) => String(podOf(object).spec?.hostNetwork ?? false),
      'status.phase': (object) => podOf(object).status?.phase ?? '',
      'status.podIP': (object) => podOf(object).status?.podIPs?.[0]?.ip ?? podOf(object).status?.podIP ?? '',
      'status.nominatedNodeName': (object) => podOf(object).status?.nominatedNodeName ?? '',
    },
    indexedFields: ['spec.nodeName'],
    table: podTable,
  },
});
