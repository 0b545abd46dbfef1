// Several errors as one text. Pure.

/** Several failures as the API machinery prints an aggregate: each once; one stays itself, more become "[a, b]". */
export function aggregate(messages: readonly string[]): string {
  const unique = [...new Set(messages)];
  return unique.length === 1 ? (unique[0] ?? '') : `[${unique.join(', ')}]`;
}
