// An HTML document that loads nothing from elsewhere: style and scripts are in it, and browsers refuse the rest. Pure.

/** A text as markup (HTML, SVG) shows it, between tags and in an attribute's double quotes. XML 1.0 has few control characters. */
export const escapeMarkup = (text: string): string =>
  text
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '\ufffd')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');

export interface HtmlDocument {
  /** Plain text. */
  readonly title: string;
  /** CSS. */
  readonly style: string;
  /** Content-Security-Policy: what the document may do beside having a style. */
  readonly allows: readonly string[];
  /** Markup. */
  readonly body: string;
}

export function htmlDocument({ title, style, allows, body }: HtmlDocument): string {
  const policy = ["default-src 'none'", "style-src 'unsafe-inline'", ...allows].join('; ');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<title>${escapeMarkup(title)}</title>
<style>
${style}
</style>
</head>
<body>
${body}
</body>
</html>
`;
}
