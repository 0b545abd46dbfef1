// From a tap's recording to spans: what any kubelet asked of any runtime becomes the CRI lane of a timeline, with the runtime's
// events. Reads the file; what a call means is decided elsewhere.

import { type EpochMs, plusMs } from '../../lib/clock.ts';
import { getOwn } from '../../lib/own-property.ts';
import type { Span, SpanAttributes, TracePod } from '../../lib/trace.ts';
import { type DecodedCall, decodeCall } from '../tap/decoded.ts';
import { Names } from '../tap/names.ts';
import { type RecordedCall, readRecording } from '../tap/recording.ts';
import { loadSchema } from '../tap/schema.ts';
import type { JsonMessage } from '../tap/wire.ts';
import type { Evidence } from './model.ts';

type Value = JsonMessage[string] | undefined;

const isMessage = (value: Value): value is JsonMessage => typeof value === 'object' && !Array.isArray(value);

/** The text at a path of field names; undefined where there is none. */
function textAt(message: JsonMessage | undefined, ...path: readonly string[]): string | undefined {
  const value = path.reduce<Value>((each, name) => (isMessage(each) ? getOwn(each, name) : undefined), message);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** "demo/web" as a pod; a recording may know a pod by its name alone, and names it again under the same uid. */
function podOf(name: string | undefined, uids: ReadonlyMap<string, string>): { readonly pod?: TracePod } {
  const slash = name?.indexOf('/') ?? -1;
  if (name === undefined || slash < 0) return {};
  return { pod: { namespace: name.slice(0, slash), name: name.slice(slash + 1), uid: uids.get(name) ?? name } };
}

/** What the call is about, by the names that spans of nodelet have. */
function attributesOf({ name, requests, responses, subject }: DecodedCall): SpanAttributes {
  const request = requests[0]?.message;
  const response = responses[0]?.message;
  const image = textAt(request, 'image', 'image') ?? textAt(request, 'config', 'image', 'image');
  const created = textAt(response, 'container_id');
  return {
    container: name === 'CreateContainer' ? subject.container : textAt(request, 'container_id'),
    ...(subject.container === undefined ? {} : { containerName: subject.container }),
    sandbox: textAt(request, 'pod_sandbox_id'),
    ...(name === 'CreateContainer' && created !== undefined ? { id: created } : {}),
    ...(name === 'RunPodSandbox' ? { id: textAt(response, 'pod_sandbox_id') } : {}),
    image,
    attempt: textAt(request, 'config', 'metadata', 'attempt'),
  };
}

/** The newest uid of each pod, from the sandboxes that were made. */
function learnUid({ name, requests, subject }: DecodedCall, uids: Map<string, string>): void {
  const uid = textAt(requests[0]?.message, 'config', 'metadata', 'uid');
  if (name === 'RunPodSandbox' && uid !== undefined && subject.pod !== undefined) uids.set(subject.pod, uid);
}

interface Numbered {
  next(): number;
}

function spansOf(
  call: DecodedCall,
  start: EpochMs,
  uids: ReadonlyMap<string, string>,
  names: Names,
  ids: Numbered,
): Span[] {
  const { begin, end } = call.call;
  if (call.type?.responseStream === true)
    return call.responses.map(({ at, message }) => {
      const id = textAt(message, 'container_id');
      return {
        id: ids.next(),
        kind: 'cri',
        name: textAt(message, 'container_event_type') ?? call.name,
        ...podOf(names.subject(message).pod ?? (id === undefined ? undefined : names.pod(id)), uids),
        start: plusMs(start, at),
        durationMs: 0,
        outcome: 'ok',
        attributes: { containerId: id },
      };
    });
  const failed = call.status !== 'OK' && end !== undefined;
  return [
    {
      id: ids.next(),
      kind: 'cri',
      name: call.name,
      ...podOf(call.subject.pod, uids),
      start: plusMs(start, begin),
      durationMs: (end?.at ?? begin) - begin,
      outcome: failed ? 'error' : 'ok',
      ...(failed ? { error: `${call.status} ${end.message ?? ''}`.trim() } : {}),
      attributes: { ...attributesOf(call), ...(end === undefined ? { open: true } : {}) },
    },
  ];
}

/** Takes calls one by one, in the order of their ends. */
export class TapSpans {
  readonly #schema = loadSchema();
  readonly #names = new Names();
  readonly #uids = new Map<string, string>();
  #last = 0;

  /** What a call has shown of names and uids is known from now on. */
  decode(call: RecordedCall): DecodedCall {
    const decoded = decodeCall(call, this.#schema, this.#names);
    learnUid(decoded, this.#uids);
    return decoded;
  }

  /** `start`: of the recording. */
  spans(call: DecodedCall, start: EpochMs): Span[] {
    return spansOf(call, start, this.#uids, this.#names, { next: () => ++this.#last });
  }
}

/** Rejects with UserError for what is no recording. */
export async function tapEvidence(path: string): Promise<Evidence> {
  const tap = new TapSpans();
  const decoded: { readonly call: DecodedCall; readonly start: EpochMs }[] = [];
  const info = await readRecording(path, (recorded, start) => void decoded.push({ call: tap.decode(recorded), start }));
  const spans = decoded.flatMap(({ call, start }) => tap.spans(call, start));
  return { source: path, spans, objects: [], problems: info.problems };
}
