// The structure in docs/design.md: a folder imports only from floors below it, the rooms of the agent meet
// in agent/ports, agent/model and agent/config alone, and no files import each other in a circle.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';

/** From the ground up; what stands in one row must not know each other. */
const FLOORS: readonly (readonly string[])[] = [
  ['lib'],
  ['proto'],
  ['client'],
  ['cni'],
  ['csi'],
  ['agent', 'apiserver', 'controlplane', 'dns', 'dockershim', 'netpol', 'proxy'],
  ['labs'],
  // The runner of the tests starts the command as a program, and shares no code with it.
  ['cli', 'scripts'],
];
const SHARED_ROOMS = new Set(['ports', 'model', 'config']);
/** It puts the rooms together and knows them all; only main.ts knows it. */
const COMPOSITION = 'compose';

interface Import {
  readonly from: string;
  readonly to: string;
}

function sources(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return entry.name === 'gen' ? [] : sources(path);
    return entry.name.endsWith('.ts') ? [path] : [];
  });
}

const imports: readonly Import[] = FLOORS.flat()
  .flatMap(sources)
  .flatMap((from) => {
    const text = readFileSync(from, 'utf8');
    const found = text.matchAll(/(?:from|import) '(\.{1,2}\/[^']+)'|import\('(\.{1,2}\/[^']+)'\)/g);
    return [...found].map((match) => ({ from, to: normalize(join(dirname(from), match[1] ?? match[2] ?? '')) }));
  });

const top = (path: string): string => path.split('/')[0] ?? '';
const floorOf = (path: string): number => FLOORS.findIndex((floor) => floor.includes(top(path)));
/** The folder inside agent/; undefined for the files that put the rooms together. */
function roomOf(path: string): string | undefined {
  const [house, room, file] = path.split('/');
  return house === 'agent' && file !== undefined ? room : undefined;
}

test('there is something to look at', () => {
  expect(imports.length).toBeGreaterThan(1000);
});

test('a folder imports only from floors below it', () => {
  const wrong = imports.filter(({ from, to }) => top(from) !== top(to) && floorOf(to) >= floorOf(from));
  expect(wrong).toEqual([]);
});

/** Groups of files that import each other, directly or through others; type-only imports count. Each sorted. */
function circles(found: readonly Import[]): string[][] {
  const targets = new Map<string, Set<string>>();
  for (const { from, to } of found) targets.set(from, (targets.get(from) ?? new Set<string>()).add(to));
  const reached = new Map<string, ReadonlySet<string>>();
  for (const start of targets.keys()) {
    const seen = new Set<string>();
    const open = [start];
    for (let file = open.pop(); file !== undefined; file = open.pop()) {
      for (const to of targets.get(file) ?? []) {
        if (seen.has(to)) continue;
        seen.add(to);
        open.push(to);
      }
    }
    reached.set(start, seen);
  }
  const groups = new Map<string, string[]>();
  for (const [file, seen] of reached) {
    if (!seen.has(file)) continue;
    const group = [...seen].filter((other) => reached.get(other)?.has(file) === true).sort();
    groups.set(group.join(), group);
  }
  return [...groups.values()].sort();
}

test('no file imports itself through others, inside a room either', () => {
  expect(circles(imports)).toEqual([]);
});

test('a circle is found, however long', () => {
  const chain = ['a', 'b', 'c', 'd'].map((from, index) => ({ from, to: 'bcdb'[index] ?? '' }));
  expect(circles(chain)).toEqual([['b', 'c', 'd']]);
  expect(circles([{ from: 'a', to: 'a' }])).toEqual([['a']]);
  expect(circles(chain.slice(0, 3))).toEqual([]);
});

/** The lines of a port's file that make something at run time, other than the classes of its errors. Pure. */
function runtimeCode(text: string): string[] {
  const withoutErrors = text.replace(/^export class \w+ extends Error \{\n[\s\S]*?^\}/gm, '');
  return withoutErrors.split('\n').filter((line) => {
    if (/^(export )?(abstract |async )?(function|const|let|var|class|enum)\b/.test(line)) return true;
    return /^import (?!type\b)/.test(line) || /^export (default\b|\*|\{)/.test(line);
  });
}

test('the ports of the agent are interfaces and types', () => {
  const found = sources('agent/ports').flatMap((file) =>
    runtimeCode(readFileSync(file, 'utf8')).map((line) => `${file}: ${line}`),
  );
  expect(found).toEqual([]);
});

test('runtime code in a port is found', () => {
  const error = "export class CallError extends Error {\n  override name = 'CallError';\n}\n";
  expect(runtimeCode(`import type { A } from './a.ts';\n${error}export interface B {}\nexport type C = 1;\n`)).toEqual(
    [],
  );
  for (const line of [
    'export const A = 1;',
    'function f() {}',
    "import { a } from './a.ts';",
    'export class A {',
    "export * from 'a';",
  ]) {
    expect(runtimeCode(`${error}${line}\n`)).toEqual([line]);
  }
});

test('no type of a protocol crosses a port of the agent', () => {
  const ports = imports.filter(({ from }) => from.startsWith('agent/ports/'));
  expect(ports.length).toBeGreaterThan(5);
  // A type that passes through another file counts too.
  const reached = new Set(ports.map(({ to }) => to));
  for (const file of reached) for (const { from, to } of imports) if (from === file) reached.add(to);
  expect([...reached].filter((file) => file.startsWith('proto/'))).toEqual([]);
  const libraries = sources('agent/ports').filter((file) => /from '@grpc\//.test(readFileSync(file, 'utf8')));
  expect(libraries).toEqual([]);
});

test('API objects are watched in agent/api alone', () => {
  const watching = imports.filter(({ from, to }) => from.startsWith('agent/') && to === 'client/reflector.ts');
  expect(watching.length).toBeGreaterThan(3);
  expect(watching.filter(({ from }) => !from.startsWith('agent/api/'))).toEqual([]);
});

test('in the API server, what is stored and who may is decided without HTTP', () => {
  const below = /^apiserver\/(registry|patch|auth)\//;
  expect(imports.some(({ from }) => below.test(from))).toBe(true);
  expect(imports.filter(({ from, to }) => below.test(from) && to.startsWith('apiserver/http/'))).toEqual([]);
});

/** File → why it makes or reads a time by itself. */
const OWN_TIMES: Readonly<Record<string, string>> = {
  'lib/cron-times.ts': 'the clock on the wall of a time zone, and calendar days',
  'lib/clock.ts': 'the clock',
  'lib/rfc3339.ts': 'the times of the API',
  'lib/certificate-time.ts': 'the times of certificates',
  'lib/trace.ts': 'a span begins by the wall clock and lasts by the monotonic one, both from one reading',
  'lib/self-signed.ts': 'the certificate library takes Dates',
  'apiserver/cel/times.ts': 'the expression library takes and returns Dates',
  'apiserver/pki/keys.ts': 'the certificate library takes Dates',
  'controlplane/controllers/certificates/request.ts': 'the certificate library takes Dates',
  'agent/server/log-files.ts': 'reads and prints the dates of HTTP',
  'cli/explain/clock-offset.ts': 'reads the Date header of HTTP',
  'cli/crictl/units.ts': 'prints Go’s times in the zone of the machine, and reads --since with parts left out',
};
const TIME_CALLS = /\bDate\.(now|parse|UTC)\b|\bnew Date\(|\.toISOString\(|\bperformance\.now\b/;

test('times are read, parsed and printed in one place', () => {
  const found = FLOORS.flat()
    .filter((folder) => folder !== 'scripts')
    .flatMap(sources)
    .filter((file) => TIME_CALLS.test(readFileSync(file, 'utf8').replace(/^\s*(\/\/|\/?\*).*$/gm, '')));
  expect(found.toSorted()).toEqual(Object.keys(OWN_TIMES).toSorted());
});

/** Files that wait in a loop of their own; each says in a comment what it waits for. */
const OWN_LOOPS = [
  'agent/node/node-agent.ts',
  'agent/volumes/csi/expander.ts',
  'cli/demo/watch-pod.ts',
  'cli/tap/recording-writer.ts',
  'client/api.ts',
  'client/recorder.ts',
  'labs/registry/pace.ts',
  'lib/machine.ts',
  'lib/retry.ts',
];

/** Whether a loop in it waits for time to pass. Pure. */
function hasOwnLoop(text: string): boolean {
  const loops = text.matchAll(/^( *)(?:while|for|do)\b.*\{\n([\s\S]*?)\n\1\}/gm);
  return [...loops].some(([loop]) => /sleep\w*\(|\bsetTimeout\(|\.after\(/i.test(loop));
}

test('node:http is taken as an object by lib/node-http.ts, for an import of its values loads all of undici', () => {
  const files = FLOORS.flat()
    .flatMap(sources)
    .filter((file) => file !== 'lib/node-http.ts');
  expect(files.filter((file) => /^import (?!type )[^;]*'(node:)?http';/m.test(readFileSync(file, 'utf8')))).toEqual([]);
});

test('what is tried, looked for or done again goes through lib/retry.ts', () => {
  const found = FLOORS.flat()
    .filter((folder) => folder !== 'scripts')
    .flatMap(sources)
    .filter((file) => hasOwnLoop(readFileSync(file, 'utf8')));
  expect(found.toSorted()).toEqual(OWN_LOOPS);
});

test('a loop that waits for time is found, one that does not is not', () => {
  expect(hasOwnLoop('  for (;;) {\n    await work();\n    await clock.sleep(5);\n  }\n')).toBe(true);
  expect(hasOwnLoop('  while (!signal.aborted) {\n    await sleepUnlessAborted(clock, 5, signal);\n  }\n')).toBe(true);
  expect(hasOwnLoop('  do {\n    setTimeout(work, 5);\n  } while (again);\n')).toBe(true);
  expect(hasOwnLoop('  for (const one of all) {\n    await work(one);\n  }\n  await clock.sleep(5);\n')).toBe(false);
});

/** Programs that serve others all the time. */
const SERVERS = ['agent/', 'apiserver/', 'controlplane/', 'csi/', 'dns/', 'dockershim/', 'netpol/', 'proxy/'];

test('no server reads the process table: a process that is stuck with its memory locked would stop it as well', () => {
  const reached = new Set(
    imports.flatMap(({ from }) => (SERVERS.some((folder) => from.startsWith(folder)) ? [from] : [])),
  );
  for (const file of reached) for (const { from, to } of imports) if (from === file) reached.add(to);
  expect(reached.has('lib/exec.ts')).toBe(true);
  expect([...reached].filter((file) => file === 'lib/processes.ts')).toEqual([]);
  // Commands do, under this very name.
  expect(imports.some(({ to }) => to === 'lib/processes.ts')).toBe(true);
});

test('nothing that runs imports a test', () => {
  expect(imports.filter(({ to }) => floorOf(to) === -1)).toEqual([]);
});

test('the rooms of the agent meet in agent/ports, agent/model and agent/config alone', () => {
  const wrong = imports.filter(({ from, to }) => {
    const [mine, other] = [roomOf(from), roomOf(to)];
    if (mine === COMPOSITION) return false;
    return mine !== undefined && other !== undefined && mine !== other && !SHARED_ROOMS.has(other);
  });
  expect(wrong).toEqual([]);
});
