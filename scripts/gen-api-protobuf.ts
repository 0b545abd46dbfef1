// Writes apiserver/gen/protobuf.json: the field numbers by which Kubernetes clients encode objects as protobuf. Reads the
// `generated.proto` files of k8s.io/api, k8s.io/apimachinery, k8s.io/apiextensions-apiserver and k8s.io/kube-aggregator from a
// directory, named <group>.<version>.proto.
//
//     sh scripts/node24 scripts/gen-api-protobuf.ts DIRECTORY

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { definitions } from '../apiserver/schema/definitions.ts';

/** Message → field number → "<name>:<type>"; a name of "" is a struct whose fields are inlined in its owner. */
type Messages = Record<string, Record<string, string>>;

const ROOTS = [
  ...['Namespace', 'Pod', 'Node', 'Event', 'ConfigMap', 'Secret', 'Service', 'ServiceAccount', 'Endpoints', 'Binding'],
  ...['PersistentVolume', 'PersistentVolumeClaim', 'ReplicationController', 'PodTemplate', 'ComponentStatus'],
  ...['LimitRange', 'ResourceQuota'],
]
  .map((kind) => `core.v1.${kind}`)
  .concat(
    ['TokenReview', 'SelfSubjectReview', 'TokenRequest'].map((kind) => `authentication.v1.${kind}`),
    ['SubjectAccessReview', 'LocalSubjectAccessReview', 'SelfSubjectAccessReview', 'SelfSubjectRulesReview'].map(
      (kind) => `authorization.v1.${kind}`,
    ),
    ['coordination.v1.Lease', 'events.v1.Event', 'discovery.v1.EndpointSlice', 'node.v1.RuntimeClass'],
    ['CSIDriver', 'CSINode', 'CSIStorageCapacity', 'StorageClass', 'VolumeAttachment'].map(
      (kind) => `storage.v1.${kind}`,
    ),
    ['ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding'].map((kind) => `rbac.v1.${kind}`),
    ['certificates.v1.CertificateSigningRequest', 'certificates.v1beta1.ClusterTrustBundle'],
    ['scheduling.v1.PriorityClass', 'policy.v1.Eviction', 'autoscaling.v1.Scale', 'meta.v1.DeleteOptions'],
    ['Deployment', 'ReplicaSet', 'StatefulSet', 'DaemonSet', 'ControllerRevision'].map((kind) => `apps.v1.${kind}`),
    ['batch.v1.Job', 'batch.v1.CronJob', 'policy.v1.PodDisruptionBudget', 'storage.v1.VolumeAttributesClass'],
    ['autoscaling.v1.HorizontalPodAutoscaler', 'autoscaling.v2.HorizontalPodAutoscaler'],
    ['NetworkPolicy', 'Ingress', 'IngressClass', 'ServiceCIDR', 'IPAddress'].map((kind) => `networking.v1.${kind}`),
    ['DeviceClass', 'ResourceClaim', 'ResourceClaimTemplate', 'ResourceSlice'].map((kind) => `resource.v1.${kind}`),
    [
      'MutatingWebhookConfiguration',
      'ValidatingWebhookConfiguration',
      'ValidatingAdmissionPolicy',
      'ValidatingAdmissionPolicyBinding',
    ].map((kind) => `admissionregistration.v1.${kind}`),
    ['flowcontrol.v1.FlowSchema', 'flowcontrol.v1.PriorityLevelConfiguration'],
    ['apiextensions.v1.CustomResourceDefinition', 'apiregistration.v1.APIService'],
    ['Status', 'ListMeta', 'PartialObjectMetadata'].map((kind) => `meta.v1.${kind}`),
  );
const SPECIAL: Record<string, string> = {
  'meta.v1.Time': 'time',
  'meta.v1.MicroTime': 'time',
  'meta.v1.Duration': 'duration',
  'meta.v1.FieldsV1': 'raw',
  Quantity: 'quantity',
  IntOrString: 'intstr',
  RawExtension: 'raw',
  // What JSON spells as one value and protobuf as a message of two fields.
  'apiextensions.v1.JSON': 'raw',
  'apiextensions.v1.JSONSchemaPropsOrArray': 'or-list:apiextensions.v1.JSONSchemaProps',
  'apiextensions.v1.JSONSchemaPropsOrStringArray': 'or-strings:apiextensions.v1.JSONSchemaProps',
  'apiextensions.v1.JSONSchemaPropsOrBool': 'or-bool:apiextensions.v1.JSONSchemaProps',
};
/** Embedded structs by the names that protobuf gives them. */
const INLINE = [
  'handler',
  'localObjectReference',
  'ingressRuleValue',
  'deviceConfiguration',
  'rule',
  'ruleWithOperations',
];
const SCALARS = ['string', 'bool', 'bytes', 'int32', 'int64', 'double'];

function messageName(reference: string, current: string): string {
  const parts = reference.replace(/^\./, '').split('.');
  const name = parts.at(-1) ?? '';
  if (parts.length === 1) return `${current}.${name}`;
  const version = parts.at(-2) ?? '';
  return /^v\d/.test(version) ? `${parts.at(-3)}.${version}.${name}` : name;
}

function typeOf(text: string, current: string): string {
  const map = /^map<\s*string,\s*(.+)>$/.exec(text);
  if (map?.[1] !== undefined) return `map:${typeOf(map[1], current)}`;
  if (SCALARS.includes(text)) return text;
  const name = messageName(text, current);
  return SPECIAL[name] ?? `#${name}`;
}

function parse(text: string, current: string): Messages {
  const messages: Messages = {};
  let message = '';
  let fields: Record<string, string> | undefined;
  for (const line of text.split('\n').map((l) => l.trim())) {
    const start = /^message (\w+) \{(\})?/.exec(line);
    if (start?.[1] !== undefined) {
      fields = {};
      message = `${current}.${start[1]}`;
      messages[message] = fields;
      if (start[2] !== undefined) fields = undefined;
      continue;
    }
    if (line === '}') fields = undefined;
    const field = /^(optional |repeated |)(map<.+>|[.\w]+) (\w+) = (\d+)/.exec(line);
    if (field === null || fields === undefined) continue;
    const [, label = '', type = '', name = '', number = ''] = field;
    fields[number] = `${jsonName(name, message)}:${label === 'repeated ' ? '[]' : ''}${typeOf(type, current)}`;
  }
  return messages;
}

/** Names that JSON spells otherwise: uid, apiGroup, in one group those that begin with a capital, and those of JSON Schema's own. */
function jsonName(name: string, message: string): string {
  if (name === 'uID') return 'uid';
  if (name === 'aPIGroup') return 'apiGroup';
  if (message === 'apiextensions.v1.JSONSchemaProps') {
    if (name === 'ref' || name === 'schema') return `$${name}`;
    if (name.startsWith('xKubernetes')) return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  }
  return message.startsWith('admissionregistration.') ? name.charAt(0).toLowerCase() + name.slice(1) : name;
}

/** The definitions' names are longer: "io.k8s.api.core.v1.Pod". */
function jsonFields(message: string): readonly string[] | undefined {
  const all = definitions();
  const packages = ['api', 'apimachinery.pkg.apis', 'apiextensions-apiserver.pkg.apis', 'kube-aggregator.pkg.apis'];
  const found = packages.map((each) => all[`io.k8s.${each}.${message}`]).find((each) => each !== undefined);
  return found === undefined ? undefined : Object.keys(found.fields);
}

function main(directory: string): void {
  const all: Messages = {};
  for (const file of readdirSync(directory).filter((name) => name.endsWith('.proto'))) {
    Object.assign(all, parse(readFileSync(join(directory, file), 'utf8'), file.replace(/\.proto$/, '')));
  }
  const wrapsStrings = (message: string): boolean => {
    const fields = Object.values(all[message] ?? {});
    return fields.length === 1 && fields[0] === 'items:[]string';
  };
  const kept: Messages = {};
  const queue = [...ROOTS];
  for (let message = queue.shift(); message !== undefined; message = queue.shift()) {
    const fields = all[message];
    if (fields === undefined) throw new RangeError(`no message ${message} under ${directory}`);
    if (kept[message] !== undefined) continue;
    const known = jsonFields(message);
    const out: Record<string, string> = {};
    kept[message] = out;
    for (const [number, text] of Object.entries(fields)) {
      const at = text.indexOf(':');
      const name = text.slice(0, at);
      let type = text.slice(at + 1);
      const reference = /#(.+)$/.exec(type)?.[1];
      if (reference !== undefined && wrapsStrings(reference)) type = type.replace(/#.+$/, 'strings');
      else if (reference !== undefined) queue.push(reference);
      const inline = type.startsWith('#') && known !== undefined && !known.includes(name);
      // A field that is newer than the schema stays under its own name; decoding then reports it as unknown.
      out[number] =
        `${inline && (name.endsWith('Source') || name.endsWith('Common') || INLINE.includes(name)) ? '' : name}:${type}`;
    }
  }
  const sorted = Object.fromEntries(Object.entries(kept).sort(([a], [b]) => (a < b ? -1 : 1)));
  const lines = Object.entries(sorted).map(([name, fields]) => `${JSON.stringify(name)}: ${JSON.stringify(fields)}`);
  writeFileSync(new URL('../apiserver/gen/protobuf.json', import.meta.url), `{\n${lines.join(',\n')}\n}\n`);
}

const [directory] = process.argv.slice(2);
if (directory === undefined) throw new RangeError('usage: gen-api-protobuf.ts DIRECTORY');
main(directory);
