// Observations by what expressions look for: objects of the API by kind and name, containers by name, spans by name. Reads
// what is new since the last time, so that a condition that is evaluated a thousand times reads everything once.

import type {
  ContainerObservation,
  ObjectObservation,
  Observation,
  SampleObservation,
  SpanObservation,
  StepObservation,
} from '../observation.ts';

function append<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}

export class ObservationIndex {
  readonly #observations: readonly Observation[];
  #read = 0;
  /** By "Kind namespace/name", oldest version first. */
  readonly #objects = new Map<string, ObjectObservation[]>();
  readonly #kinds = new Map<string, ObjectObservation[]>();
  readonly #containers = new Map<string, ContainerObservation[]>();
  readonly #spans = new Map<string, SpanObservation[]>();
  readonly #samples = new Map<string, SampleObservation[]>();
  readonly #steps: StepObservation[] = [];

  constructor(observations: readonly Observation[]) {
    this.#observations = observations;
  }

  /** What the runner did; a world knows nothing of steps. */
  addStep(step: StepObservation): void {
    this.#steps.push(step);
  }

  #update(): void {
    for (; this.#read < this.#observations.length; this.#read++) {
      const observation = this.#observations[this.#read];
      if (observation !== undefined) this.#add(observation);
    }
  }

  #add(observation: Observation): void {
    switch (observation.type) {
      case 'object': {
        const { kind, metadata } = observation.object;
        append(this.#objects, `${kind} ${metadata.namespace ?? ''}/${metadata.name}`, observation);
        append(this.#kinds, kind, observation);
        break;
      }
      case 'container':
        append(this.#containers, observation.container, observation);
        break;
      case 'span':
        append(this.#spans, observation.span.name, observation);
        break;
      case 'sample':
        append(this.#samples, observation.series, observation);
        break;
      case 'step':
        this.#steps.push(observation);
    }
  }

  /**
   * The versions of every object of a kind and name; without a namespace, of the only namespace that has it, or of the one
   * that was first.
   */
  versions(kind: string, name: string, namespace: string | undefined): readonly ObjectObservation[] {
    this.#update();
    if (namespace !== undefined) return this.#objects.get(`${kind} ${namespace}/${name}`) ?? [];
    const first = (this.#kinds.get(kind) ?? []).find(({ object }) => object.metadata.name === name);
    if (first === undefined) return [];
    return this.#objects.get(`${kind} ${first.object.metadata.namespace ?? ''}/${name}`) ?? [];
  }

  ofKind(kind: string): readonly ObjectObservation[] {
    this.#update();
    return this.#kinds.get(kind) ?? [];
  }

  containerNames(): readonly string[] {
    this.#update();
    return [...this.#containers.keys()];
  }

  container(name: string): readonly ContainerObservation[] {
    this.#update();
    return this.#containers.get(name) ?? [];
  }

  spanNames(): readonly string[] {
    this.#update();
    return [...this.#spans.keys()];
  }

  spans(name: string): readonly SpanObservation[] {
    this.#update();
    return this.#spans.get(name) ?? [];
  }

  samples(series: string): readonly SampleObservation[] {
    this.#update();
    return this.#samples.get(series) ?? [];
  }

  steps(): readonly StepObservation[] {
    this.#update();
    return this.#steps;
  }
}
