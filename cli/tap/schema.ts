// What methods take and answer, by the .proto files in proto/: CRI, and the services of containerd that an agent calls on
// the same socket. Describes types only; calls nothing.

import { loadProto } from '../../proto/load.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import type { FieldKind, FieldType, MessageType } from './wire.ts';

export interface MethodType {
  /** "RunPodSandbox" */
  readonly name: string;
  readonly request: MessageType;
  readonly response: MessageType;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
}

export interface Schema {
  /** By path: "/runtime.v1.RuntimeService/Version". Undefined for what no .proto file describes. */
  method(path: string): MethodType | undefined;
}

const KINDS: ReadonlyMap<unknown, FieldKind> = new Map<unknown, FieldKind>([
  ['TYPE_MESSAGE', 'message'],
  ['TYPE_ENUM', 'enum'],
  ['TYPE_STRING', 'string'],
  ['TYPE_BYTES', 'bytes'],
  ['TYPE_BOOL', 'bool'],
  ['TYPE_INT32', 'int'],
  ['TYPE_INT64', 'int'],
  ['TYPE_UINT32', 'uint'],
  ['TYPE_UINT64', 'uint'],
  ['TYPE_SINT32', 'sint'],
  ['TYPE_SINT64', 'sint'],
  ['TYPE_FIXED32', 'fixed'],
  ['TYPE_FIXED64', 'fixed'],
  ['TYPE_FLOAT', 'float'],
  ['TYPE_DOUBLE', 'float'],
]);

const objects = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.filter(isJsonObject) : []);
const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** All types that loadProto found in a package, by their names. */
class Types {
  readonly #messages = new Map<string, JsonObject>();
  readonly #enums = new Map<string, JsonObject>();
  readonly #resolved = new Map<JsonObject, MessageType>();

  add(definition: unknown): void {
    if (!isJsonObject(definition)) return;
    for (const value of Object.values(definition)) {
      if (!isJsonObject(value)) continue;
      if (!('format' in value)) this.add(value);
      else if (isJsonObject(value['type'])) {
        const type = value['type'];
        const kind = 'field' in type ? this.#messages : this.#enums;
        kind.set(text(type['name']), type);
      }
    }
  }

  message(descriptor: JsonObject): MessageType {
    const known = this.#resolved.get(descriptor);
    if (known !== undefined) return known;
    const options = descriptor['options'];
    const type: MessageType = {
      name: text(descriptor['name']),
      isMapEntry: isJsonObject(options) && options['mapEntry'] === true,
      fields: new Map(
        objects(descriptor['field']).map((field) => [Number(field['number']), this.#field(field, descriptor)]),
      ),
    };
    this.#resolved.set(descriptor, type);
    return type;
  }

  #field(field: JsonObject, parent: JsonObject): FieldType {
    // Names are as they are written in the .proto file: of a nested type, or with packages before them.
    const typeName = text(field['typeName']).split('.').at(-1) ?? '';
    const named = (list: unknown): JsonObject | undefined => objects(list).find((each) => each['name'] === typeName);
    const enumeration = named(parent['enumType']) ?? this.#enums.get(typeName);
    return {
      name: text(field['name']),
      number: Number(field['number']),
      kind: KINDS.get(field['type']) ?? 'bytes',
      repeated: field['label'] === 'LABEL_REPEATED',
      message: () => {
        const descriptor = named(parent['nestedType']) ?? this.#messages.get(typeName);
        return descriptor === undefined ? undefined : this.message(descriptor);
      },
      enumNames: new Map(objects(enumeration?.['value']).map((each) => [Number(each['number']), text(each['name'])])),
    };
  }
}

function methodOf(types: Types, definition: unknown): (MethodType & { readonly path: string }) | undefined {
  if (!isJsonObject(definition)) return undefined;
  const { path, requestType, responseType, requestStream, responseStream } = definition;
  if (typeof path !== 'string' || !isJsonObject(requestType) || !isJsonObject(responseType)) return undefined;
  const { type: request } = requestType;
  const { type: response } = responseType;
  if (!isJsonObject(request) || !isJsonObject(response)) return undefined;
  return {
    path,
    name: path.split('/').at(-1) ?? '',
    request: types.message(request),
    response: types.message(response),
    requestStream: requestStream === true,
    responseStream: responseStream === true,
  };
}

let loaded: Schema | undefined;

/** Reads the .proto files at the first call (some 60 ms). */
export function loadSchema(): Schema {
  if (loaded !== undefined) return loaded;
  const cri = loadProto('cri');
  const events = loadProto('containerd-events');
  const methods = new Map<string, MethodType>();
  const sources: readonly (readonly [unknown, readonly object[]])[] = [
    [cri, [cri.runtime.v1.RuntimeService.service, cri.runtime.v1.ImageService.service]],
    [events, [events.containerd.services.events.v1.Events.service]],
  ];
  for (const [definition, services] of sources) {
    const types = new Types();
    types.add(definition);
    for (const method of services.flatMap((service) => Object.values(service))) {
      const type = methodOf(types, method);
      if (type !== undefined) methods.set(type.path, type);
    }
  }
  loaded = { method: (path) => methods.get(path) };
  return loaded;
}
