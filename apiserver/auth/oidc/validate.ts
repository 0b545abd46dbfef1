// What is wrong with an AuthenticationConfiguration, in kube-apiserver's words (k8s.io/apiserver/pkg/apis/apiserver/validation), and
// what it means where nothing is. Pure.

import { X509Certificate } from 'node:crypto';
import { CelCompileError, type CelProgram } from '../../cel/cel.ts';
import { duplicate, forbidden, invalid, required, syntax, tooMany } from '../../kinds/field-errors.ts';
import { domainPrefixedPath } from '../../kinds/names.ts';
import type { FieldError } from '../../kinds/resource.ts';
import type {
  AuthenticationConfiguration,
  ClaimMappings,
  ClaimValidationRule,
  IssuerConfig,
  JwtConfig,
  PrefixedClaimOrExpression,
} from './configuration.ts';
import { claimsProgram, userProgram } from './expressions.ts';
import type { ClaimMapping, OidcSettings, Rule } from './settings.ts';
import { ALL_ALGORITHMS } from './signature.ts';

const MAX_ISSUERS = 64;
const BOTH = "claim and expression can't both be set";
const NO_HTTPS = 'URL scheme must be https';
const NEITHER = 'claim or expression is required';

export interface Validated {
  readonly errors: readonly FieldError[];
  /** Of each issuer; of no use where there are errors. */
  readonly settings: readonly OidcSettings[];
}

/** `disallowed`: the issuers of service accounts, whose tokens are checked elsewhere. */
export function validateAuthentication(
  { jwt, anonymous }: AuthenticationConfiguration,
  disallowed: readonly string[],
): Validated {
  if (jwt.length > MAX_ISSUERS) return { errors: [tooMany('jwt', jwt.length, MAX_ISSUERS)], settings: [] };
  const errors: FieldError[] = [];
  const seen = { url: new Set<string>(), discoveryURL: new Set<string>() };
  const settings = jwt.map((one, index) => {
    const at = `jwt[${index}]`;
    const found = new Authenticator(one, errors).settings(at, disallowed);
    for (const name of ['url', 'discoveryURL'] as const) {
      const url = one.issuer[name];
      if (seen[name].has(url)) errors.push(duplicate(`${at}.issuer.${name}`, url));
      if (name === 'url' || url !== '') seen[name].add(url);
    }
    return found;
  });
  if (anonymous !== undefined && !anonymous.enabled && anonymous.conditions.length > 0) {
    const why = 'enabled should be set to true when conditions are defined';
    errors.push(invalid('anonymous.conditions', anonymous.conditions, why));
  }
  return { errors, settings };
}

/** One issuer: its errors are added to the list. */
class Authenticator {
  readonly #config: JwtConfig;
  readonly #errors: FieldError[];
  /** Of rules and extras. */
  readonly #programs: CelProgram[] = [];

  constructor(config: JwtConfig, errors: FieldError[]) {
    this.#config = config;
    this.#errors = errors;
  }

  settings(at: string, disallowed: readonly string[]): OidcSettings {
    const { issuer, claimValidationRules, claimMappings, userValidationRules } = this.#config;
    this.#errors.push(...issuerErrors(issuer, disallowed, `${at}.issuer`));
    const claimRules = this.#claimRules(claimValidationRules, `${at}.claimValidationRules`);
    const mappings = this.#mappings(claimMappings, `${at}.claimMappings`);
    const userRules = this.#userRules(userValidationRules, `${at}.userValidationRules`);
    const plain = claimValidationRules.filter(({ claim }) => claim !== '');
    const { url, discoveryURL, certificateAuthority } = issuer;
    return {
      issuer: url,
      ...(discoveryURL === '' ? {} : { discoveryUrl: discoveryURL }),
      audiences: issuer.audiences,
      ...mappings,
      requiredClaims: new Map(plain.map(({ claim, requiredValue }) => [claim, requiredValue])),
      claimRules,
      userRules,
      algorithms: ALL_ALGORITHMS,
      ca: certificateAuthority === '' ? undefined : certificateAuthority,
    };
  }

  #claimRules(rules: readonly ClaimValidationRule[], at: string): Rule[] {
    const claims = new Set<string>();
    const expressions = new Set<string>();
    return rules.flatMap((rule, index): Rule[] => {
      const { claim, expression, message, requiredValue } = rule;
      const here = `${at}[${index}]`;
      if (claim !== '' && expression !== '') return this.#wrong(invalid(here, claim, BOTH));
      if (claim !== '') {
        if (message !== '') this.#wrong(invalid(`${here}.message`, message, 'may not be specified when claim is set'));
        if (claims.has(claim)) this.#wrong(duplicate(`${here}.claim`, claim));
        claims.add(claim);
        return [];
      }
      if (expression === '') return this.#wrong(required(here, NEITHER));
      if (requiredValue !== '') {
        this.#wrong(invalid(`${here}.requiredValue`, requiredValue, 'may not be specified when expression is set'));
      }
      if (expressions.has(expression)) return this.#wrong(duplicate(`${here}.expression`, expression));
      expressions.add(expression);
      return this.#rule(claimsProgram, expression, message, `${here}.expression`);
    });
  }

  #userRules(rules: JwtConfig['userValidationRules'], at: string): Rule[] {
    const expressions = new Set<string>();
    return rules.flatMap(({ expression, message }, index): Rule[] => {
      const here = `${at}[${index}].expression`;
      if (expression === '') return this.#wrong(required(here));
      if (expressions.has(expression)) return this.#wrong(duplicate(here, expression));
      expressions.add(expression);
      return this.#rule(userProgram, expression, message, here);
    });
  }

  #rule(compile: (expression: string) => CelProgram, expression: string, message: string, at: string): Rule[] {
    const program = this.#compiled(compile, expression, at);
    if (program === undefined) return [];
    if (program.checkedType !== 'bool') return this.#wrong(invalid(at, expression, 'must evaluate to bool'));
    if (compile === claimsProgram) this.#programs.push(program);
    return [{ program, message }];
  }

  #mappings(mappings: ClaimMappings, at: string): Pick<OidcSettings, 'username' | 'groups' | 'uid' | 'extra'> {
    const username = this.#prefixed(mappings.username, `${at}.username`, true);
    const groups = this.#prefixed(mappings.groups, `${at}.groups`, false);
    const uid = this.#uid(mappings.uid, `${at}.uid`);
    const extra = this.#extra(mappings.extra, `${at}.extra`);
    if (username !== undefined && 'program' in username && username.program.selects('claims', 'email')) {
      const verified = [username.program, ...this.#programs].some((one) => one.selects('claims', 'email_verified'));
      const why =
        'claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression';
      if (!verified) this.#wrong(invalid(`${at}.username.expression`, mappings.username.expression, why));
    }
    return { username: username ?? { claim: '', prefix: '' }, groups, uid, extra };
  }

  #prefixed(mapping: PrefixedClaimOrExpression, at: string, isRequired: boolean): ClaimMapping | undefined {
    const { claim, prefix, expression } = mapping;
    if (claim !== '' && expression !== '') this.#wrong(invalid(at, '', BOTH));
    else if (expression !== '') {
      if (prefix !== undefined) {
        this.#wrong(invalid(`${at}.prefix`, prefix, 'may not be specified when expression is set'));
      }
      const program = this.#compiled(claimsProgram, expression, `${at}.expression`);
      return program === undefined ? undefined : { program };
    } else if (claim !== '') {
      const why = 'prefix is required when claim is set. It can be set to an empty string to disable prefixing';
      if (prefix === undefined) this.#wrong(required(`${at}.prefix`, why));
      return { claim, prefix: prefix ?? '' };
    } else if (isRequired) this.#wrong(required(at, NEITHER));
    return undefined;
  }

  #uid({ claim, expression }: ClaimMappings['uid'], at: string): OidcSettings['uid'] {
    if (claim !== '' && expression !== '') this.#wrong(invalid(at, '', BOTH));
    else if (claim !== '') return { claim };
    else if (expression !== '') {
      const program = this.#compiled(claimsProgram, expression, `${at}.expression`);
      return program === undefined ? undefined : { program };
    }
    return undefined;
  }

  #extra(extra: ClaimMappings['extra'], at: string): OidcSettings['extra'] {
    const keys = new Set<string>();
    return extra.flatMap(({ key, valueExpression }, index): { key: string; program: CelProgram }[] => {
      const here = `${at}[${index}]`;
      this.#errors.push(...keyErrors(key, `${here}.key`));
      if (keys.has(key)) return this.#wrong(duplicate(`${here}.key`, key));
      keys.add(key);
      if (valueExpression === '') return this.#wrong(required(`${here}.valueExpression`));
      const program = this.#compiled(claimsProgram, valueExpression, `${here}.valueExpression`);
      if (program === undefined) return [];
      this.#programs.push(program);
      return [{ key, program }];
    });
  }

  #compiled(compile: (expression: string) => CelProgram, expression: string, at: string): CelProgram | undefined {
    try {
      return compile(expression);
    } catch (error) {
      if (!(error instanceof CelCompileError)) throw error;
      this.#wrong(invalid(at, expression, `compilation failed: ${error.message}`));
      return undefined;
    }
  }

  #wrong(error: FieldError): never[] {
    this.#errors.push(error);
    return [];
  }
}

function keyErrors(key: string, at: string): FieldError[] {
  const errors = key === '' ? [required(at)] : syntax(at, key, domainPrefixedPath(key));
  if (key !== key.toLowerCase()) errors.push(invalid(at, key, 'must be lowercase'));
  const slash = key.indexOf('/');
  if (/(?:^|\.)(?:kubernetes|k8s)\.io$/.test(key.slice(0, Math.max(slash, 0)))) {
    const why = 'k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use';
    errors.push(invalid(at, key, why));
  }
  return errors;
}

function issuerErrors(issuer: IssuerConfig, disallowed: readonly string[], at: string): FieldError[] {
  const { url, discoveryURL, certificateAuthority, egressSelectorType } = issuer;
  const errors = url === '' ? [required(`${at}.url`)] : urlErrors(url, disallowed, `${at}.url`);
  if (discoveryURL !== '') {
    const trimmed = (text: string): string => text.replace(/\/+$/, '');
    if (url !== '' && trimmed(url) === trimmed(discoveryURL)) {
      errors.push(invalid(`${at}.discoveryURL`, discoveryURL, 'discoveryURL must be different from URL'));
    }
    errors.push(...urlErrors(discoveryURL, [], `${at}.discoveryURL`));
  }
  errors.push(...audienceErrors(issuer, at));
  if (certificateAuthority !== '') errors.push(...caErrors(certificateAuthority, `${at}.certificateAuthority`));
  if (egressSelectorType !== '') {
    // There are no egress selectors here to select.
    errors.push(forbidden(`${at}.egressSelectorType`, 'egress selectors are not supported by this server'));
  }
  return errors;
}

export function urlErrors(url: string, disallowed: readonly string[], at: string): FieldError[] {
  const errors: FieldError[] = [];
  const wrong = (why: string): void => void errors.push(invalid(at, url, why));
  if (disallowed.includes(url)) {
    wrong(`URL must not overlap with disallowed issuers: [${[...disallowed].sort().join(' ')}]`);
  }
  if (!URL.canParse(url)) {
    const port = /^[a-z]+:\/\/[^/]*(?<port>:[^/:]*[^/:0-9][^/:]*)(?:\/|$)/i.exec(url)?.groups?.['port'];
    if (port !== undefined) wrong(`parse ${JSON.stringify(url)}: invalid port ${JSON.stringify(port)} after host`);
    else wrong(/^https:/i.test(url) ? 'it is no URL' : NO_HTTPS);
    return errors;
  }
  const { protocol, username, password, search, hash } = new URL(url);
  if (protocol !== 'https:') wrong(NO_HTTPS);
  if (username !== '' || password !== '') wrong('URL must not contain a username or password');
  if (search !== '') wrong('URL must not contain a query');
  if (hash !== '') wrong('URL must not contain a fragment');
  return errors;
}

function audienceErrors({ audiences, audienceMatchPolicy }: IssuerConfig, at: string): FieldError[] {
  const field = `${at}.audiences`;
  if (audiences.length === 0) return [required(field, `at least one ${field} is required`)];
  const errors = audiences.flatMap((audience, index) => [
    ...(audience === '' ? [required(`${field}[${index}]`)] : []),
    ...(audiences.indexOf(audience) < index ? [duplicate(`${field}[${index}]`, audience)] : []),
  ]);
  const isAny = audienceMatchPolicy === 'MatchAny';
  const policy = `${at}.audienceMatchPolicy`;
  if (audiences.length > 1 && !isAny) {
    errors.push(invalid(policy, audienceMatchPolicy, 'audienceMatchPolicy must be MatchAny for multiple audiences'));
  }
  if (audiences.length === 1 && audienceMatchPolicy !== '' && !isAny) {
    const why = 'audienceMatchPolicy must be empty or MatchAny for single audience';
    errors.push(invalid(policy, audienceMatchPolicy, why));
  }
  return errors;
}

export function caErrors(pem: string, at: string): FieldError[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  if (blocks.some(isCertificate)) return [];
  return [invalid(at, '<omitted>', 'data does not contain any valid RSA or ECDSA certificates')];
}

function isCertificate(block: string): boolean {
  try {
    return new X509Certificate(block).subject !== undefined;
  } catch {
    // A block that does not parse is no certificate.
    return false;
  }
}
