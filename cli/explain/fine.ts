// What is all right already: the steps that lie behind. Pure.

import { elapsedMs } from '../../lib/clock.ts';
import { parseRfc3339 } from '../../lib/rfc3339.ts';
import type { PodFacts } from './facts.ts';
import { condition, containers, hasStarted, isEnded, isScheduled } from './pod-view.ts';
import { duration, list, plural } from './words.ts';

export function finePod(facts: PodFacts): readonly string[] {
  if (!isScheduled(facts) || isEnded(facts)) return [];
  const { pod, now, nodes } = facts;
  const fine: string[] = [];
  const node = pod.spec.nodeName ?? '';
  const scheduledAt = parseRfc3339(condition(facts, 'PodScheduled')?.lastTransitionTime);
  fine.push(
    `it is on node ${node}${scheduledAt === undefined ? '' : `, for ${duration(elapsedMs(scheduledAt, now))}`}`,
  );
  const ready = nodes
    .find(({ metadata }) => metadata.name === node)
    ?.status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready?.status === 'True') fine.push('its node is Ready');
  const sandbox = condition(facts, 'PodReadyToStartContainers')?.status === 'True';
  if (sandbox) {
    const volumes = pod.spec.volumes?.length ?? 0;
    const ip = pod.status?.podIP;
    const mounted = volumes === 0 ? '' : `${plural(volumes, 'volume')} mounted, `;
    fine.push(`${mounted}sandbox and network are there${ip === undefined ? '' : `, address ${ip}`}`);
  }
  const views = containers(facts);
  const running = views.filter(({ status }) => status?.state?.running !== undefined).map(({ spec }) => spec.name);
  if (running.length > 0)
    fine.push(
      `${running.length === 1 ? 'container' : 'containers'} ${list(running)} ${running.length === 1 ? 'runs' : 'run'}`,
    );
  const done = views
    .filter(({ init, status }) => init && status?.state?.terminated?.exitCode === 0)
    .map(({ spec }) => spec.name);
  if (done.length > 0) fine.push(`init ${done.length === 1 ? 'container' : 'containers'} ${list(done)} succeeded`);
  if (!hasStarted(facts) && facts.events.some(({ reason }) => reason === 'Pulled'))
    fine.push('its image is on the node');
  return fine;
}
