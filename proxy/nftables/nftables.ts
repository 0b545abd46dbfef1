// The nftables mode: service-objects.ts and table.ts decide what the table has; it is written by lib/nft-writer.ts.

import type { Exec } from '../../lib/exec.ts';
import { rulesIn } from '../../lib/nft-table.ts';
import { NftWriter, removeTable, tableComment } from '../../lib/nft-writer.ts';
import type { Applied, Backend, ServicePortEndpoints, ServicePortMap } from '../backend.ts';
import type { RuleOptions } from '../options.ts';
import { TABLE } from './names.ts';
import { type ServiceObjects, serviceObjects } from './service-objects.ts';
import { nftTable } from './table.ts';

const COMMENT = 'rules for kube-proxy of ';

export class NftablesBackend implements Backend {
  readonly #writer: NftWriter;
  #objects = new Map<string, { readonly from: ServicePortEndpoints; readonly objects: ServiceObjects }>();
  #options: RuleOptions | undefined;

  constructor(owner: string, run?: Exec) {
    this.#writer = new NftWriter({ table: TABLE, comment: `${COMMENT}${owner}`, run });
  }

  async apply(portMap: ServicePortMap, options: RuleOptions, full: boolean): Promise<Applied> {
    const services = this.#objectsOf(portMap, options);
    const table = nftTable(services, options);
    const written = await this.#writer.apply(table, full);
    const count = (kind: 'internal' | 'external'): number =>
      services.filter(({ withoutLocal }) => withoutLocal.includes(kind)).length;
    return {
      total: { 'ip kube-proxy': rulesIn(table) },
      written: { 'ip kube-proxy': written },
      withoutLocal: { internal: count('internal'), external: count('external') },
    };
  }

  damage(): Promise<string | undefined> {
    return this.#writer.damage();
  }

  #objectsOf(portMap: ServicePortMap, options: RuleOptions): readonly ServiceObjects[] {
    const known =
      this.#options === options
        ? this.#objects
        : new Map<string, { from: ServicePortEndpoints; objects: ServiceObjects }>();
    this.#options = options;
    const next = new Map<string, { from: ServicePortEndpoints; objects: ServiceObjects }>();
    for (const [key, from] of portMap) {
      const before = known.get(key);
      const objects = before?.from === from ? before.objects : serviceObjects(from.port, from.reachable, options);
      next.set(key, { from, objects });
    }
    this.#objects = next;
    return [...next.values()].map(({ objects }) => objects);
  }
}

/** Whose table it is; '' where that is not known, undefined where there is none. */
export async function tableOwner(run?: Exec): Promise<string | undefined> {
  const comment = await tableComment(TABLE, run);
  return comment?.startsWith(COMMENT) === true ? comment.slice(COMMENT.length) : comment === undefined ? undefined : '';
}

/** Takes away everything of a proxy in this network namespace. Idempotent. */
export async function removeProxyTable(run?: Exec): Promise<void> {
  await removeTable(TABLE, run);
}
