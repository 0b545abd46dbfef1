// The script of the list of pods in `nodelet ui`. Put into the page as it is, without its types, after model.ts and
// elements.ts.

import type { PodRow } from '../../ui/store.ts';
import { durationText } from '../model.ts';
import { byId, followData, table } from './elements.ts';

const COLUMNS = ['A', 'B', 'pod', 'state', 'create to Ready', 'restarts', 'failed calls', 'last call (UTC)'];

interface Answer {
  readonly pods: readonly PodRow[];
  readonly problems: readonly string[];
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
  const rows = pods.map((pod) => [
    choice('pod', pod.name, a),
    choice('with', pod.name, b),
    link(pod.name),
    state(pod),
    startText(pod),
    pod.restarts === 0 ? '' : String(pod.restarts),
    pod.failed === 0 ? '' : String(pod.failed),
    pod.last,
  ]);
  const made = table(`${pods.length} pods`, COLUMNS, rows);
  byId('pods').replaceChildren(made);
  // The rows are new elements: the one that had the focus gets it again.
  for (const field of made.querySelectorAll('a, input')) {
    if (!(field instanceof HTMLElement)) continue;
    const isFocused =
      field instanceof HTMLAnchorElement ? field.href === focusedLink : field.getAttribute('aria-label') === focused;
    if (isFocused) field.focus();
  }
  byId('problems').textContent = problems.join('; ');
}

const readPods = followData('/pods', '/events?pods=all', show);
readPods();
