// A recorded trace: JSON lines as the trace socket sends them (`nodelet trace --json`), and between them versions of pods as
// {"record":"pod","at":<epoch ms>,"object":{…}}. Pure; a damaged line is reported and left out.

import type { Pod } from '../../client/types.ts';
import { epochMs } from '../../lib/clock.ts';
import type { Span } from '../../lib/trace.ts';
import { isJsonObject } from '../tap/json.ts';
import type { Evidence, ObjectVersion } from './model.ts';

function isSpan(value: unknown): value is Span {
  return (
    isJsonObject(value) &&
    typeof value['id'] === 'number' &&
    typeof value['kind'] === 'string' &&
    typeof value['name'] === 'string' &&
    typeof value['start'] === 'number' &&
    typeof value['durationMs'] === 'number' &&
    (value['outcome'] === 'ok' || value['outcome'] === 'error') &&
    isJsonObject(value['attributes'])
  );
}

function isPod(value: unknown): value is Pod {
  if (!isJsonObject(value) || !isJsonObject(value['spec'])) return false;
  const metadata = value['metadata'];
  return isJsonObject(metadata) && typeof metadata['name'] === 'string' && typeof metadata['uid'] === 'string';
}

function versionIn(value: unknown): ObjectVersion | undefined {
  if (!isJsonObject(value)) return undefined;
  const { record, at, object, kind } = value;
  // A pod as `kubectl get pod -o json` prints it on one line.
  if (kind === 'Pod' && isPod(value)) return { at: undefined, object: value };
  if (record !== 'pod' || !isPod(object)) return undefined;
  return { at: typeof at === 'number' ? epochMs(at) : undefined, object };
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Takes a recording line by line. */
export class EvidenceReader {
  readonly #spans: Span[] = [];
  readonly #objects: ObjectVersion[] = [];
  readonly #problems: string[] = [];
  #lines = 0;

  push(line: string): void {
    this.#lines++;
    if (line.trim() === '') return;
    const value = parseLine(line);
    const version = versionIn(value);
    if (isSpan(value)) this.#spans.push(value);
    else if (version !== undefined) this.#objects.push(version);
    else this.#problems.push(`line ${this.#lines} is neither a span nor a version of a pod, and is left out`);
  }

  get isEmpty(): boolean {
    return this.#spans.length === 0 && this.#objects.length === 0;
  }

  finish(source: string): Evidence {
    return { source, spans: this.#spans, objects: this.#objects, problems: this.#problems };
  }
}

/** The same evidence as lines of a recording. */
export function recordingLines({ spans, objects }: Evidence): string[] {
  return [
    ...objects.map(({ at, object }) => JSON.stringify({ record: 'pod', ...(at === undefined ? {} : { at }), object })),
    ...spans.map((span) => JSON.stringify(span)),
  ];
}
