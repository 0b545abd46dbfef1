// Rules for a pod's volumes: exactly one source each. How containers mount them is validate-mounts.ts, projected files are
// validate-projected.ts.

import { parseQuantity } from '../../../lib/quantity.ts';
import { addErrors, duplicate, forbidden, invalid, oneOf, required, syntax } from '../field-errors.ts';
import { dns1123Label, dns1123Subdomain } from '../names.ts';
import type { FieldError } from '../resource.ts';
import type { Volume } from '../shapes.ts';
import * as sources from '../shared/volume-sources.ts';
import { validateClaimTemplate } from '../storage/claim-spec.ts';
import { validateDriverName } from '../storage/shared.ts';
import { validateDownwardFiles, validateKeyFiles, validateMode } from './validate-files.ts';
import { validateProjected } from './validate-projected.ts';

const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never'];

export interface ValidatedVolumes {
  /** By name; only those that are sound, so that a mount of another one is an error, too. */
  readonly volumes: ReadonlyMap<string, Volume>;
  readonly errors: FieldError[];
}

/** `podName`: of a pod, whose ephemeral volumes have claims named after it; undefined in a template. */
export function validateVolumes(field: string, list: readonly Volume[], podName?: string): ValidatedVolumes {
  const errors: FieldError[] = [];
  const volumes = new Map<string, Volume>();
  const claims = new Set<string>();
  if (podName !== undefined) {
    for (const { ephemeral, name } of list) if (ephemeral !== undefined) claims.add(`${podName}-${name ?? ''}`);
  }
  for (const [index, volume] of list.entries()) {
    const at = `${field}[${index}]`;
    const name = volume.name ?? '';
    const own = validateSource(at, volume, podName ?? '');
    addErrors(own, name === '' ? [required(`${at}.name`)] : syntax(`${at}.name`, name, dns1123Label(name)));
    if (volumes.has(name)) own.push(duplicate(`${at}.name`, name));
    if (own.length === 0) volumes.set(name, volume);
    else addErrors(errors, own);
    const claim = volume.persistentVolumeClaim?.claimName ?? '';
    if (volume.persistentVolumeClaim !== undefined && claims.has(claim)) {
      const why = 'must not reference a PVC that gets created for an ephemeral volume';
      errors.push(invalid(`${at}.persistentVolumeClaim.claimName`, claim, why));
    }
  }
  return { volumes, errors };
}

type Kind = Exclude<keyof Volume, 'name'>;
type Rule<Name extends Kind> = (field: string, source: NonNullable<Volume[Name]>) => FieldError[];

/** In upstream's order: of several sources, the first is validated and the others are refused. */
const RULES: { readonly [Name in Kind]?: Rule<Name> } = {
  emptyDir: (field, { sizeLimit }) =>
    (parseQuantity(sizeLimit ?? '0') ?? 0n) < 0n
      ? [forbidden(`${field}.sizeLimit`, 'SizeLimit field must be a valid resource quantity')]
      : [],
  hostPath: sources.validateHostPath,
  gitRepo: sources.validateGitRepo,
  gcePersistentDisk: (field, source) => {
    const at = field.replace(/gcePersistentDisk$/, 'persistentDisk');
    return [...sources.requireTexts(at, source, ['pdName']), ...sources.validatePartition(at, source.partition)];
  },
  awsElasticBlockStore: (field, source) => [
    ...sources.requireTexts(field, source, ['volumeID']),
    ...sources.validatePartition(field, source.partition),
  ],
  secret: (field, source) => [
    ...sources.requireTexts(field, source, ['secretName']),
    ...validateKeyFiles(field, source),
  ],
  nfs: sources.validateNfs,
  iscsi: (field, source) => sources.validateIscsi(field, source),
  glusterfs: (field, source) => sources.requireTexts(field, source, ['endpoints', 'path']),
  flocker: sources.validateFlocker,
  persistentVolumeClaim: (field, source) => sources.requireTexts(field, source, ['claimName']),
  rbd: sources.validateRbd,
  cinder: (field, source) => sources.validateCinder(field, source, false),
  cephfs: sources.validateMonitors,
  quobyte: sources.validateQuobyte,
  downwardAPI: (field, source) => [
    ...validateMode(`${field}.defaultMode`, source.defaultMode),
    ...validateDownwardFiles(field, source.items ?? []),
  ],
  fc: sources.validateFc,
  flexVolume: sources.validateFlex,
  configMap: (field, source) => [...sources.requireTexts(field, source, ['name']), ...validateKeyFiles(field, source)],
  azureFile: (field, source) => sources.requireTexts(field, source, ['secretName', 'shareName']),
  vsphereVolume: (field, source) => sources.requireTexts(field, source, ['volumePath']),
  photonPersistentDisk: (field, source) => sources.requireTexts(field, source, ['pdID']),
  portworxVolume: (field, source) => sources.requireTexts(field, source, ['volumeID']),
  azureDisk: sources.validateAzureDisk,
  storageos: (field, source) => sources.validateStorageOs(field, source, false),
  projected: validateProjected,
  scaleIO: (field, source) => sources.requireTexts(field, source, ['gateway', 'system', 'volumeName']),
  csi: validateCsi,
  ephemeral: (field, { volumeClaimTemplate: template }) =>
    template === undefined
      ? [required(`${field}.volumeClaimTemplate`)]
      : validateClaimTemplate(`${field}.volumeClaimTemplate`, template),
  image: (field, { pullPolicy, reference = '' }) => [
    ...(reference === '' ? [required(`${field}.reference`)] : []),
    ...(pullPolicy === undefined ? [] : oneOf(`${field}.pullPolicy`, pullPolicy, PULL_POLICIES)),
  ],
};

function validateSource(field: string, volume: Volume, podName: string): FieldError[] {
  const errors: FieldError[] = [];
  let first: string | undefined;
  for (const kind of Object.keys(RULES)) {
    if (!isKind(kind) || volume[kind] === undefined) continue;
    if (first === undefined) addErrors(errors, validateKind(field, kind, volume));
    else errors.push(forbidden(`${field}.${MISSPELT[kind] ?? kind}`, 'may not specify more than 1 volume type'));
    if (kind === 'iscsi' && sources.isTooLongForIscsi(volume.name ?? '', volume.iscsi ?? {})) {
      errors.push(invalid(`${field}.name`, volume.name ?? '', sources.ISCSI_LENGTH));
    }
    if (kind === 'ephemeral' && first === undefined) addErrors(errors, validateClaimName(field, volume, podName));
    first ??= kind;
  }
  return first === undefined ? [required(field, 'must specify a volume type')] : errors;
}

/** As upstream names them when they are too many. */
const MISSPELT: Partial<Record<Kind, string>> = { cephfs: 'cephFS', downwardAPI: 'downwarAPI' };

function isKind(name: string): name is Kind {
  return Object.hasOwn(RULES, name);
}

function validateKind<Name extends Kind>(field: string, kind: Name, volume: Volume): FieldError[] {
  const source = volume[kind];
  const rule: Rule<Name> | undefined = RULES[kind];
  return source === undefined || source === null || rule === undefined ? [] : rule(`${field}.${kind}`, source);
}

/** The claim of an ephemeral volume is named after the pod and the volume. */
function validateClaimName(field: string, { name = '' }: Volume, podName: string): FieldError[] {
  if (podName === '' || name === '') return [];
  const claim = `${podName}-${name}`;
  return dns1123Subdomain(claim).map((message) =>
    invalid(`${field}.name`, name, `PVC name ${JSON.stringify(claim)}: ${message}`),
  );
}

function validateCsi(field: string, { driver, nodePublishSecretRef }: NonNullable<Volume['csi']>): FieldError[] {
  const errors = validateDriverName(`${field}.driver`, driver);
  if (nodePublishSecretRef === undefined) return errors;
  const { name = '' } = nodePublishSecretRef;
  return errors.concat(
    name === ''
      ? [required(`${field}.nodePublishSecretRef.name`)]
      : syntax(`${field}.name`, name, dns1123Subdomain(name)),
  );
}
