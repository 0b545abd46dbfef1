// A valid object of each kind that random values of the right types hardly ever make, without apiVersion, kind and metadata.

const POD_SPEC = {
  containers: [
    {
      ...{ name: 'c', image: 'image:1', ports: [{ containerPort: 80, name: 'http' }] },
      env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
      resources: { limits: { cpu: '1', memory: '1Gi' } },
      volumeMounts: [{ name: 'v', mountPath: '/v' }],
      livenessProbe: { httpGet: { path: '/', port: 80 } },
    },
  ],
  volumes: [{ name: 'v', configMap: { name: 'one', optional: true } }],
  tolerations: [{ key: 'a', operator: 'Exists' }],
};
const LABELS = { app: 'a' };
const selector = { matchLabels: LABELS };
const template = { metadata: { labels: LABELS }, spec: POD_SPEC };
const jobTemplate = { spec: { template: { spec: { ...POD_SPEC, restartPolicy: 'Never' } } } };
const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName: 'none' };

export const EXAMPLES: Readonly<Record<string, Record<string, unknown>>> = {
  '/pods': { spec: POD_SPEC },
  '/podtemplates': { template },
  '/services': { spec: { selector: LABELS, ports: [{ port: 80, targetPort: 'http' }] } },
  '/secrets': { type: 'Opaque', data: { key: 'AAAA' } },
  '/configmaps': { data: { key: 'value' }, binaryData: { bytes: 'AAAA' } },
  '/endpoints': { subsets: [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 80 }] }] },
  '/persistentvolumeclaims': { spec: claim },
  '/replicationcontrollers': { spec: { replicas: 1, selector: LABELS, template } },
  '/resourcequotas': { spec: { hard: { 'count/configmaps': '1000' } } },
  '/limitranges': { spec: { limits: [{ type: 'Container', max: { cpu: '64' } }] } },
  'apps/deployments': { spec: { replicas: 1, selector, template } },
  'apps/replicasets': { spec: { replicas: 1, selector, template } },
  'apps/daemonsets': { spec: { selector, template } },
  'apps/statefulsets': {
    spec: { serviceName: 'web', selector, template, volumeClaimTemplates: [{ metadata: { name: 'd' }, spec: claim }] },
  },
  'apps/controllerrevisions': { revision: 1, data: { a: 1 } },
  'batch/jobs': jobTemplate,
  'batch/cronjobs': { spec: { schedule: '*/5 * * * *', jobTemplate } },
  'autoscaling/horizontalpodautoscalers': {
    spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'one' }, maxReplicas: 3 },
  },
  'policy/poddisruptionbudgets': { spec: { minAvailable: 1, selector } },
  'networking.k8s.io/networkpolicies': { spec: { podSelector: selector, ingress: [{ ports: [{ port: 80 }] }] } },
  'networking.k8s.io/ingresses': {
    spec: {
      rules: [
        {
          http: {
            paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'one', port: { number: 80 } } } }],
          },
        },
      ],
    },
  },
  'discovery.k8s.io/endpointslices': {
    ...{ addressType: 'IPv4', ports: [{ name: 'p', port: 80 }] },
    endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: true } }],
  },
  'rbac.authorization.k8s.io/roles': { rules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }] },
  'rbac.authorization.k8s.io/rolebindings': {
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
    subjects: [{ kind: 'User', name: 'somebody' }],
  },
  'fuzz.example.com/widgets': { spec: { size: 3, replicas: 1, tags: ['a', 'b'], any: { b: 1 } } },
  // Of no namespace.
  '/nodes': { spec: { podCIDRs: ['10.0.0.0/24'] }, status: { capacity: { cpu: '1' } } },
  '/persistentvolumes': {
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/data' } },
  },
  'storage.k8s.io/storageclasses': { provisioner: 'example.com/disk' },
  'storage.k8s.io/csidrivers': { spec: { attachRequired: false } },
  'storage.k8s.io/volumeattachments': {
    spec: { attacher: 'example.com', nodeName: 'keeper', source: { persistentVolumeName: 'keeper' } },
  },
  'scheduling.k8s.io/priorityclasses': { value: 5 },
  'node.k8s.io/runtimeclasses': { handler: 'runc' },
  'networking.k8s.io/ingressclasses': { spec: { controller: 'example.com/ingress' } },
};
