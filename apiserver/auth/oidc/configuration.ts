// An AuthenticationConfiguration (apiserver.config.k8s.io/v1) as it is in its file: types, and reading it strictly. What its values may
// be is validate.ts's. Pure.

import { type ConfigReader, readConfiguration } from '../../config-reader.ts';

export interface IssuerConfig {
  readonly url: string;
  readonly discoveryURL: string;
  /** PEM */
  readonly certificateAuthority: string;
  readonly audiences: readonly string[];
  readonly audienceMatchPolicy: string;
  readonly egressSelectorType: string;
}

export interface PrefixedClaimOrExpression {
  readonly claim: string;
  readonly prefix: string | undefined;
  readonly expression: string;
}

export interface ClaimValidationRule {
  readonly claim: string;
  readonly requiredValue: string;
  readonly expression: string;
  readonly message: string;
}

export interface ClaimMappings {
  readonly username: PrefixedClaimOrExpression;
  readonly groups: PrefixedClaimOrExpression;
  readonly uid: { readonly claim: string; readonly expression: string };
  readonly extra: readonly { readonly key: string; readonly valueExpression: string }[];
}

export interface JwtConfig {
  readonly issuer: IssuerConfig;
  readonly claimValidationRules: readonly ClaimValidationRule[];
  readonly claimMappings: ClaimMappings;
  readonly userValidationRules: readonly { readonly expression: string; readonly message: string }[];
}

export interface AnonymousConfig {
  readonly enabled: boolean;
  /** Paths; none: all of them. */
  readonly conditions: readonly { readonly path: string }[];
}

export interface AuthenticationConfiguration {
  readonly jwt: readonly JwtConfig[];
  readonly anonymous: AnonymousConfig | undefined;
}

/** YAML or JSON. Throws ConfigurationError. */
export function readAuthentication(text: string): AuthenticationConfiguration {
  return readConfiguration(text, 'AuthenticationConfiguration', ['v1', 'v1beta1', 'v1alpha1'], (file) => ({
    jwt: file.objects('jwt', jwtOf),
    anonymous: file.object('anonymous', (anonymous) => ({
      enabled: anonymous.truth('enabled') ?? false,
      conditions: anonymous.objects('conditions', (condition) => ({ path: condition.text('path') })),
    })),
  }));
}

const NO_CLAIM: PrefixedClaimOrExpression = { claim: '', prefix: undefined, expression: '' };
const NO_ISSUER: IssuerConfig = {
  url: '',
  discoveryURL: '',
  certificateAuthority: '',
  audiences: [],
  audienceMatchPolicy: '',
  egressSelectorType: '',
};

function jwtOf(jwt: ConfigReader): JwtConfig {
  return {
    issuer: jwt.object('issuer', issuerOf) ?? NO_ISSUER,
    claimValidationRules: jwt.objects('claimValidationRules', (rule) => ({
      claim: rule.text('claim'),
      requiredValue: rule.text('requiredValue'),
      expression: rule.text('expression'),
      message: rule.text('message'),
    })),
    claimMappings: jwt.object('claimMappings', mappingsOf) ?? {
      username: NO_CLAIM,
      groups: NO_CLAIM,
      uid: NO_CLAIM,
      extra: [],
    },
    userValidationRules: jwt.objects('userValidationRules', (rule) => ({
      expression: rule.text('expression'),
      message: rule.text('message'),
    })),
  };
}

function issuerOf(issuer: ConfigReader): IssuerConfig {
  return {
    url: issuer.text('url'),
    discoveryURL: issuer.text('discoveryURL'),
    certificateAuthority: issuer.text('certificateAuthority'),
    audiences: issuer.texts('audiences'),
    audienceMatchPolicy: issuer.text('audienceMatchPolicy'),
    egressSelectorType: issuer.text('egressSelectorType'),
  };
}

function mappingsOf(mappings: ConfigReader): ClaimMappings {
  const prefixed = (name: string): PrefixedClaimOrExpression =>
    mappings.object(name, (one) => ({
      claim: one.text('claim'),
      prefix: one.optionalText('prefix'),
      expression: one.text('expression'),
    })) ?? NO_CLAIM;
  return {
    username: prefixed('username'),
    groups: prefixed('groups'),
    uid:
      mappings.object('uid', (one) => ({ claim: one.text('claim'), expression: one.text('expression') })) ?? NO_CLAIM,
    extra: mappings.objects('extra', (one) => ({ key: one.text('key'), valueExpression: one.text('valueExpression') })),
  };
}
