// The files of page/ as they are put into a page: scripts without their types, the style as it is. What comes from the trace
// is data, and never markup.

import { readFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { fileURLToPath } from 'node:url';

const read = (name: string): Promise<string> => readFile(fileURLToPath(new URL(name, import.meta.url)), 'utf8');

export const pageStyle = (): Promise<string> => read('page/style.css');

/** Files of this folder that import nothing but types and each other, in the order in which they need each other, as one script. */
export async function pageScript(names: readonly string[]): Promise<string> {
  const bodies = (await Promise.all(names.map(read))).map((source) =>
    stripTypeScriptTypes(source)
      .replace(/^import\b[^;]*;$/gm, '')
      .replace(/^export /gm, '')
      .split('\n')
      .map((line) => line.trimEnd())
      .filter((line) => line !== '')
      .join('\n'),
  );
  return `(() => {\n'use strict';\n${bodies.join('\n')}\n})();`;
}

/** JSON that ends no script element, whatever its texts are. */
export const scriptJson = (value: unknown): string => JSON.stringify(value).replaceAll('<', '\\u003c');
