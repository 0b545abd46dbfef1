// Pods: the row of the table, put together from its parts.

import { defineKind } from '../metadata.ts';
import { podOf } from '../shapes.ts';
import { admitPod } from './admission.ts';
import { applyPodDefaults } from './defaults.ts';
import { initialPodStatus } from './status.ts';
import { podTable } from './table.ts';
import { validatePod } from './validate.ts';
import { prepareResize, validateResize } from './validate-resize.ts';
import { validateEphemeralContainersUpdate, validatePodStatusUpdate, validatePodUpdate } from './validate-update.ts';

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
  strategy: {
    applyDefaults: (object) => applyPodDefaults(podOf(object)),
    admitCreate: (object, context) => admitPod(podOf(object), context),
    prepareForCreate: (object) => {
      const pod = podOf(object);
      pod.status = initialPodStatus(pod);
    },
    // The class is settled at creation; a report that leaves it out does not unsettle it.
    prepareForStatusUpdate: (object, old) => {
      const qosClass = podOf(old).status?.qosClass;
      const status = podOf(object).status;
      if (status !== undefined) status.qosClass ??= qosClass;
    },
    validateCreate: (object) => validatePod(podOf(object)),
    validateUpdate: (object, old) => validatePodUpdate(podOf(object), podOf(old)),
    validateStatusUpdate: (object, old) => validatePodStatusUpdate(podOf(object), podOf(old)),
    prepareSubresource: { resize: prepareResize },
    validateSubresource: {
      ephemeralcontainers: (object, old) => validateEphemeralContainersUpdate(podOf(object), podOf(old)),
      resize: (object, old) => validateResize(podOf(object), podOf(old)),
    },
    // The caller's wish, else the pod's own; a pod that no node has, or that has ended, has nothing to wait for.
    gracePeriodSeconds: (object, requested) => {
      const pod = podOf(object);
      const phase = pod.status?.phase;
      if ((pod.spec?.nodeName ?? '') === '' || phase === 'Succeeded' || phase === 'Failed') return 0;
      const grace = requested ?? pod.spec?.terminationGracePeriodSeconds ?? 30;
      // Negative stands for "as soon as can be" in pods of old.
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
    table: podTable,
  },
});
