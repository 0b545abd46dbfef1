// What a controller remembers of services with hints by zone (topology.ts): how many endpoints have a hint for each zone, so that a change of nodes
// brings those services back alone of which a zone has too few; and the events that say whether there are hints.

import type { AddressType } from './desired.ts';
import type { SlicePlan } from './plan.ts';
import { isOverloaded, type ZoneCounts, type ZoneShares } from './topology.ts';

type Writes = 'create' | 'update' | 'remove';

interface HintEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: 'TopologyAwareHintsEnabled' | 'TopologyAwareHintsDisabled';
  readonly message: string;
}

export class ZoneState {
  /** By service and kind of address. */
  readonly #counts = new Map<string, Map<AddressType, ZoneCounts>>();
  readonly #hinted = new Set<string>();
  /** Why there were no hints, by service and kind of address. */
  readonly #reasons = new Map<string, Map<AddressType, string>>();

  /** Takes a plan in; what its events are. A plan that writes nothing does not repeat why there are no hints. */
  planned(key: string, { zones, create, update, remove }: Pick<SlicePlan, Writes | 'zones'>): readonly HintEvent[] {
    const writes = create.length + update.length + remove.length > 0;
    const reasons = this.#reasons.get(key) ?? new Map<AddressType, string>();
    this.#reasons.set(key, reasons);
    return zones.flatMap(({ addressType, hints }): HintEvent[] => {
      const had = this.#hinted.has(key);
      if (hints === undefined || 'disabled' in hints) {
        this.#counts.get(key)?.delete(addressType);
        this.#hinted.delete(key);
        if (hints === undefined) reasons.delete(addressType);
        if (hints === undefined && !had) return [];
        const why = hints?.disabled ?? 'Topology Aware Hints has been disabled';
        if (!writes && reasons.get(addressType) === why) return [];
        if (hints !== undefined) reasons.set(addressType, why);
        const message = `${why}, addressType: ${addressType}`;
        return [{ type: 'Warning', reason: 'TopologyAwareHintsDisabled', message }];
      }
      reasons.delete(addressType);
      const counts = this.#counts.get(key) ?? new Map<AddressType, ZoneCounts>();
      this.#counts.set(key, counts.set(addressType, hints.counts));
      this.#hinted.add(key);
      const message = `Topology Aware Hints has been enabled, addressType: ${addressType}`;
      return had ? [] : [{ type: 'Normal', reason: 'TopologyAwareHintsEnabled', message }];
    });
  }

  overloaded(shares: ZoneShares): readonly string[] {
    return [...this.#counts]
      .filter(([, byType]) => [...byType.values()].some((counts) => isOverloaded(counts, shares)))
      .map(([key]) => key);
  }

  forget(key: string): void {
    this.#counts.delete(key);
    this.#hinted.delete(key);
    this.#reasons.delete(key);
  }
}
