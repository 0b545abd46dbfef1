// Negotiates the form of a response: JSON, YAML or, for clients that take neither, protobuf; the object itself, its metadata, or a
// table. Pure.

import { getOwn, setOwn } from '../../lib/own-property.ts';
import { notAcceptable } from '../errors.ts';
import { PROTOBUF_TYPE } from './protobuf-messages.ts';

export interface Form {
  readonly media: 'json' | 'yaml' | 'protobuf';
  /** `partials`: a list of metadata, for which a single object does not do. */
  readonly as: 'object' | 'table' | 'partial' | 'partials';
  /** Of meta.k8s.io, for tables and partial objects. */
  readonly version: 'v1' | 'v1beta1';
  readonly pretty: boolean;
}

export const ACCEPTED = ['application/json', 'application/yaml', PROTOBUF_TYPE] as const;
const MEDIA: Readonly<Record<string, Form['media']>> = {
  'application/json': 'json',
  'application/*': 'json',
  '*/*': 'json',
  'application/yaml': 'yaml',
  [PROTOBUF_TYPE]: 'protobuf',
};
const AS: Readonly<Record<string, Form['as']>> = {
  Table: 'table',
  PartialObjectMetadata: 'partial',
  PartialObjectMetadataList: 'partials',
};

const VERSIONS = ['v1', 'v1beta1'] as const;

interface Range {
  readonly media: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly quality: number;
}

function parseRange(text: string): Range {
  const [media = '', ...rest] = text.split(';').map((part) => part.trim());
  const parameters: Record<string, string> = {};
  for (const part of rest) {
    const at = part.indexOf('=');
    if (at > 0) setOwn(parameters, part.slice(0, at).toLowerCase(), part.slice(at + 1).replace(/^"(.*)"$/, '$1'));
  }
  return { media: media.toLowerCase(), parameters, quality: Number(parameters['q'] ?? '1') };
}

/** Undefined for what nothing is rendered as. */
function formOf({ media: type, parameters }: Range, pretty: boolean): Form | undefined {
  const media = getOwn(MEDIA, type);
  if (media === undefined) return undefined;
  const kind = parameters['as'];
  if (kind === undefined) return { media, as: 'object', version: 'v1', pretty };
  const as = getOwn(AS, kind);
  const version = VERSIONS.find((one) => one === parameters['v']);
  if (as === undefined || version === undefined || parameters['g'] !== 'meta.k8s.io') return undefined;
  // Tables are no protobuf for kube-apiserver either; of v1beta1 the message of a list has other numbers.
  if (media === 'protobuf' && (as === 'table' || version !== 'v1')) return undefined;
  return { media, as, version, pretty };
}

/** The forms of the Accept header that can be served, the client's favourite first. */
function formsOf(accept: string | undefined, pretty: boolean): Form[] {
  if (accept === undefined || accept.trim() === '') return [{ media: 'json', as: 'object', version: 'v1', pretty }];
  return accept
    .split(',')
    .map(parseRange)
    .sort((a, b) => b.quality - a.quality)
    .map((range) => formOf(range, pretty))
    .filter((form) => form !== undefined);
}

/**
 * The first form of the Accept header that can be served; whole objects in protobuf only where there is no other form: they are
 * stored as JSON. Throws 406 when there is none.
 */
export function negotiate(accept: string | undefined, pretty: boolean): Form {
  const forms = formsOf(accept, pretty);
  const form = forms.find(({ media, as }) => media !== 'protobuf' || as !== 'object') ?? forms[0];
  if (form === undefined) throw notAcceptable(ACCEPTED);
  return form;
}

/** The form of a failure, which is JSON for a client that accepts nothing that there is. */
export function failureForm(accept: string | undefined): Form {
  const forms = formsOf(accept, false);
  const isProtobuf = forms.length > 0 && forms.every(({ media }) => media === 'protobuf');
  return { media: isProtobuf ? 'protobuf' : 'json', as: 'object', version: 'v1', pretty: false };
}
