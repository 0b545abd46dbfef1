// --authentication-config without a server: what is refused, in kube-apiserver's words (the cases are those of its own tests), and whom
// claims are mapped to.

import { describe, expect, it } from 'vitest';
import { readAuthentication } from '../../../../apiserver/auth/oidc/configuration.ts';
import { checkClaims, identityOf } from '../../../../apiserver/auth/oidc/identity.ts';
import { validateAuthentication } from '../../../../apiserver/auth/oidc/validate.ts';
import { aggregate } from '../../../../lib/aggregate.ts';
import { epochMs } from '../../../../lib/clock.ts';
import { makeCa } from '../../../support/tls.ts';

const HEAD = { apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AuthenticationConfiguration' };
const ISSUER = { url: 'https://issuer-url', audiences: ['audience'] };
const USERNAME = { claim: 'sub', prefix: '' };

const jwt = (more: object = {}) => ({ issuer: ISSUER, claimMappings: { username: USERNAME }, ...more });
const read = (file: object) => readAuthentication(JSON.stringify({ ...HEAD, ...file }));

function errorsOf(file: object, disallowed: readonly string[] = []): string {
  const { errors } = validateAuthentication(read(file), disallowed);
  return errors.length === 0 ? '' : aggregate(errors.map(({ field, detail }) => `${field}: ${detail}`));
}

function settingsOf(more: object) {
  const { errors, settings } = validateAuthentication(read({ jwt: [jwt(more)] }), []);
  expect(errors).toEqual([]);
  const [first] = settings;
  if (first === undefined) throw new Error('no settings');
  return first;
}

const UNVERIFIED =
  'claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression';
const unverified = (expression: string): string =>
  `jwt[0].claimMappings.username.expression: Invalid value: ${JSON.stringify(expression)}: ${UNVERIFIED}`;
const undeclared =
  "Invalid value: \"foo.bar\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo.bar\n | ^";

describe('a file', () => {
  it.each([
    ['', 'empty config data'],
    ['a: [', 'at line 1'],
    [
      JSON.stringify({ ...HEAD, kind: 'Other' }),
      'no kind "Other" is registered for version "apiserver.config.k8s.io/v1"',
    ],
    [JSON.stringify({ ...HEAD, apiVersion: 'v1' }), 'is registered for version "v1"'],
    [JSON.stringify({ ...HEAD, jwts: [] }), 'strict decoding error: unknown field "jwts"'],
    [
      JSON.stringify({ ...HEAD, jwt: [jwt({ issuer: { ...ISSUER, urls: '' } })] }),
      'strict decoding error: unknown field "jwt[0].issuer.urls"',
    ],
    [JSON.stringify({ ...HEAD, jwt: [jwt({ issuer: { url: 7 } })] }), 'jwt[0].issuer.url: expected a string'],
    [JSON.stringify({ ...HEAD, jwt: {} }), 'jwt: expected a list'],
    [JSON.stringify({ ...HEAD, anonymous: { enabled: 'yes' } }), 'anonymous.enabled: expected true or false'],
  ])('%s is refused', (text, why) => expect(() => readAuthentication(text)).toThrow(why));

  it('may be of each version, and empty', () => {
    for (const version of ['v1', 'v1beta1', 'v1alpha1']) {
      expect(errorsOf({ apiVersion: `apiserver.config.k8s.io/${version}` })).toBe('');
    }
  });
});

describe('issuers', () => {
  const issuer = (more: object): object => ({ jwt: [jwt({ issuer: { ...ISSUER, ...more } })] });
  const discovery = 'https://oidc.oidc-namespace.svc';
  it.each<[object, string]>([
    [{ url: '' }, 'url: Required value'],
    [
      { url: 'https://issuer-url:invalid-port' },
      'url: Invalid value: "https://issuer-url:invalid-port": parse "https://issuer-url:invalid-port": invalid port ":invalid-port" after host',
    ],
    [{ url: 'invalid-url' }, 'url: Invalid value: "invalid-url": URL scheme must be https'],
    [{ url: 'http://issuer-url' }, 'url: Invalid value: "http://issuer-url": URL scheme must be https'],
    [
      { url: 'https://user:pass@issuer-url' },
      'url: Invalid value: "https://user:pass@issuer-url": URL must not contain a username or password',
    ],
    [
      { url: 'https://issuer-url?query' },
      'url: Invalid value: "https://issuer-url?query": URL must not contain a query',
    ],
    [
      { url: 'https://issuer-url#fragment' },
      'url: Invalid value: "https://issuer-url#fragment": URL must not contain a fragment',
    ],
    [{ discoveryURL: `${discovery}/path` }, ''],
    [
      { discoveryURL: `${discovery}?query` },
      `discoveryURL: Invalid value: "${discovery}?query": URL must not contain a query`,
    ],
    [
      { discoveryURL: 'https://issuer-url///' },
      'discoveryURL: Invalid value: "https://issuer-url///": discoveryURL must be different from URL',
    ],
    [{ audiences: [] }, 'audiences: Required value: at least one jwt[0].issuer.audiences is required'],
    [{ audiences: [''] }, 'audiences[0]: Required value'],
    [
      { audienceMatchPolicy: 'MatchExact' },
      'audienceMatchPolicy: Invalid value: "MatchExact": audienceMatchPolicy must be empty or MatchAny for single audience',
    ],
    [{ audienceMatchPolicy: 'MatchAny' }, ''],
    [{ audiences: ['a', 'a'], audienceMatchPolicy: 'MatchAny' }, 'audiences[1]: Duplicate value: "a"'],
    [
      { audiences: ['a', 'b'] },
      'audienceMatchPolicy: Invalid value: "": audienceMatchPolicy must be MatchAny for multiple audiences',
    ],
    [{ audiences: ['a', 'b'], audienceMatchPolicy: 'MatchAny' }, ''],
    [
      { certificateAuthority: 'invalid' },
      'certificateAuthority: Invalid value: "<omitted>": data does not contain any valid RSA or ECDSA certificates',
    ],
    [
      { egressSelectorType: 'cluster' },
      'egressSelectorType: Forbidden: egress selectors are not supported by this server',
    ],
  ])('%j', (more, why) => expect(errorsOf(issuer(more))).toBe(why === '' ? '' : `jwt[0].issuer.${why}`));

  it('have each their own URLs, none of them that of service accounts, and are not too many', async () => {
    const { cert } = await makeCa();
    expect(errorsOf(issuer({ certificateAuthority: cert }))).toBe('');
    expect(errorsOf({ jwt: [jwt(), jwt()] })).toBe('jwt[1].issuer.url: Duplicate value: "https://issuer-url"');
    const at = (url: string) => jwt({ issuer: { ...ISSUER, url, discoveryURL: discovery } });
    expect(errorsOf({ jwt: [at('https://a'), at('https://b')] })).toBe(
      `jwt[1].issuer.discoveryURL: Duplicate value: "${discovery}"`,
    );
    expect(errorsOf({ jwt: [jwt()] }, ['c', 'https://issuer-url', 'a'])).toBe(
      'jwt[0].issuer.url: Invalid value: "https://issuer-url": URL must not overlap with disallowed issuers: [a c https://issuer-url]',
    );
    expect(errorsOf({ jwt: Array.from({ length: 65 }, () => jwt()) })).toBe(
      'jwt: Too many: 65: must have at most 64 items',
    );
  });
});

describe('rules', () => {
  it.each<[object[], string]>([
    [[{}], '[0]: Required value: claim or expression is required'],
    [[{ claim: 'claim', expression: 'a' }], `[0]: Invalid value: "claim": claim and expression can't both be set`],
    [
      [{ claim: 'claim', message: 'message' }],
      '[0].message: Invalid value: "message": may not be specified when claim is set',
    ],
    [
      [{ expression: "claims.foo == 'bar'", requiredValue: 'value' }],
      '[0].requiredValue: Invalid value: "value": may not be specified when expression is set',
    ],
    [[{ claim: 'claim' }, { claim: 'claim' }], '[1].claim: Duplicate value: "claim"'],
    [
      [{ expression: "claims.foo == 'bar'" }, { expression: "claims.foo == 'bar'" }],
      '[1].expression: Duplicate value: "claims.foo == \'bar\'"',
    ],
    [[{ expression: 'foo.bar' }], `[0].expression: ${undeclared}`],
    [[{ expression: 'claims.foo' }], '[0].expression: Invalid value: "claims.foo": must evaluate to bool'],
    [[{ expression: "claims.foo == 'bar'" }, { claim: 'a', requiredValue: 'b' }], ''],
  ])('of claims: %j', (claimValidationRules, why) => {
    const found = errorsOf({ jwt: [jwt({ claimValidationRules })] });
    expect(found).toBe(why === '' ? '' : `jwt[0].claimValidationRules${why}`);
  });

  it.each<[object[], string]>([
    [[{ expression: '' }], '[0].expression: Required value'],
    [
      [{ expression: "user.username == 'a'" }, { expression: "user.username == 'a'" }],
      '[1].expression: Duplicate value: "user.username == \'a\'"',
    ],
    [[{ expression: 'foo.bar' }], `[0].expression: ${undeclared}`],
    [[{ expression: 'user.username' }], '[0].expression: Invalid value: "user.username": must evaluate to bool'],
    [
      [{ expression: "user.name == 'a'" }],
      "[0].expression: Invalid value: \"user.name == 'a'\": compilation failed: ERROR: <input>:1:5: undefined field 'name'\n | user.name == 'a'\n | ....^",
    ],
    [[{ expression: "user.groups.all(g, !g.startsWith('system:')) && 'a/b' in user.extra" }], ''],
  ])('of users: %j', (userValidationRules, why) => {
    const found = errorsOf({ jwt: [jwt({ userValidationRules })] });
    expect(found).toBe(why === '' ? '' : `jwt[0].userValidationRules${why}`);
  });
});

describe('mappings', () => {
  const BOTH = `Invalid value: "": claim and expression can't both be set`;
  const PREFIX =
    'Required value: prefix is required when claim is set. It can be set to an empty string to disable prefixing';
  const RESERVED = 'k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use';
  const key = (name: string): object => ({ extra: [{ key: name, valueExpression: 'claims.extra' }] });
  it.each<[object, string]>([
    [{ username: { claim: 'a', expression: 'claims.a' } }, `username: ${BOTH}`],
    [{ username: {} }, 'username: Required value: claim or expression is required'],
    [
      { username: { expression: 'claims.a', prefix: 'prefix' } },
      'username.prefix: Invalid value: "prefix": may not be specified when expression is set',
    ],
    [{ username: { claim: 'a' } }, `username.prefix: ${PREFIX}`],
    [{ username: { expression: 'foo.bar' } }, `username.expression: ${undeclared}`],
    [{ groups: { claim: 'a', expression: 'claims.a' } }, `groups: ${BOTH}`],
    [{ groups: { claim: 'a' } }, `groups.prefix: ${PREFIX}`],
    [{ groups: { expression: 'foo.bar' } }, `groups.expression: ${undeclared}`],
    [{ uid: { claim: 'a', expression: 'claims.a' } }, `uid: ${BOTH}`],
    [{ uid: { expression: 'foo.bar' } }, `uid.expression: ${undeclared}`],
    [{ extra: [{ key: '', valueExpression: 'claims.extra' }] }, 'extra[0].key: Required value'],
    [{ extra: [{ key: 'example.org/foo' }] }, 'extra[0].valueExpression: Required value'],
    [{ extra: [{ key: 'example.org/foo', valueExpression: 'foo.bar' }] }, `extra[0].valueExpression: ${undeclared}`],
    [
      {
        extra: [
          { key: 'example.org/foo', valueExpression: 'claims.extra' },
          { key: 'example.org/foo', valueExpression: 'claims.extras' },
        ],
      },
      'extra[1].key: Duplicate value: "example.org/foo"',
    ],
    [key('foo'), 'extra[0].key: Invalid value: "foo": must be a domain-prefixed path (such as "acme.io/foo")'],
    [key('example.org/Foo'), 'extra[0].key: Invalid value: "example.org/Foo": must be lowercase'],
    [key('k8s.io/foo'), `extra[0].key: Invalid value: "k8s.io/foo": ${RESERVED}`],
    [key('example.kubernetes.io/foo'), `extra[0].key: Invalid value: "example.kubernetes.io/foo": ${RESERVED}`],
    [key('ak8s.io/foo'), ''],
    [key('example.bkubernetes.io/foo'), ''],
  ])('%j', (more, why) => {
    const claimMappings = { username: USERNAME, ...more };
    expect(errorsOf({ jwt: [jwt({ claimMappings })] })).toBe(why === '' ? '' : `jwt[0].claimMappings.${why}`);
  });

  it.each<[string, string[], string[], boolean]>([
    ['claims.email', [], [], false],
    ['claims.email_', [], [], true],
    ['claims.other.claims.email', [], [], true],
    ["['yay', string(claims.email), 'panda'].join(' ')", [], [], false],
    ['claims.?email', [], [], false],
    ['{claims.?email: "panda"}', [], [], false],
    ['{"fancy": claims.?email}', [], [], false],
    ['["a"].map(i, i + claims.email)', [], [], false],
    ['has(claims.email) ? claims.email : claims.sub', [], [], false],
    ['claims.email.trim()', [], [], false],
    ['claims.email', ['string(claims.email_verified) == "panda"'], [], true],
    ['claims.email', [], ['claims.email_verified.upperAscii()'], true],
    ['claims.email', [], ['claims.?email_verified'], true],
    ['claims.email', [], ['has(claims.email_verified_) ? string(claims.email_verified_) : "false"'], false],
    ['claims.?email_verified.orValue(true) ? claims.email : claims.sub', [], [], true],
    ['claims.email', ['claims.?email_verified.orValue(true) == true'], [], true],
  ])('mail in %s, with the rules %j and extras %j', (expression, rules, extras, good) => {
    const file = jwt({
      claimMappings: {
        username: { expression },
        extra: extras.map((valueExpression) => ({ key: 'example.org/foo', valueExpression })),
      },
      claimValidationRules: rules.map((rule) => ({ expression: rule })),
    });
    expect(errorsOf({ jwt: [file] })).toBe(good ? '' : unverified(expression));
  });

  it('a rule that is none verifies no mail', () => {
    const rule = 'claims.?email_verified.orValue(true)';
    const file = jwt({
      claimMappings: { username: { expression: 'claims.email' } },
      claimValidationRules: [{ expression: rule }],
    });
    const why = `jwt[0].claimValidationRules[0].expression: Invalid value: "${rule}": must evaluate to bool`;
    expect(errorsOf({ jwt: [file] })).toBe(`[${why}, ${unverified('claims.email')}]`);
  });

  it('who is anonymous', () => {
    const conditions = [{ path: '/livez' }];
    expect(errorsOf({ anonymous: { enabled: true, conditions } })).toBe('');
    expect(errorsOf({ anonymous: { enabled: false } })).toBe('');
    expect(errorsOf({ anonymous: { enabled: false, conditions } })).toBe(
      'anonymous.conditions: Invalid value: [{"path":"/livez"}]: enabled should be set to true when conditions are defined',
    );
  });
});

describe('claims', () => {
  const mapped = (claims: object, more: object) => identityOf({ ...claims }, settingsOf(more));
  const expressions = {
    username: { expression: "claims.user + ':x'" },
    groups: { expression: 'claims.roles.split(",")' },
    uid: { expression: 'claims.id' },
    extra: [
      { key: 'example.org/one', valueExpression: 'claims.one' },
      { key: 'example.org/none', valueExpression: "claims.?none.orValue('')" },
    ],
  };

  it('are mapped by expressions', () => {
    const claims = { user: 'jane', roles: 'a,b,', id: '7', one: ['x', ''], jti: 'j' };
    expect(mapped(claims, { claimMappings: expressions })).toEqual({
      name: 'jane:x',
      uid: '7',
      groups: ['a', 'b', 'system:authenticated'],
      extra: { 'authentication.kubernetes.io/credential-id': ['JTI=j'], 'example.org/one': ['x'] },
    });
  });

  it('are selected by escaped names, deep in them, too, and numbers are doubles', () => {
    const username = { expression: 'claims.foo__dot__bar.list[0].a__dash__b + string(claims.keys.size())' };
    const claims = { 'foo.bar': { list: [{ 'a-b': 'jane' }] }, keys: { 'a.b': 1 }, exp: 90, iat: 30 };
    const claimValidationRules = [
      { expression: 'claims.exp - claims.iat <= 60' },
      { expression: 'type(claims.exp) == double' },
    ];
    expect(mapped(claims, { claimMappings: { username }, claimValidationRules }).name).toBe('jane1');
  });

  it('are a uid by a claim', () => {
    const claimMappings = { username: USERNAME, uid: { claim: 'id' } };
    expect(mapped({ sub: 'j', id: 'u' }, { claimMappings })).toMatchObject({ name: 'j', uid: 'u' });
    expect(() => mapped({ sub: 'j' }, { claimMappings })).toThrow('oidc: parse uid claim "id": claim not present');
  });

  const by = (name: string, expression: string): object => ({
    claimMappings: {
      username: USERNAME,
      [name]: name === 'extra' ? [{ key: 'a.b/c', valueExpression: expression }] : { expression },
    },
  });
  it.each<[object, object, string]>([
    [
      by('username', 'claims.none'),
      {},
      "username claim expression: expression 'claims.none' resulted in error: no such key: none",
    ],
    [by('username', 'claims.n'), { n: 7 }, 'username claim expression: username claim expression must return a string'],
    [
      by('groups', 'claims.n'),
      { n: [7] },
      'group claim expression: expression must return a string or a list of strings',
    ],
    [by('uid', 'claims.n'), { n: true }, 'uid claim expression: uid claim expression must return a string'],
    [
      by('extra', 'claims.n'),
      { n: {} },
      'extra claim expression: expression must return a string or a list of strings',
    ],
    [
      { claimValidationRules: [{ expression: "claims.hd == 'x'", message: 'no x' }] },
      { hd: 'y' },
      "claim validation expression: validation expression 'claims.hd == 'x'' failed: no x",
    ],
    [
      { userValidationRules: [{ expression: "!user.username.startsWith('system:')", message: 'reserved' }] },
      { sub: 'system:admin' },
      "user info validation rule: validation expression '!user.username.startsWith('system:')' failed: reserved",
    ],
    [
      { userValidationRules: [{ expression: "'system:authenticated' in user.groups", message: 'not yet' }] },
      {},
      'failed: not yet',
    ],
  ])('%j of %j are refused', (more, claims, why) => {
    expect(() => mapped({ sub: 'jane', ...claims }, more)).toThrow(why);
  });

  it('no name by an expression is none', () => {
    expect(() => mapped({ a: '' }, by('username', 'claims.a'))).toThrow(
      'oidc: empty username via CEL expression is not allowed',
    );
  });

  it('an expression that is too dear is refused', () => {
    const list = Array.from({ length: 400 }, (_, index) => index);
    const dear = 'claims.l.all(a, claims.l.all(b, claims.l.all(c, a + b + c >= 0.0)))';
    expect(() => mapped({ sub: 'j', l: list }, { claimValidationRules: [{ expression: dear }] })).toThrow(
      'operation cancelled: actual cost limit exceeded',
    );
  });

  it('are for one of several audiences', () => {
    const settings = settingsOf({ issuer: { ...ISSUER, audiences: ['b', 'a'], audienceMatchPolicy: 'MatchAny' } });
    const check = (aud: unknown) => () => checkClaims({ aud, exp: 10 }, settings, epochMs(0));
    expect(check(['x', 'b'])).not.toThrow();
    expect(check('a')).not.toThrow();
    expect(check('x')).toThrow('oidc: verify token: oidc: expected audience in ["a" "b"] got ["x"]');
  });
});
