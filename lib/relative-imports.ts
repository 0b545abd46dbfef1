// Resolves the imports between the files of this tree by their text alone. Node asks the file system for each import of each
// file whether there is such a file, where links lead and which package.json says what kind of module it is: the 330 files
// of an agent import each other 2,000 times, which takes a sixth of its processor time until all is loaded. Here the answer
// is known: a path that begins with a dot and ends in ".ts" is a TypeScript module, and no file of the tree is a link (the
// first one was resolved by Node, links and all). A file that is missing is reported when it is read. Never touches the
// imports of packages, nor what is imported by them.

import { type RegisterHooksOptions, registerHooks } from 'node:module';

const RELATIVE = /^\.\.?\/.*\.ts$/;

/** Node's hook: https://nodejs.org/docs/latest-v24.x/api/module.html#resolvespecifier-context-nextresolve */
export const resolveRelative: NonNullable<RegisterHooksOptions['resolve']> = (specifier, context, next) => {
  const { parentURL } = context;
  if (parentURL === undefined || !RELATIVE.test(specifier) || parentURL.includes('/node_modules/')) {
    return next(specifier, context);
  }
  return { url: new URL(specifier, parentURL).href, format: 'module-typescript', shortCircuit: true };
};

/** For everything that this process imports from now on. */
export function resolveRelativeImports(): void {
  registerHooks({ resolve: resolveRelative });
}
