// The script of the list of pods in `nodelet ui`. Put into the page as it is, without its types, after model.ts.

import type { PodRow } from '../../ui/store.ts';
import { durationText } from '../model.ts';

interface Answer {
  readonly pods: readonly PodRow[];
  readonly problems: readonly string[];
}

function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no element "${id}"`);
  return found;
}

function cell(...content: readonly (string | HTMLElement)[]): HTMLElement {
  const made = document.createElement('td');
  made.append(...content);
  return made;
}

function link(name: string): HTMLElement {
  const made = document.createElement('a');
  made.href = `/timeline?pod=${encodeURIComponent(name)}`;
  made.textContent = name;
  return made;
}

function choice(group: 'pod' | 'with', name: string, chosen: string | undefined): HTMLElement {
  const made = document.createElement('input');
  made.type = 'radio';
  made.name = group;
  made.value = name;
  made.checked = chosen === name;
  made.setAttribute('aria-label', `${name} is ${group === 'pod' ? 'A' : 'B'}`);
  return made;
}

const chosenIn = (group: string): string | undefined => {
  const found = document.querySelector(`input[name="${group}"]:checked`);
  return found instanceof HTMLInputElement ? found.value : undefined;
};

function state({ phase, ready, deleted }: PodRow): string {
  if (deleted) return 'deleted';
  return ready ? 'Ready' : phase === '' ? 'not known' : phase;
}

function startText({ startMs, uncertainMs }: PodRow): string {
  if (startMs === undefined) return '';
  return uncertainMs > 0 ? `about ${Math.max(0, Math.round(startMs / 1000))} s` : durationText(startMs);
}

function show({ pods, problems }: Answer): void {
  const [a, b] = [chosenIn('pod'), chosenIn('with')];
  const focused =
    document.activeElement instanceof HTMLElement ? document.activeElement.getAttribute('aria-label') : null;
  const focusedLink = document.activeElement instanceof HTMLAnchorElement ? document.activeElement.href : '';
  const table = document.createElement('table');
  const caption = document.createElement('caption');
  caption.textContent = `${pods.length} pods`;
  const head = document.createElement('thead');
  const headRow = document.createElement('tr');
  for (const text of ['A', 'B', 'pod', 'state', 'create to Ready', 'restarts', 'failed calls', 'last call (UTC)']) {
    const made = document.createElement('th');
    made.scope = 'col';
    made.textContent = text;
    headRow.append(made);
  }
  head.append(headRow);
  const body = document.createElement('tbody');
  for (const pod of pods) {
    const row = document.createElement('tr');
    row.append(
      cell(choice('pod', pod.name, a)),
      cell(choice('with', pod.name, b)),
      cell(link(pod.name)),
      cell(state(pod)),
      cell(startText(pod)),
      cell(pod.restarts === 0 ? '' : String(pod.restarts)),
      cell(pod.failed === 0 ? '' : String(pod.failed)),
      cell(pod.last),
    );
    body.append(row);
  }
  table.append(caption, head, body);
  byId('pods').replaceChildren(table);
  // The rows are new elements: the one that had the focus gets it again.
  for (const element of table.querySelectorAll('a, input')) {
    if (!(element instanceof HTMLElement)) continue;
    const isFocused =
      element instanceof HTMLAnchorElement
        ? element.href === focusedLink
        : element.getAttribute('aria-label') === focused;
    if (isFocused) element.focus();
  }
  byId('problems').textContent = problems.join('; ');
}

const connection = byId('connection');
let reading = false;
let again = false;

async function read(): Promise<void> {
  if (reading) {
    again = true;
    return;
  }
  reading = true;
  again = false;
  try {
    const response = await fetch('/pods');
    if (response.ok) show(await response.json());
    else connection.textContent = `not up to date: ${await response.text()}`;
  } catch (error) {
    connection.textContent = `not up to date: ${String(error)}`;
  } finally {
    reading = false;
  }
  if (again) await read();
}

const source = new EventSource('/events?pods=all');
source.addEventListener('message', () => void read());
source.addEventListener('open', () => {
  connection.textContent = 'live';
});
source.addEventListener('error', () => {
  connection.textContent = 'nodelet ui does not answer: what is shown is the last that it sent';
});
void read();
