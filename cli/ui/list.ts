// The first page of `nodelet ui`: all pods, with links to their timelines. Its rows are filled by the page's script.

import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { pageScript } from '../timeline/html.ts';

const SCRIPTS = ['../timeline/model.ts', '../timeline/page/list.ts'];
const STYLE = '../timeline/page/style.css';

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

export async function renderList(): Promise<string> {
  const [style, ...sources] = await Promise.all([STYLE, ...SCRIPTS].map((name) => readFile(here(name), 'utf8')));
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; form-action 'self'">
<title>nodelet: pods</title>
<style>
${style}</style>
</head>
<body>
<header><h1>Pods of this node</h1><p id="connection" role="status">connecting</p><div id="problems" role="alert"></div></header>
<main>
<form action="/timeline" method="get">
<div class="tools"><a href="/timeline">everything the agent does</a><button type="submit" id="compare">compare A with B</button></div>
<div class="tables"><section id="pods" aria-label="Pods"></section></div>
</form>
</main>
<script>
${pageScript(sources)}
</script>
</body>
</html>
`;
}
