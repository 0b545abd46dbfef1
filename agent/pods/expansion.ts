// $(VAR) expansion in environment values, command and args. Pure.

const REFERENCE = /\$(\$|\(([^)]*)\))/g;

/**
 * Replaces `$(NAME)` by what `lookup` knows; a name it does not know stays as it is written, and `$$` stands for one
 * dollar sign, so that `$$(NAME)` is the text `$(NAME)`.
 */
export function expand(text: string, lookup: (name: string) => string | undefined): string {
  return text.replace(REFERENCE, (reference, inner: string, name: string | undefined) => {
    if (inner === '$') return '$';
    return (name === undefined ? undefined : lookup(name)) ?? reference;
  });
}

/** A command line or argument list, expanded with the container's environment. */
export function expandAll(
  texts: readonly string[],
  env: readonly { readonly name: string; readonly value: string }[],
): string[] {
  const values = new Map(env.map(({ name, value }) => [name, value]));
  return texts.map((text) => expand(text, (name) => values.get(name)));
}
