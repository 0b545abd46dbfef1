import { describe, expect, it } from 'vitest';
import { AdmissionChain } from '../../../../apiserver/admission/chain.ts';
import { AdmissionForbidden, type AdmissionPlugin, handlesOnly } from '../../../../apiserver/admission/plugin.ts';
import type { ResourceKind } from '../../../../apiserver/kinds/resource.ts';
import {
  EVENT_TTL_MS,
  lastSeen,
  removeOldEvents,
  startEventCleanup,
} from '../../../../apiserver/registry/event-ttl.ts';
import { Registry } from '../../../../apiserver/registry/registry.ts';
import { createObject, createWhenAdmitted } from '../../../../apiserver/registry/write.ts';
import { ADMIN, ADMISSION, body, fixture, leases, pods, TABLE } from '../support.ts';

const events: ResourceKind = { ...leases, group: '', kind: 'Event', plural: 'events', singular: 'event' };
const EVENT = (name: string, more: object = {}) => body('Event', { name }, { ...more });

describe('events', () => {
  it('were last seen at the newest of their times', () => {
    const times = {
      lastTimestamp: '2026-01-01T00:00:02Z',
      eventTime: '2026-01-01T00:00:01.5Z',
      series: { lastObservedTime: null },
    };
    expect(lastSeen(EVENT('a', times))).toBe(Date.parse('2026-01-01T00:00:02Z'));
    expect(lastSeen(EVENT('a'))).toBe(0);
  });

  it('go an hour after they were last seen', async () => {
    const { store, clock } = fixture();
    const registry = new Registry({
      store,
      clock,
      kinds: [...TABLE, events],
      checkBody: () => ({ strict: [] }),
      admission: ADMISSION,
    });
    createObject(registry, events, 'ns', EVENT('old'), ADMIN);
    await clock.advance(EVENT_TTL_MS);
    expect(removeOldEvents(registry, clock.now())).toBe(0);
    createObject(registry, events, 'ns', EVENT('new'), ADMIN);
    await clock.advance(1000);
    expect(removeOldEvents(registry, clock.now())).toBe(1);
    expect([registry.find(events, 'ns', 'old'), registry.find(events, 'ns', 'new')?.name]).toEqual([undefined, 'new']);
  });
});

describe('the removal of old events', () => {
  it('that fails is logged, and tried again', async () => {
    const { store, clock } = fixture();
    const registry = new Registry({
      store,
      clock,
      kinds: [...TABLE, events],
      checkBody: () => ({ strict: [] }),
      admission: ADMISSION,
    });
    const log: string[] = [];
    const stop = startEventCleanup(registry, clock, (line) => log.push(line));
    store.close();
    await clock.advance(11 * 60_000);
    expect(log).toEqual(Array(2).fill('old events could not be removed: database is not open'));
    stop();
  });
});

describe('a create that needs another object', () => {
  const needy: AdmissionPlugin = {
    name: 'Needy',
    handles: handlesOnly('', 'pods', 'CREATE'),
    admit: (_attributes, lookup) => {
      const wanted = { group: 'coordination.k8s.io', plural: 'leases', namespace: 'ns', name: 'needed' };
      if (lookup.get(wanted.group, wanted.plural, 'ns', 'needed') === undefined) {
        throw new AdmissionForbidden('the lease is not there', wanted);
      }
    },
  };
  const create = ({ store, clock }: ReturnType<typeof fixture>) => {
    const admission = (registry: Registry) => new AdmissionChain([needy], registry.lookup);
    const registry = new Registry({ store, clock, kinds: TABLE, checkBody: () => ({ strict: [] }), admission });
    return createWhenAdmitted(registry, pods, 'ns', body('Pod', { name: 'a' }, { spec: {} }), ADMIN);
  };

  it('goes through as soon as that has come', async () => {
    const f = fixture();
    const created = create(f);
    createObject(f.registry, leases, 'ns', body('Lease', { name: 'needed' }), ADMIN);
    expect((await created).object.metadata.name).toBe('a');
    expect(f.clock.now()).toBe(Date.parse('2026-01-01T00:00:00Z'));
  });

  it('is refused when it does not come', async () => {
    const f = fixture();
    const created = create(f);
    const refused = expect(created).rejects.toMatchObject({ message: 'pods "a" is forbidden: the lease is not there' });
    await f.clock.advance(1500);
    await refused;
  });
});
