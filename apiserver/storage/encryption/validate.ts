// What is wrong with an EncryptionConfiguration, in kube-apiserver's words (ValidateEncryptionConfiguration of
// k8s.io/apiserver). KMS providers, which are not there, are refused by name. Pure.

import { type EncryptionConfiguration, groupResource, type KeyConfig, type ResourceConfig } from './configuration.ts';

type Provider = NonNullable<ResourceConfig['providers']>[number];

const AES_BYTES = [16, 24, 32];
const SECRETBOX_BYTES = [32];
const WITHOUT_API = new Set(['apiserveripinfo', 'serviceipallocations', 'servicenodeportallocations']);

const invalid = (field: string, value: unknown, why: string): string =>
  `${field}: Invalid value: ${JSON.stringify(value)}: ${why}`;
const required = (field: string, why: string): string => `${field}: Required value: ${why}`;

/** One line for each fault; none for a configuration that is valid. */
export function validateEncryption({ resources = [] }: EncryptionConfiguration): readonly string[] {
  if (resources.length === 0) return [required('resources', 'at least one resources is required')];
  return resources.flatMap((config, index) => {
    const at = `resources[${index}]`;
    const names = config.resources ?? [];
    const providers = config.providers ?? [];
    const missing = (field: string): string => required(`${at}.${field}`, `at least one ${at}.${field} is required`);
    return [
      ...(names.length === 0 ? [missing('resources')] : []),
      ...validateOverlap(names, `${at}.resources`),
      ...names.flatMap((name, each) => validateName(name, `${at}.resources[${each}]`)),
      ...(providers.length === 0 ? [missing('providers')] : []),
      ...providers.flatMap((provider, each) => validateProvider(provider, `${at}.providers[${each}]`)),
    ];
  });
}

function validateOverlap(names: readonly string[], at: string): string[] {
  const all = names.map(groupResource);
  const errors: string[] = [];
  const same = all.some((one, index) =>
    all.some((other, each) => index !== each && one.group === other.group && one.plural === other.plural),
  );
  if (same) errors.push(invalid(at, names, 'the same resource cannot be specified multiple times'));
  const overlap = all.some((one, index) =>
    all.some((other, each) => {
      if (index === each || (one.group === other.group && one.plural === other.plural)) return false;
      if (one.group === '*' && one.plural === '*') return true;
      return one.group === other.group && (one.plural === '*' || other.plural === '*');
    }),
  );
  if (overlap) {
    const why =
      "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked";
    errors.push(invalid(at, names, why));
  }
  return errors;
}

function validateName(name: string, at: string): string[] {
  const why = wrongName(name);
  return why === undefined ? [] : [invalid(at, name, why)];
}

function wrongName(name: string): string | undefined {
  if (name.toLowerCase() !== name) return 'resource name should not contain capital letters';
  if (name === '*') return "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources";
  if (WITHOUT_API.has(name)) return 'resources which do not have REST API/s cannot be encrypted';
  const { group, plural } = groupResource(name);
  if (group === 'events.k8s.io') {
    return "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file";
  }
  if (group === 'extensions') return "'extensions' group has been removed and cannot be used for encryption";
  if (group === '*' && plural !== '*') return 'encrypting the same resource across groups is not supported';
  return undefined;
}

function validateProvider(provider: Provider, at: string): string[] {
  const names = Object.keys(provider);
  if (names.length === 0) {
    const why = 'provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity';
    return [invalid(at, {}, why)];
  }
  if (names.length > 1) {
    const why = 'more than one provider specified in a single element, should split into different list elements';
    return [invalid(at, names, why)];
  }
  const { aesgcm, aescbc, secretbox } = provider;
  if (aesgcm !== undefined) return validateKeys(aesgcm?.keys ?? [], `${at}.aesgcm.keys`, AES_BYTES);
  if (aescbc !== undefined) return validateKeys(aescbc?.keys ?? [], `${at}.aescbc.keys`, AES_BYTES);
  if (secretbox !== undefined) return validateKeys(secretbox?.keys ?? [], `${at}.secretbox.keys`, SECRETBOX_BYTES);
  if (provider.kms !== undefined) return [`${at}.kms: Forbidden: KMS providers are not supported by this server`];
  return [];
}

function validateKeys(keys: readonly KeyConfig[], at: string, lengths: readonly number[]): string[] {
  if (keys.length === 0) return [required(at, 'at least one keys is required')];
  return keys.flatMap((key, index) => validateKey(key, `${at}[${index}]`, lengths));
}

function validateKey({ name = '', secret = '' }: KeyConfig, at: string, lengths: readonly number[]): string[] {
  const errors = name === '' ? [required(`${at}.name`, 'name is a mandatory field for a key')] : [];
  if (secret === '') return [...errors, required(`${at}.secret`, 'secret is a mandatory field for a key')];
  const bytes = Buffer.from(secret, 'base64');
  // Node passes over what is not base64; encoding it again shows that.
  if (bytes.toString('base64') !== secret.replace(/[\r\n]/g, '')) {
    return [...errors, invalid(`${at}.secret`, 'REDACTED', 'secrets must be base64 encoded')];
  }
  if (lengths.includes(bytes.length)) return errors;
  const why = `secret is not of the expected length, got ${bytes.length}, expected one of [${lengths.join(' ')}]`;
  return [...errors, invalid(`${at}.secret`, 'REDACTED', why)];
}
