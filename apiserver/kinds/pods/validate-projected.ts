// Rules for projected volumes: files from several sources in one directory.

import { addErrors, forbidden, invalid, required } from '../field-errors.ts';
import type { FieldError } from '../resource.ts';
import type { Volume } from '../shapes.ts';
import { validateLabelSelector } from '../shared/selectors.ts';
import { bundleName, validateSignerName } from '../shared/signers.ts';
import { validateDownwardFiles, validateFilePath, validateKeyFile, validateMode } from './validate-files.ts';

type Projected = NonNullable<Volume['projected']>;
type Source = NonNullable<Projected['sources']>[number];
/** Takes a path of a file; an error where another file has it. */
type TakePath = (path: string | undefined, shown?: string) => FieldError[];

export function validateProjected(field: string, { defaultMode, sources = [] }: Projected): FieldError[] {
  const errors = validateMode(`${field}.defaultMode`, defaultMode);
  const taken = new Set<string>();
  const take: TakePath = (path = '', shown = path) => {
    if (!taken.has(path)) {
      taken.add(path);
      return [];
    }
    return [invalid(field, shown, 'conflicting duplicate paths')];
  };
  for (const [index, source] of sources.entries()) {
    const at = `${field}.sources[${index}]`;
    addErrors(errors, validateKeys(at, source, take));
    addErrors(errors, validateOwnFields(at, source, take));
    addErrors(errors, validateToken(field, at, source));
    if (source.clusterTrustBundle !== undefined) {
      addErrors(errors, validateBundle(`${at}.clusterTrustBundle`, source.clusterTrustBundle, take));
    }
    if (Object.values(source).filter((value) => value !== undefined).length > 1) {
      errors.push(forbidden(at, 'may not specify more than 1 volume type per source'));
    }
  }
  return errors;
}

function validateKeys(at: string, source: Source, take: TakePath): FieldError[] {
  const errors: FieldError[] = [];
  for (const kind of ['secret', 'configMap'] as const) {
    const files = source[kind];
    if (files === undefined) continue;
    const { name = '', items = [] } = files;
    if (name === '') errors.push(required(`${at}.${kind}.name`));
    for (const [index, item] of items.entries()) {
      addErrors(errors, validateKeyFile(`${at}.${kind}.items[${index}]`, item));
      if ((item.path ?? '') !== '') addErrors(errors, take(item.path, name));
    }
  }
  return errors;
}

function validateOwnFields(at: string, { downwardAPI }: Source, take: TakePath): FieldError[] {
  return (downwardAPI?.items ?? []).flatMap((item) => [
    ...validateDownwardFiles(`${at}.downwardAPI`, [item]),
    ...((item.path ?? '') === '' ? [] : take(item.path)),
  ]);
}

const MAX_TOKEN_SECONDS = 2 ** 32;

/** The path is named as if it were the volume's, as upstream. */
function validateToken(field: string, at: string, { serviceAccountToken: token }: Source): FieldError[] {
  if (token === undefined) return [];
  const errors: FieldError[] = [];
  const seconds = token.expirationSeconds ?? 3600;
  const expiry = `${at}.serviceAccountToken.expirationSeconds`;
  if (seconds < 600) errors.push(invalid(expiry, seconds, 'may not specify a duration less than 10 minutes'));
  if (seconds > MAX_TOKEN_SECONDS) {
    errors.push(invalid(expiry, seconds, 'may not specify a duration larger than 2^32 seconds'));
  }
  return errors.concat(
    (token.path ?? '') === '' ? [required(`${field}.path`)] : validateFilePath(`${field}.path`, token.path),
  );
}

function validateBundle(at: string, bundle: NonNullable<Source['clusterTrustBundle']>, take: TakePath): FieldError[] {
  const { name, signerName, labelSelector, path = '' } = bundle;
  const errors: FieldError[] = [];
  if (name !== undefined && signerName !== undefined) {
    errors.push(invalid(at, bundle, 'only one of name and signerName may be used'));
  } else if (name !== undefined) {
    if (name === '') errors.push(required(`${at}.name`, 'must be a valid object name'));
    for (const message of bundleName(name)) {
      errors.push(invalid(`${at}.name`, name, `not a valid clustertrustbundlename: ${message}`));
    }
    if (labelSelector !== undefined) {
      errors.push(invalid(`${at}.labelSelector`, labelSelector, 'labelSelector must be unset if name is specified'));
    }
  } else if (signerName !== undefined) {
    if (signerName === '') errors.push(required(`${at}.signerName`, 'must be a valid signer name'));
    addErrors(errors, validateSignerName(`${at}.signerName`, signerName));
    if (labelSelector !== undefined) {
      addErrors(errors, validateLabelSelector(`${at}.labelSelector`, labelSelector));
    }
  } else errors.push(required(at, 'either name or signerName must be specified'));
  if (path === '') errors.push(required(`${at}.path`));
  return errors.concat(validateFilePath(`${at}.path`, path), take(path));
}
