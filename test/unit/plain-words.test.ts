// Code, comments, log messages, errors and test titles use the field's words: a component reports, returns, sends or
// records, and is named. These words are what a private, personified style is made of. Only the words are checked.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOTS = [
  'agent',
  'apiserver',
  'cli',
  'client',
  'cni',
  'controlplane',
  'csi',
  'dns',
  'dockershim',
  'labs',
  'lib',
  'netpol',
  'proto',
  'proxy',
  'scripts',
];

/** Not written by hand; the list itself. */
const EXEMPT = /\/gen\/|plain-words\.test\.ts$/;

/** Not in comments, titles and messages. */
const PROSE =
  /\b(told|nobody|somebody|anybody|whoever|strangers?|condemn\w*|judges?|judged|lets? go|looked at|keeps? house|said)\b/i;

/** Not a word of an identifier: `toldAt` is `told` and `at`. */
const IDENTIFIER_WORDS: ReadonlySet<string> = new Set(
  'told said asked promised nobody somebody whoever stranger strangers condemned doomed judged'.split(' '),
);

const IDENTIFIERS: ReadonlySet<string> = new Set(
  'heldBack judgedBy keepHouse letGo lookAtMachine spareLook wasThrough'.split(' '),
);

/** Names in messages that are not ours: Unix accounts, a user of the API, kubectl's output. */
const NAMES = /serviceaccount "nobody"|\/nobody: |--as=nobody|User "nobody"|'nobody'|"nobody"|&nobody\b/g;

interface Parts {
  readonly code: string;
  readonly prose: readonly string[];
}

const TOKEN = /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\[\s\S])*`/g;

/** Where the text before a string shows that people read it: a title, a log message, an error, a flag's help. */
const READ_BY_PEOPLE =
  /(?:\b(?:it|test|description|describe|fully)\b[\w.]*(?:\([^()'"`]*\))?\(\s*|\]\)\(|\b\w*[oO]ption\(\s*'-[^'\n]*',\s*|\blog\??\.?\(\s*'\w+',\s*|\bnew \w*Error\()$/;

/** Comments, titles and messages apart from the code. Variables in a template are code. */
function partsOf(text: string): Parts {
  let code = '';
  let end = 0;
  const prose: string[] = [];
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    code += text.slice(end, index);
    end = index + token.length;
    if (token.startsWith('/')) prose.push(token);
    else {
      if (READ_BY_PEOPLE.test(text.slice(Math.max(0, index - 60), index)))
        prose.push(token.replace(/\$\{[^}]*\}/g, ''));
      for (const [, inner = ''] of token.startsWith('`') ? token.matchAll(/\$\{([^}]*)\}/g) : []) code += ` ${inner} `;
    }
  }
  return { code: code + text.slice(end), prose };
}

function words(identifier: string): readonly string[] {
  return identifier.split(/(?=[A-Z])|_|\d/).map((word) => word.toLowerCase());
}

function offences(text: string): string[] {
  const { code, prose } = partsOf(text);
  const identifiers = code.match(/[A-Za-z_]\w*/g) ?? [];
  return [
    ...prose.filter((each) => PROSE.test(each.replace(NAMES, ''))),
    ...new Set(
      identifiers.filter((name) => IDENTIFIERS.has(name) || words(name).some((word) => IDENTIFIER_WORDS.has(word))),
    ),
  ];
}

function files(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name));
}

test('code, comments, messages and titles have none of the words', () => {
  const all = [...ROOTS, 'test'].flatMap(files).filter((path) => !EXEMPT.test(path));
  expect(all.length).toBeGreaterThan(1000);
  expect(
    all.flatMap((path) => offences(readFileSync(path, 'utf8')).map((each) => `${path}: ${each.slice(0, 150)}`)),
  ).toEqual([]);
});

test.for([
  ['// The runtime is told of it.'],
  ['/** Whoever waits\n * for the pod. */'],
  ["it('lets go of the pod', () => {"],
  ["test.each(rows)('is said once', () => {"],
  ["log('warn', 'nobody listens', {});"],
  ['throw new UserError(`\u0024{path} is somebody’s`);'],
  ['const toldAt = 1;'],
  ['const text = `\u0024{said}`;'],
  ["command.option('--keep', 'what nobody needs');"],
  ['this.#letGo();'],
])('%j is found', ([text = '']) => expect(offences(text)).not.toEqual([]));

test.for([
  ["const path = '/shared/said';"],
  ['// The given names, and what a container holds.'],
  ["it('refuses the user', () => call('nobody'));"],
  ['throw new Error(\'serviceaccount "nobody" not found\');'],
  ['const threshold = household;'],
])('%j passes', ([text = '']) => expect(offences(text)).toEqual([]));
