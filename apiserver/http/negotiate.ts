// Negotiates the form of a response: JSON or YAML; the object itself, its metadata, or a table. Pure.

import { getOwn, setOwn } from '../../lib/own-property.ts';
import { notAcceptable } from '../errors.ts';

export interface Form {
  readonly media: 'json' | 'yaml';
  /** `partials`: a list of metadata, for which a single object does not do. */
  readonly as: 'object' | 'table' | 'partial' | 'partials';
  /** Of meta.k8s.io, for tables and partial objects. */
  readonly version: 'v1' | 'v1beta1';
  readonly pretty: boolean;
}

export const ACCEPTED = ['application/json', 'application/yaml'] as const;
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

function formOf({ media, parameters }: Range, pretty: boolean): Form | undefined {
  const yaml = media === 'application/yaml';
  if (!yaml && media !== 'application/json' && media !== '*/*' && media !== 'application/*') return undefined;
  const kind = parameters['as'];
  if (kind === undefined) return { media: yaml ? 'yaml' : 'json', as: 'object', version: 'v1', pretty };
  const as = getOwn(AS, kind);
  const version = VERSIONS.find((one) => one === parameters['v']);
  if (as === undefined || version === undefined || parameters['g'] !== 'meta.k8s.io') return undefined;
  return { media: yaml ? 'yaml' : 'json', as, version, pretty };
}

/** The first form of the Accept header that can be served. Throws 406 when there is none. */
export function negotiate(accept: string | undefined, pretty: boolean): Form {
  if (accept === undefined || accept.trim() === '') return { media: 'json', as: 'object', version: 'v1', pretty };
  const ranges = accept.split(',').map(parseRange);
  ranges.sort((a, b) => b.quality - a.quality);
  for (const range of ranges) {
    const form = formOf(range, pretty);
    if (form !== undefined) return form;
  }
  throw notAcceptable(ACCEPTED);
}
