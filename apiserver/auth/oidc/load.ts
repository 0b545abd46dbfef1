// The file of --authentication-config: issuers of ID tokens, and for which paths a request needs no credential. The issuers follow the
// file; who is anonymous does not, as upstream.

import { readFileSync } from 'node:fs';
import { aggregate } from '../../../lib/aggregate.ts';
import { errorMessage, UserError } from '../../../lib/errors.ts';
import { followFile } from '../../../lib/follow-file.ts';
import { goQuote } from '../../../lib/go-words.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { forbidden } from '../../kinds/field-errors.ts';
import { type AnonymousConfig, type AuthenticationConfiguration, readAuthentication } from './configuration.ts';
import type { OidcParts } from './issuer.ts';
import { OidcIssuers } from './issuers.ts';
import type { OidcSettings } from './settings.ts';
import { validateAuthentication } from './validate.ts';

export interface AuthenticationFile {
  readonly issuers: OidcIssuers;
  readonly anonymous: AnonymousConfig | undefined;
  /** Returns what ends it. */
  readonly follow: () => () => void;
}

/** `disallowed`: the issuers of service accounts. Throws UserError with everything that is wrong with the file. */
export function openAuthentication(
  path: string,
  disallowed: readonly string[],
  { clock, log }: OidcParts,
): AuthenticationFile {
  const problem = (why: string): UserError =>
    new UserError(`failed to load authentication configuration from file ${goQuote(path)}: ${why}`);
  let text: string;
  let configuration: AuthenticationConfiguration;
  try {
    text = readFileSync(path, 'utf8');
    configuration = readAuthentication(text);
  } catch (error) {
    throw problem(errorMessage(error));
  }
  const { anonymous } = configuration;
  const issuers = new OidcIssuers(settingsOf(configuration, disallowed, anonymous), { clock, log });
  const changed = (now: string): void => issuers.replace(settingsOf(readAuthentication(now), disallowed, anonymous));
  const refused = (why: string): void =>
    log(`authentication config file ${path}: ${why}; the one from before still counts`);
  return { issuers, anonymous, follow: () => followFile({ path, text, changed, refused, clock, log }) };
}

/** `first`: who is anonymous by the file of the start. Throws UserError. */
function settingsOf(
  configuration: AuthenticationConfiguration,
  disallowed: readonly string[],
  first: AnonymousConfig | undefined,
): readonly OidcSettings[] {
  const { errors, settings } = validateAuthentication(configuration, disallowed);
  const isSame = sameJson(configuration.anonymous, first);
  const all = isSame ? errors : [...errors, forbidden('anonymous', 'changed from initial configuration file')];
  if (all.length === 0) return settings;
  const why = aggregate(all.map(({ field, detail }) => `${field}: ${detail}`));
  throw new UserError(`invalid authentication configuration: ${why}`);
}
