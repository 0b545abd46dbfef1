// `$(NAME)` references in commands, arguments and environment values, by the API's rules: `$$` is one dollar, a
// reference to an unknown name stays as it is written, and everything else is literal. It never fails.

/** Replaces every `$(NAME)` for which `lookup` returns a value. The result is not expanded again. */
export function expandVariables(text: string, lookup: (name: string) => string | undefined): string {
  if (!text.includes('$')) return text;
  let out = '';
  let at = 0;
  for (;;) {
    const dollar = text.indexOf('$', at);
    if (dollar < 0 || dollar === text.length - 1) return out + text.slice(at);
    out += text.slice(at, dollar);
    const next = text[dollar + 1];
    const close = next === '(' ? text.indexOf(')', dollar + 2) : -1;
    if (close > 0) {
      const name = text.slice(dollar + 2, close);
      out += lookup(name) ?? `$(${name})`;
      at = close + 1;
    } else {
      out += next === '$' ? '$' : `$${next}`;
      at = dollar + 2;
    }
  }
}
