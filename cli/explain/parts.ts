// The parts of a pod or a Service for rules that look at one after the other: its facts with one container alone, one volume, or one
// port. What is known to be about another part is left out, so that a rule does not take another container's event or call for this
// one's. Pure.

import type { PodSpec } from '../../client/types.ts';
import { claimNameOf } from '../../controlplane/storage/objects.ts';
import type { Span } from '../../lib/trace.ts';
import type { PodFacts, ServiceFacts } from './facts.ts';

type Named = { readonly name: string };
type Volume = NonNullable<PodSpec['volumes']>[number];

/** Init containers first, each in the order of the spec. */
export function eachContainer(facts: PodFacts): readonly PodFacts[] {
  const { initContainers = [], containers } = facts.pod.spec;
  return [...initContainers, ...containers].map(({ name }) => withContainer(facts, name));
}

function withContainer(facts: PodFacts, name: string): PodFacts {
  const { pod, events, spans } = facts;
  const { spec, status } = pod;
  const own = <T extends Named>(all: readonly T[] | undefined): T[] => (all ?? []).filter((each) => each.name === name);
  const image = [...(spec.initContainers ?? []), ...spec.containers].find((each) => each.name === name)?.image ?? '';
  return {
    ...facts,
    pod: {
      ...pod,
      spec: { ...spec, initContainers: own(spec.initContainers), containers: own(spec.containers) },
      status: {
        ...status,
        initContainerStatuses: own(status?.initContainerStatuses),
        containerStatuses: own(status?.containerStatuses),
      },
    },
    events: events.filter(({ container = name }) => container === name),
    spans: spans.filter(
      ({ attributes: { container = name, image: pulled = image } }) => container === name && pulled === image,
    ),
  };
}

/** In the order of the spec. */
export function eachVolume(facts: PodFacts): readonly PodFacts[] {
  const { volumes = [] } = facts.pod.spec;
  return volumes.map((volume) => withVolume(facts, volume));
}

/** By which events call it: its own name, and that of its PersistentVolume. */
function namesOf(facts: PodFacts, volume: Volume): readonly string[] {
  const lookup = facts.references.claims.get(claimNameOf(facts.pod, volume) ?? '');
  const bound = lookup?.state === 'found' ? lookup.value.volume?.metadata.name : undefined;
  return [volume.name, ...(bound === undefined ? [] : [bound])];
}

function withVolume(facts: PodFacts, volume: Volume): PodFacts {
  const { pod, events, spans, references } = facts;
  const claim = claimNameOf(facts.pod, volume);
  const others = (pod.spec.volumes ?? []).filter((each) => each !== volume).flatMap((each) => namesOf(facts, each));
  return {
    ...facts,
    pod: { ...pod, spec: { ...pod.spec, volumes: [volume] } },
    references: { ...references, claims: new Map([...references.claims].filter(([name]) => name === claim)) },
    events: events.filter(({ message }) => !others.some((name) => message.includes(`for volume "${name}"`))),
    spans: withoutThose(spans, ({ name, attributes }) => {
      const about = attributes['volume'];
      return name.startsWith('MountVolume.') && typeof about === 'string' && others.includes(about);
    }),
  };
}

/** Without these and all that ran inside them. */
function withoutThose(spans: readonly Span[], excluded: (span: Span) => boolean): readonly Span[] {
  const byId = new Map(spans.map((span) => [span.id, span]));
  const isOut = (span: Span | undefined): boolean =>
    span !== undefined && (excluded(span) || (span.parent !== undefined && isOut(byId.get(span.parent))));
  return spans.filter((span) => !isOut(span));
}

/** In the order of the spec. */
export function eachPort(facts: ServiceFacts): readonly ServiceFacts[] {
  const { service } = facts;
  return (service.spec?.ports ?? []).map((port) => ({
    ...facts,
    service: { ...service, spec: { ...service.spec, ports: [port] } },
  }));
}
