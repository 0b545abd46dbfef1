// The first page of `nodelet ui`: all pods, with links to their timelines. Its rows are filled by the page's script.

import { htmlDocument } from '../../lib/html.ts';
import { pageScript, pageStyle } from '../timeline/page-script.ts';

const SCRIPTS = ['model.ts', 'page/elements.ts', 'page/list.ts'];

export async function renderList(): Promise<string> {
  const [style, script] = await Promise.all([pageStyle(), pageScript(SCRIPTS)]);
  return htmlDocument({
    title: 'nodelet: pods',
    style,
    allows: ["script-src 'unsafe-inline'", "connect-src 'self'", "form-action 'self'"],
    body: `<header><h1>Pods of this node</h1><p id="connection" role="status">connecting</p><div id="problems" role="alert"></div></header>
<main>
<form action="/timeline" method="get">
<div class="tools"><a href="/timeline">everything the agent does</a><button type="submit" id="compare">compare A with B</button></div>
<div class="tables"><section id="pods" aria-label="Pods"></section></div>
</form>
</main>
<script>
${script}
</script>`,
  });
}
