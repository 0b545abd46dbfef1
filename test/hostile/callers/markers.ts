// Strings that stand in objects which not everybody may read, and who may read each: the campaign's own judgement of
// access, which knows nothing of the server's. A marker in a response to another caller is a leak.

/** Whom a request comes from in the end, as far as reading goes. */
export type Reader =
  | { readonly kind: 'everything' }
  | { readonly kind: 'node'; readonly node: string }
  | { readonly kind: 'scheduler' }
  | { readonly kind: 'nothing' };

interface Marked {
  /** Plural of the kind that it stands in. */
  readonly resource: string;
  readonly where: string;
  readonly nodes: ReadonlySet<string>;
}

/** Twelve bytes of it make a fixed run of base64, so that it is found in a Secret's data too. */
const PREFIX = 'NODELETMARK-';
const PLAIN = /NODELETMARK-\d{6}/g;
const ENCODED = /Tk9ERUxFVE1BUkst[A-Za-z0-9+/]{8}/g;
/** What system:kube-scheduler reads of the kinds that are marked. */
const SCHEDULER_READS = new Set([
  'pods',
  'nodes',
  'persistentvolumes',
  'persistentvolumeclaims',
  'csinodes',
  'volumeattachments',
]);

export class Markers {
  readonly #all = new Map<string, Marked>();

  /** A new marker for an object that these nodes may read. */
  make(resource: string, where: string, ...nodes: string[]): string {
    const marker = `${PREFIX}${String(this.#all.size).padStart(6, '0')}`;
    this.#all.set(marker, { resource, where, nodes: new Set(nodes) });
    return marker;
  }

  /** Where the markers in `text` stand that `reader` may not see. */
  leaks(text: string, reader: Reader): string[] {
    const found = new Set(text.match(PLAIN));
    for (const encoded of text.match(ENCODED) ?? []) found.add(Buffer.from(encoded, 'base64').toString());
    return [...found].flatMap((marker) => {
      const marked = this.#all.get(marker);
      if (marked === undefined || this.#mayRead(marked, reader)) return [];
      return [`${marked.resource} ${marked.where}`];
    });
  }

  #mayRead({ resource, nodes }: Marked, reader: Reader): boolean {
    switch (reader.kind) {
      case 'everything':
        return true;
      case 'node':
        return nodes.has(reader.node);
      case 'scheduler':
        return SCHEDULER_READS.has(resource);
      case 'nothing':
        return false;
    }
  }
}
