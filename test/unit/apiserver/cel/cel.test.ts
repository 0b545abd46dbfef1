import { describe, expect, it } from 'vitest';
import { CelBudget, celEnvironment, celValue, compile, evaluate, jsonValue } from '../../../../apiserver/cel/cel.ts';

const environment = celEnvironment({ self: 'dyn', n: 'int', text: 'string', numbers: 'list<int>' });
const self = celValue({
  name: 'web',
  replicas: 3,
  ratio: 1.5,
  labels: { app: 'web' },
  ports: [{ port: 80 }, { port: 443 }],
});

/** The value as JSON, or the error's message. */
function result(expression: string, budget = new CelBudget()): unknown {
  try {
    const program = compile(expression, environment);
    return jsonValue(evaluate(program, { self, n: 3n, text: 'hello', numbers: [1n, 2n, 3n] }, budget));
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message.split('\n')[0]}` : error;
  }
}

describe('the language', () => {
  it.each<[string, unknown]>([
    ['n + 1 == 4 && text.startsWith("he")', true],
    ['self.replicas <= 5 && self.replicas * 2 == 6', true],
    ['self.ratio > 1.0 && self.replicas < 3.5', true],
    ['has(self.labels.app) && !has(self.labels.tier)', true],
    ['"app" in self.labels && !("tier" in self.labels)', true],
    ['self.ports.all(p, p.port > 0) && self.ports.exists_one(p, p.port == 80)', true],
    ['self.ports.filter(p, p.port > 100).map(p, p.port)', [443]],
    ['self.labels.map(k, k + "=" + self.labels[k])', ['app=web']],
    ['self.?missing.orValue("none")', 'none'],
    ['self.ports[?5].hasValue()', false],
    ['self.missing == 1 || true', true],
    ['[1, 2].exists(x, 1 / (x - 1) == 1)', true],
    ['size(text) == 5 ? "five" : "other"', 'five'],
    ['duration("1h30m").getMinutes()', 90],
    ['duration("-1.5s") < duration("0s")', true],
    ['timestamp("2020-01-01T00:00:00Z") + duration("1h") == timestamp("2020-01-01T01:00:00Z")', true],
    ['string(duration("90s")) + " " + string(timestamp("2020-01-01T00:00:00Z"))', '90s 2020-01-01T00:00:00Z'],
    ['int(timestamp("1970-01-01T00:01:00Z")) + int(2u)', 62],
    ['"TacoCÆt".lowerAscii()', 'tacocÆt'],
    ['optional.ofNonZeroValue("").orValue("none")', 'none'],
    ['optional.of(n).optMap(x, x + 1).value()', 4],
    ['optional.none().optMap(x, x + 1).hasValue()', false],
    ['self.?labels.optMap(l, l.app).orValue("none")', 'web'],
    ['self.?missing.optMap(l, l.app).orValue("none")', 'none'],
    ['self.?labels.optFlatMap(l, l.?app).value() + self.?labels.optFlatMap(l, l.?no).orValue("!")', 'web!'],
    ['[1, 2].map(y, optional.of(y).optMap(x, x + y).value())', [2, 4]],
  ])('%s', (expression, expected) => {
    expect(result(expression)).toEqual(expected);
  });
});

describe("Kubernetes' functions", () => {
  it.each<[string, unknown]>([
    ['numbers.sum() == 6 && numbers.isSorted() && numbers.max() == 3 && numbers.min() == 1', true],
    ['[3, 1].isSorted()', false],
    ['["a", "b", "a"].indexOf("a") == 0 && ["a", "b", "a"].lastIndexOf("a") == 2', true],
    ['sets.contains([1, 2, 3], [2]) && sets.intersects([1], [1, 2]) && !sets.equivalent([1], [1, 2])', true],
    ['text.matches("^h.*o$") && text.find("l+") == "ll"', true],
    ['"a1b22".findAll("[0-9]+")', ['1', '22']],
    ['"%s is %d, %.2f".format(["x", 4, 1.0])', 'x is 4, 1.00'],
    ['"a-b-c".replace("-", "+", 1)', 'a+b-c'],
    [String.raw`strings.quote("a\n\t\"b\" \\ é")`, String.raw`"a\n\t\"b\" \\ é"`],
    ['quantity("1Gi").isGreaterThan(quantity("1000Mi")) && quantity("2k").asInteger() == 2000', true],
    ['quantity("50k").add(20).sub(quantity("20")) == quantity("50k")', true],
    ['isQuantity("1.3Gi") && !isQuantity("1.3GiB")', true],
    ['url("https://user:pw@example.com:443/a%20b?x=1").getHost()', 'example.com:443'],
    ['url("https://[::1]:80/").getHostname()', '::1'],
    ['url("/path?x=1&x=2").getQuery()', { x: ['1', '2'] }],
    ['isURL("../relative")', false],
    ['ip("127.0.0.1").isLoopback() && ip("fe80::1").isLinkLocalUnicast() && ip("8.8.8.8").isGlobalUnicast()', true],
    ['ip("2001:db8::1") == ip("2001:DB8:0::1") && !ip.isCanonical("2001:DB8::1")', true],
    ['isIP("010.0.0.1") || isIP("fe80::1%eth0")', false],
    ['cidr("192.168.0.0/16").containsIP("192.168.4.5") && !cidr("10.0.0.0/8").containsCIDR("0.0.0.0/0")', true],
    ['string(cidr("10.1.2.3/8").masked())', '10.0.0.0/8'],
    ['format.dns1123Label().validate("my-name")', null],
    ['format.named("dns1123Label").value().validate("My").value().size()', 1],
    ['semver("1.2.3-rc.1").isLessThan(semver("1.2.3")) && semver("1.10.0").isGreaterThan(semver("1.9.9"))', true],
    ['isSemver("v1.2", true) && !isSemver("v1.2")', true],
  ])('%s', (expression, expected) => {
    expect(result(expression)).toEqual(expected);
  });
});

it.each<[string, string]>([
  ['text + 1', "CelCompileError: ERROR: <input>:1:6: found no matching overload for '_+_' applied to '(string, int)'"],
  ['n > 0 && foo', "CelCompileError: ERROR: <input>:1:10: undeclared reference to 'foo' (in container '')"],
  [
    '1 +',
    "CelCompileError: ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
  ],
  [
    '[].all(e, e > 0)',
    "CelCompileError: ERROR: <input>:1:1: Operator overload 'int > int: bool' overlaps with 'double > int: bool'.",
  ],
  [
    'timestamp("2020-01-01T00:00:00Z").getHours("nowhere") == 0',
    'CelEvaluationError: Invalid time zone specified: nowhere',
  ],
  ['self.missing', 'CelEvaluationError: no such key: missing'],
  ['self.ports[7].port', 'CelEvaluationError: index out of bounds: 7'],
  ['n / 0', 'CelEvaluationError: division by zero'],
  ['text.matches("(")', 'CelCompileError: ERROR: <input>:1:14: invalid matches argument'],
  [
    'quantity("x")',
    "CelEvaluationError: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  ],
])('%s fails with %s', (expression, message) => {
  expect(result(expression)).toBe(message);
});

it('has cel.bind where an environment is made with it', () => {
  const variables = { n: 'int' };
  const bindings = celEnvironment(variables, undefined, { bindings: true });
  const program = compile('cel.bind(x, n * 2, x + x)', bindings);
  expect(evaluate(program, { n: 3n }, new CelBudget())).toBe(12n);
  expect(() => compile('cel.bind(x, n * 2, x + x)', celEnvironment(variables))).toThrow(
    "undeclared reference to 'bind'",
  );
});

describe('the budget', () => {
  const long = Array.from({ length: 10_000 }, (_, index) => index);
  const large = celEnvironment({ self: 'dyn' });
  const run = (expression: string, value: unknown) => {
    const budget = new CelBudget();
    return () => evaluate(compile(expression, large), { self: celValue(value) }, budget);
  };

  it.each([
    'self.all(x, self.all(y, x == y || true))',
    'self.all(x, self.all(y, x.missing == y))',
    'self.all(i, x, self.all(j, y, x == y || true))',
    'self.exists(i, x, self.exists(j, y, x.missing == y))',
    'self.transformList(i, x, self.transformMap(j, y, x)).size() > 0',
    'self.transformMapEntry(i, x, {string(x): self.map(y, [?optional.of(y)])}).size() > 0',
    'self.exists(x, self == self && false)',
    'self.map(x, self.map(y, self))',
    'self.all(x, self.exists(y, y == x))',
    'self.all(x, timestamp("2020-01-01T00:00:00Z").getHours("Europe/Berlin") == 1)',
    'self.all(x, ip("2001:db8::1").family() == 6)',
    'self.all(x, quantity("1Gi").add(quantity("1Mi")).sign() == 1)',
    'self.map(x, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").join("").matches("(a+)+b") || self.map(x, self.map(y, y)).size() > 0',
  ])('ends %s, whatever it catches', (expression) => {
    expect(run(expression, long)).toThrow('operation cancelled: actual cost limit exceeded');
  });

  it('leaves what a rule needs: a pass over ten thousand items', () => {
    expect(run('self.all(x, x >= 0)', long)()).toBe(true);
    expect(run('self.size() == 10000', long)()).toBe(true);
  });

  it('is shared by expressions: what one has used the next one lacks', () => {
    const budget = new CelBudget(50);
    expect(result('n == 3', budget)).toBe(true);
    expect(result('numbers.map(x, x + 1).map(x, x + 1).size()', budget)).toMatch('CelBudgetError');
  });

  it('a pattern that backtracks for ever elsewhere is matched in linear time', () => {
    expect(result(`"${'a'.repeat(40)}!".matches("^(a+)+$")`)).toBe(false);
  });
});
